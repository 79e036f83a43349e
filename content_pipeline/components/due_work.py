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
from content_pipeline.components.sensor_ticks import A_RUN_IS_AT_IT, Tick, asking, is_at_work
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.site_at_work import (
    INFRASTRUCTURE_RETRIES,
    opened_ledger,
    site_at_work,
)
from content_pipeline.ledger import budget_waits, draft_line, effects, leases, publish_rate, routes
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Outlook, Selection
from content_pipeline.site_cms import cms_route
from content_pipeline.site_files import Site

PAGES_PER_RUN = 500
"""After so many a run ends and the next one goes on: a run must not last an hour."""

DUE_INTERVAL_S = 30

UNTIL_A_PERSON_ACTS_S = routes.NEVER_S / 2
"""A longer wait is no point in time: somebody must close a circuit."""

RUN_TAG = "content_pipeline/due_work"
"""Its limit in ``dagster.yaml`` keeps a site to one such run at a time."""

PRIORITY = "10"
"""Before the queue of a backfill, whose runs have 0."""

WOKEN_PER_TICK = 50
"""Of each line that waits for money or a turn; the run that is asked for wakes the rest when it
begins. To wake 1,000 took a tick 2 s."""


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
        name=due_job_name(assets),
        description="Goes on with every page of the site that is due now, whoever asked for it.",
        executor_def=dg.in_process_executor,
        tags=assets.tags
        | {
            RUN_TAG: assets.name,
            PRIORITY_TAG: PRIORITY,
            MAX_RUNTIME_SECONDS_TAG: assets.run_limit,
        },
    )
    def due_work() -> None:
        work_on_due_pages()

    return due_work


def due_job_name(assets: SiteAssets) -> str:
    """What the job is called."""
    return f"{assets.name}_due_work"


def run_once(instance: dg.DagsterInstance, ledger: Ledger, assets: SiteAssets) -> Tick:
    """Whether a page or an announcement is due and nobody is at it.

    Each question is some looks into an index: a million pages that are done, or wait, cost nothing.
    """
    if is_at_work(instance, job_name=due_job_name(assets)):
        return A_RUN_IS_AT_IT
    settings, everything = assets.site.settings, Selection(site=assets.name)
    with asking(ledger) as connection:
        # A cap or the publish rate may have been raised since they began to wait.
        budget_waits.wake(connection, everything, caps_of(assets.site), most=WOKEN_PER_TICK)
        publish_rate.wake(connection, everything, settings.schedule.rate, most=WOKEN_PER_TICK)
        draft_line.wake(connection, everything, settings.schedule.rate, most=WOKEN_PER_TICK)
        outlook = _outlook(connection, assets.site)
        untold_s = effects.seconds_until_due(connection, assets.name, settings.telling_s)
    if 0 in (outlook.wait_s, untold_s):
        return Tick(asks_for_run=True)
    untold = "" if untold_s is None else f" An announcement is due in {untold_s:.0f} s."
    return Tick(said=_pages_wait(outlook) + untold)


def build_due_sensor(assets: SiteAssets, job: dg.JobDefinition) -> dg.SensorDefinition:
    """Starts ``job`` when pages or announcements are due. Off until somebody switches it on."""

    @dg.sensor(
        name=f"{assets.name}_due_work_sensor",
        job=job,
        minimum_interval_seconds=DUE_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=(
            "Starts the due work of the site: retries, settled uncertainties, pages of workers "
            "that died, every page that is wanted and not yet made, and announcements that a hook "
            "was not told yet, though every page be done. Spends money by itself, so it is off "
            "until switched on."
        ),
        owners=assets.owners,
        tags=assets.tags,
    )
    def due_work_sensor(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        with opened_ledger() as ledger:
            return run_once(context.instance, ledger, assets).answer()

    return due_work_sensor


def _pages_wait(outlook: Outlook) -> str:
    """Why no page of a site is due."""
    if outlook.wait_s is None:
        return "Every page is done, failed or stopped."
    if outlook.wait_s >= UNTIL_A_PERSON_ACTS_S:
        return (
            f"{outlook.count} pages wait until a person has put an account in order; "
            "see `content-pipeline status`."
        )
    return f"{outlook.count} pages wait; the first is due in {outlook.wait_s:.0f} s."


def _outlook(connection: Connection, site: Site) -> Outlook:
    return leases.outlook(
        connection,
        Selection(site=site.settings.site),
        model_wait_s=routes.wait_s(connection, model_route(site)),
        cms_wait_s=routes.wait_s(connection, cms_route(site)),
    )
