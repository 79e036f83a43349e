"""What is due of a site, whoever asked for it: a job that claims it from the ledger, and sensors.

What belongs here: work that no selection of partitions describes (retries whose wait is over,
settled uncertainties, pages another process wanted). Three hundred scattered pages are one run of
this job; as a backfill they were 167.
"""

import dagster as dg
from sqlalchemy import Connection

from content_pipeline.bootstrap import caps_of, model_route
from content_pipeline.components.dagster_private import MAX_RUNTIME_SECONDS_TAG, PRIORITY_TAG
from content_pipeline.components.interruption import interruptible
from content_pipeline.components.page_work import end_run, work_on
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.site_at_work import (
    INFRASTRUCTURE_RETRIES,
    opened_ledger,
    site_at_work,
)
from content_pipeline.components.topics_asset import unregistered
from content_pipeline.ledger import budget_waits, effects, intake, leases, publish_rate, routes
from content_pipeline.ledger.leases import Outlook, Selection
from content_pipeline.site_cms import cms_route
from content_pipeline.site_files import Site

PAGES_PER_RUN = 500
"""After so many a run ends and the next one goes on: a run must not last an hour."""

DUE_INTERVAL_S = 30
PARTITIONS_INTERVAL_S = 60

UNTIL_A_PERSON_ACTS_S = routes.NEVER_S / 2
"""A longer wait is no point in time: somebody must close a circuit."""

PARTITIONS_PER_TICK = 5_000
"""Dagster takes at most 25,000 in one answer of a sensor."""

RUN_TAG = "content_pipeline/due_work"
"""Its limit in ``dagster.yaml`` keeps a site to one such run at a time."""

PRIORITY = "10"
"""Before the queue of a backfill, whose runs have 0."""

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def build_due_job(assets: SiteAssets) -> dg.JobDefinition:
    """The job that works on what is due, and shows it on the same assets."""

    @dg.op(
        name=f"{assets.name}_work_on_due_pages",
        retry_policy=INFRASTRUCTURE_RETRIES,
        tags={"site": assets.name},
    )
    def work_on_due_pages(context: dg.OpExecutionContext) -> None:
        with interruptible() as interruption, site_at_work(assets.site, context.run_id) as site:
            everything = Selection(site=assets.name)
            summary = work_on(
                context, assets, site, everything, interruption, at_most=PAGES_PER_RUN
            )
            end_run(context, summary)

    @dg.job(
        name=f"{assets.name}_due_work",
        description="Goes on with every page of the site that is due now, whoever asked for it.",
        executor_def=dg.in_process_executor,
        tags={
            RUN_TAG: assets.name,
            PRIORITY_TAG: PRIORITY,
            MAX_RUNTIME_SECONDS_TAG: assets.run_limit,
        },
    )
    def due_work() -> None:
        work_on_due_pages()

    return due_work


def build_due_sensor(assets: SiteAssets, job: dg.JobDefinition) -> dg.SensorDefinition:
    """Starts ``job`` when pages or announcements are due. Off until somebody switches it on."""

    @dg.sensor(
        name=f"{assets.name}_due_work_sensor",
        job=job,
        minimum_interval_seconds=DUE_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=(
            "Starts the due work of the site: retries, settled uncertainties, every page that is "
            "wanted and not yet made, announcements. Spends money by itself, so it is off until "
            "switched on."
        ),
    )
    def due_work_sensor(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        at_work = dg.RunsFilter(job_name=job.name, statuses=UNFINISHED)
        if context.instance.get_runs_count(at_work):
            return dg.SkipReason("A run is at it.")
        settings = assets.site.settings
        with opened_ledger() as ledger, ledger.begin() as connection:
            # A cap or the publish rate may have been raised since they began to wait.
            everything = Selection(site=assets.name)
            budget_waits.wake(connection, everything, caps_of(assets.site))
            publish_rate.wake(connection, everything, settings.schedule.rate)
            outlook = _outlook(connection, assets.site)
            untold_s = effects.seconds_until_due(connection, assets.name, settings.telling_s)
        if 0 in (outlook.wait_s, untold_s):
            return dg.RunRequest()
        untold = "" if untold_s is None else f" An announcement is due in {untold_s:.0f} s."
        return dg.SkipReason(_pages_wait(outlook) + untold)

    return due_work_sensor


def _pages_wait(outlook: Outlook) -> str:
    """Why no page of a site is due."""
    if outlook.wait_s is None:
        return "Every page is done, failed or stopped."
    if outlook.wait_s >= UNTIL_A_PERSON_ACTS_S:
        return (
            f"{outlook.unfinished} pages wait until a person has put an account in order; "
            "see `content-pipeline status`."
        )
    return f"{outlook.unfinished} pages wait; the first is due in {outlook.wait_s:.0f} s."


def _outlook(connection: Connection, site: Site) -> Outlook:
    return leases.outlook(
        connection,
        Selection(site=site.settings.site),
        model_wait_s=routes.wait_s(connection, model_route(site)),
        cms_wait_s=routes.wait_s(connection, cms_route(site)),
    )


def build_partitions_sensor(assets: SiteAssets) -> dg.SensorDefinition:
    """Shows pages that were wanted elsewhere (on the command line) as partitions. Pays nothing."""

    @dg.sensor(
        name=f"{assets.name}_partitions_sensor",
        minimum_interval_seconds=PARTITIONS_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Registers topics that the ledger knows as partitions. Starts no run.",
    )
    def partitions_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        with opened_ledger() as ledger, ledger.begin() as connection:
            keys = intake.topic_keys(connection, assets.name)
        new = unregistered(context.instance, assets, keys)
        if not new:
            return dg.SkipReason(f"All {len(keys)} topics are partitions.")
        pages = dg.DynamicPartitionsDefinition(name=assets.partitions_name)
        request = pages.build_add_request(new[:PARTITIONS_PER_TICK])
        return dg.SensorResult(dynamic_partitions_requests=[request])

    return partitions_sensor
