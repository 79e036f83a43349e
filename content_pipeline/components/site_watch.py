"""Watching a site: what people changed on it since we published is found, page by page.

What belongs here: a small job that surveys, the sensor and the nightly schedule that start it. The
CMS is asked in a run, never in the daemon, where a slow one would hold up all other sensors. What
the site's policy puts back is handed to the lane: the due work publishes it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from content_pipeline.components.dagster_private import MAX_RUNTIME_SECONDS_TAG
from content_pipeline.components.event_log import EventLog
from content_pipeline.components.interruption import Interruption, interruptible
from content_pipeline.components.partition_events import tell_checks
from content_pipeline.components.sensor_ticks import A_RUN_IS_AT_IT, Tick, asking, is_at_work
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.site_at_work import (
    INFRASTRUCTURE_RETRIES,
    opened_ledger,
    site_at_work,
)
from content_pipeline.core.states import Stage
from content_pipeline.ledger import routes
from content_pipeline.ledger.database import Ledger
from content_pipeline.operations.survey import SurveyReport, survey
from content_pipeline.site_cms import cms_route

INTERVAL_S = 600
"""A person's edit is seen within ten minutes; each look costs a run of some seconds."""

BUDGET_S = 60.0
"""One look of the sensor takes no longer: it goes on with the next."""

SWEEP_CRON = "0 3 * * *"
"""At night everything is looked at once, whatever the ticks of the day came to."""

SURVEY_TAG = "content_pipeline/survey"


class SurveyConfig(dg.Config):
    """How far one survey goes."""

    full: bool = False
    """Everything the CMS holds, without regard to time; else one slice of it."""
    budget_s: float = BUDGET_S
    """In seconds; a survey that is not full stops before its next look after this."""


def survey_job_name(assets: SiteAssets) -> str:
    """What the job that looks is called."""
    return f"{assets.name}_survey"


def build_survey_job(assets: SiteAssets) -> dg.JobDefinition:
    """The job that looks at the site, and shows what it found on the pages' checks."""

    @dg.op(
        name=f"{assets.name}_look_at_the_site",
        retry_policy=INFRASTRUCTURE_RETRIES,
        tags={"site": assets.name},
    )
    def look_at_the_site(context: dg.OpExecutionContext, config: SurveyConfig) -> None:
        with interruptible() as interruption, site_at_work(assets.site, context.run_id) as site:
            with _within(None if config.full else config.budget_s, interruption):
                slices = None if config.full else 1
                report = survey(site, slices=slices, stop=interruption.stop)
            news = {assets.partition_of(topic_key) for topic_key in report.news}
            with EventLog.of_run(context) as log:
                tell_checks(log, assets, site.ledger, frozenset({Stage.ARTIFACT}), sorted(news))
        _end(context, report)

    @dg.job(
        name=survey_job_name(assets),
        description=(
            "Looks for pages that were changed on the site. Writes nothing but that twins, second "
            "pages with our mark, are taken away; the due work puts back what the policy wants."
        ),
        executor_def=dg.in_process_executor,
        tags=assets.tags | {SURVEY_TAG: assets.name, MAX_RUNTIME_SECONDS_TAG: assets.run_limit},
    )
    def survey_site() -> None:
        look_at_the_site()

    return survey_site


@contextmanager
def _within(budget_s: float | None, interruption: Interruption) -> Iterator[None]:
    """Let the time stop the survey before its next look."""
    if budget_s is None:
        yield
        return
    timer = threading.Timer(budget_s, interruption.stop.set)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _end(context: dg.OpExecutionContext, report: SurveyReport) -> None:
    """Show on the run what was found. Raises the Failure of a CMS that could not be asked."""
    tags = {f"site/{change.value}": str(count) for change, count in report.found.items()}
    if report.restored:
        tags["site/put_back"] = str(report.restored)
    if report.twins_removed:
        tags["site/twins_removed"] = str(report.twins_removed)
    context.instance.add_run_tags(context.run_id, tags)
    found = ", ".join(f"{count} {change}" for change, count in sorted(report.found.items()))
    context.log.info(
        f"{report.listed} pages listed, {report.looked_at} looked at; {found or 'nothing new'}"
    )
    if report.failure is not None:
        raise dg.Failure(description=str(report.failure.message), allow_retries=False)


def run_once(instance: dg.DagsterInstance, ledger: Ledger, assets: SiteAssets) -> Tick:
    """Whether the site can be looked at now. How far the looks have come is ``surveys``'s."""
    if is_at_work(instance, job_name=survey_job_name(assets)):
        return A_RUN_IS_AT_IT
    with asking(ledger) as connection:
        obstacle = routes.obstacle(connection, cms_route(assets.site))
    if obstacle is not None:
        return Tick(said=f"The CMS is not asked now: {obstacle.message}")
    return Tick(asks_for_run=True)


def build_site_changes_sensor(assets: SiteAssets, job: dg.JobDefinition) -> dg.SensorDefinition:
    """Starts ``job`` every ten minutes. Off until somebody switches it on, like the due work."""

    @dg.sensor(
        name=f"{assets.name}_site_changes_sensor",
        job=job,
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=(
            "Looks every ten minutes for pages that were changed on the site. By the site's policy "
            "lost pages are put back, so it is off until switched on."
        ),
        owners=assets.owners,
        tags=assets.tags,
    )
    def site_changes_sensor(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        with opened_ledger() as ledger:
            return run_once(context.instance, ledger, assets).answer()

    return site_changes_sensor


def build_sweep_schedule(assets: SiteAssets, job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Everything the CMS holds is looked at each night. Off until somebody switches it on."""
    op_name = f"{assets.name}_look_at_the_site"
    return dg.ScheduleDefinition(
        name=f"{assets.name}_nightly_sweep",
        job=job,
        cron_schedule=SWEEP_CRON,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        run_config={"ops": {op_name: {"config": {"full": True}}}},
        description="Looks each night (03:00 UTC) at everything the CMS holds, to the end.",
        owners=assets.owners,
        tags=assets.tags,
    )
