"""The site's schedule: each tick asks for one run, which plans what is due.

What belongs here: the job whose runs carry out a plan, and the tick. Dagster ends an evaluation
after 60 s, whatever came of it, so a tick looks at a few runs and at nothing of the site: its table
and its ledger, large as they may be, are read by the run that it asks for (``nightly_plan``).
"""

from datetime import UTC

import dagster as dg

from content_pipeline.components.dagster_private import MAX_RUNTIME_SECONDS_TAG, AssetJob
from content_pipeline.components.nightly_plan import config_of, plan_job_name
from content_pipeline.components.planned_runs import PLAN_TAG, pages_job_name
from content_pipeline.components.sensor_ticks import UNFINISHED
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.core.states import Stage

LOOKED_AT = 100
"""Unfinished runs, the newest first: more than ever stand in the queue for one plan."""


def build_pages_job(assets: SiteAssets) -> AssetJob:
    """The job whose runs a plan asks for: a range of partitions, or pages by their keys."""
    return dg.define_asset_job(
        pages_job_name(assets),
        selection=dg.AssetSelection.assets(*(assets.key(stage) for stage in Stage)),
        description="Brings a batch of pages to the site, as the schedule has planned it.",
        executor_def=dg.in_process_executor,
        tags=assets.tags | {MAX_RUNTIME_SECONDS_TAG: assets.run_limit},
    )


def build_schedule(assets: SiteAssets, job: AssetJob) -> dg.ScheduleDefinition:
    """Asks for a run of ``job``, which plans. Off until switched on."""
    settings = assets.site.settings.schedule

    @dg.schedule(
        name=f"{assets.name}_schedule",
        job=job,
        cron_schedule=settings.cron,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=(
            "Asks for a run that takes the topic table in and plans what is due within the day's "
            "budget and the publish rate; see `content-pipeline plan`. What is planned is then "
            "worked on. Spends money by itself, so it is off until switched on."
        ),
        owners=assets.owners,
        tags=assets.tags,
    )
    def site_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        tick = f"{context.scheduled_execution_time.astimezone(UTC):%Y-%m-%dT%H:%MZ}"
        earlier = _at_work_for(context.instance, assets, tick)
        if earlier:
            return dg.SkipReason(f"The runs of {', '.join(earlier)} are not finished.")
        return dg.RunRequest(
            run_key=f"{assets.name}:{tick}",
            run_config=config_of(assets, tick),
            tags={PLAN_TAG: tick},
        )

    return site_schedule


def _at_work_for(instance: dg.DagsterInstance, assets: SiteAssets, tick: str) -> list[str]:
    """The earlier ticks with runs that are not finished: their pages would be requested twice.

    Not this very tick, which is evaluated again when a crash left it half carried out.
    """
    runs = [
        run
        for name in (plan_job_name(assets), pages_job_name(assets))
        for run in instance.get_runs(
            dg.RunsFilter(job_name=name, statuses=UNFINISHED), limit=LOOKED_AT
        )
    ]
    return sorted({run.tags[PLAN_TAG] for run in runs if run.tags.get(PLAN_TAG, tick) != tick})
