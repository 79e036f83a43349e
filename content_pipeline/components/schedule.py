"""The site's schedule: at each tick it plans what is due and requests runs for it.

What belongs here: from a plan to Dagster's run requests. A range of partitions and a list of pages
are runs of one job, because a schedule has one. What is due is the plan's to say; what becomes of
a run that is killed is the ledger's: its pages are due again at the next tick, at their last
checkpoint.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC

import dagster as dg

from content_pipeline.bootstrap import open_for_planning, topic_rows
from content_pipeline.components.dagster_private import MAX_RUNTIME_SECONDS_TAG, AssetJob
from content_pipeline.components.sensor_ticks import UNFINISHED
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.site_at_work import opened_ledger
from content_pipeline.components.topics_asset import register
from content_pipeline.core.batches import Batch, batches
from content_pipeline.core.identity import digest
from content_pipeline.core.planning import Plan, PlannedPage, counted
from content_pipeline.core.states import Stage
from content_pipeline.operations.plan import make_plan
from content_pipeline.operations.submit import submit

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"

PLAN_TAG = "content_pipeline/plan"
"""The tick that a run belongs to: filter the list of runs by it to see all of a night."""

SHOWN_KEY = 12
"""Hex digits of a run key's digest: it tells the batches of one tick apart."""


def build_pages_job(assets: SiteAssets) -> AssetJob:
    """The job whose runs the schedule requests: a range of partitions, or pages by their keys."""
    return dg.define_asset_job(
        f"{assets.name}_scheduled_pages",
        selection=dg.AssetSelection.assets(*(assets.key(stage) for stage in Stage)),
        description="Brings a batch of pages to the site, as the schedule has planned it.",
        executor_def=dg.in_process_executor,
        tags=assets.tags | {MAX_RUNTIME_SECONDS_TAG: assets.run_limit},
    )


def build_schedule(assets: SiteAssets, job: AssetJob) -> dg.ScheduleDefinition:
    """Takes the table in, plans, and requests ``job`` for what is due. Off until switched on."""
    settings = assets.site.settings.schedule

    @dg.schedule(
        name=f"{assets.name}_schedule",
        job=job,
        cron_schedule=settings.cron,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=(
            "Takes the topic table in, plans what is due within the day's budget and the publish "
            "rate, and requests runs for it; see `content-pipeline plan`. Spends money by itself, "
            "so it is off until switched on."
        ),
        owners=assets.owners,
        tags=assets.tags,
    )
    def site_schedule(
        context: dg.ScheduleEvaluationContext,
    ) -> list[dg.RunRequest] | dg.SkipReason:
        tick = f"{context.scheduled_execution_time.astimezone(UTC):%Y-%m-%dT%H:%MZ}"
        earlier = _at_work_for(context.instance, job.name, tick)
        if earlier:
            return dg.SkipReason(f"The runs of {', '.join(earlier)} are not finished.")
        plan = _take_in_and_plan(context.instance, assets)
        if not plan.today:
            return dg.SkipReason(told(plan))
        context.log.info(told(plan))
        cut = _batches(context.instance, assets, plan)
        return list(_requests(assets, plan, cut, tick))

    return site_schedule


def _at_work_for(instance: dg.DagsterInstance, job_name: str, tick: str) -> list[str]:
    """The earlier ticks with runs that are not finished: their pages would be requested twice.

    Not this very tick, which is evaluated again when a crash left it half requested.
    """
    runs = instance.get_runs(dg.RunsFilter(job_name=job_name, statuses=UNFINISHED))
    return sorted({run.tags[PLAN_TAG] for run in runs if run.tags.get(PLAN_TAG, tick) != tick})


def _take_in_and_plan(instance: dg.DagsterInstance, assets: SiteAssets) -> Plan:
    """The plan, and then the intake that it rehearsed; every topic is a partition afterwards."""
    rows = list(topic_rows(assets.site))
    with opened_ledger() as ledger:
        planned = open_for_planning(assets.site, ledger)
        plan = make_plan(planned, rows)
        submit(planned, rows, requested_by=f"schedule of {assets.name}")
        with ledger.begin() as connection:
            register(instance, assets, connection)
    return plan


def _batches(instance: dg.DagsterInstance, assets: SiteAssets, plan: Plan) -> list[Batch]:
    """The partitions with pages of ``plan`` that are due, as runs."""
    most = assets.site.settings.schedule.pages_per_run
    due = {assets.partition_of(page.topic_key) for page in plan.today}
    if assets.buckets is None:
        return batches(instance.get_dynamic_partitions(assets.partitions_name), due, most)
    # As many buckets as hold a run's pages: 100 that hold one each, or one that holds 100.
    return batches(list(assets.buckets.names()), due, max(1, most * len(due) // len(plan.today)))


def _requests(
    assets: SiteAssets, plan: Plan, cut: Sequence[Batch], tick: str
) -> Iterator[dg.RunRequest]:
    priced: defaultdict[str, list[PlannedPage]] = defaultdict(list)
    for page in plan.today:
        priced[assets.partition_of(page.topic_key)].append(page)
    for number, batch in enumerate(cut, start=1):
        pages = [page for key in batch.partitions for page in priced[key]]
        tags = {
            PLAN_TAG: tick,
            "plan/batch": f"{number} of {len(cut)}",
            "plan/pages": str(len(pages)),
            "plan/expected_usd": f"{sum(page.expected_usd for page in pages):.4f}",
            "plan/worst_usd": f"{sum(page.worst_usd for page in pages):.4f}",
        }
        # Of the pages, not of their number in the tick: one that is evaluated again after a crash
        # may find fewer pages due, and must not take the rest for a batch that was requested.
        run_key = (
            f"{assets.name}:{tick}:{digest(sorted(page.topic_key for page in pages))[:SHOWN_KEY]}"
        )
        if batch.is_range:
            tags |= {RANGE_START: batch.partitions[0], RANGE_END: batch.partitions[-1]}
            yield dg.RunRequest(run_key=run_key, tags=tags)
        else:
            named = "topics" if assets.buckets is None else "buckets"
            config = {"ops": {assets.lane_op: {"config": {named: list(batch.partitions)}}}}
            yield dg.RunRequest(run_key=run_key, tags=tags, run_config=config)


def told(plan: Plan) -> str:
    """The plan in one line."""
    due = counted([page.reason for page in plan.today])
    skipped = counted([page.reason for page in plan.skipped])
    parts = [f"{count:,} {reason}" for reason, count in due.items()]
    left_alone = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
    return (
        f"{len(plan.today):,} pages are due ({', '.join(parts) or 'none'}); "
        f"expected ${plan.expected_usd:.4f}, at worst ${plan.worst_usd:.4f}; "
        f"budget: {plan.verdict}; left alone: {left_alone or 'none'}"
    )
