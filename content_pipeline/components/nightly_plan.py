"""``nightly_plan``: what is due of a site, priced, and cut into runs.

What belongs here: the asset that shows a plan, its job, and from a plan to the runs that the ledger
keeps. Asked for by the schedule it takes the topic table in and has its runs asked for
(``planned_runs``); materialized by hand it only shows what the schedule would do now, and writes
nothing. A tick is planned once: whoever plans it again finds what was kept.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import dagster as dg

from content_pipeline.bootstrap import open_for_planning, topic_rows
from content_pipeline.components.asset_metadata import (
    COLUMN_SCHEMA,
    PLANNED_PAGES,
    columns,
)
from content_pipeline.components.dagster_private import PRIORITY_TAG, AssetJob
from content_pipeline.components.due_work import PRIORITY
from content_pipeline.components.plan_metadata import plan_metadata, told
from content_pipeline.components.site_assets import PLAN_VERSION, SiteAssets
from content_pipeline.components.site_at_work import INFRASTRUCTURE_RETRIES, site_ledger
from content_pipeline.components.topics_asset import register
from content_pipeline.core.batches import Batch, batches
from content_pipeline.core.planning import Plan, PlannedPage
from content_pipeline.ledger import nightly_plans
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.nightly_plans import NightlyPlan, PlannedRun
from content_pipeline.operations.plan import make_plan
from content_pipeline.operations.submit import submit


class PlanConfig(dg.Config):
    """For whom is planned."""

    tick: str = ""
    """The schedule's tick (``2026-03-01T02:00Z``) whose runs are then asked for; without one
    nothing is asked for, and nothing is written."""


def plan_job_name(assets: SiteAssets) -> str:
    """What the job that plans is called."""
    return f"{assets.name}_nightly_plan"


def config_of(assets: SiteAssets, tick: str) -> dict[str, Any]:
    """The configuration of a run that plans for ``tick``."""
    return {"ops": {_op_name(assets): {"config": {"tick": tick}}}}


def _op_name(assets: SiteAssets) -> str:
    """Not that of the job: Dagster takes a name for one of the two only."""
    return f"{assets.name}_plan_pages"


def build_nightly_plan(assets: SiteAssets) -> dg.AssetsDefinition:
    """The asset of a site's plan."""

    @dg.multi_asset(
        name=_op_name(assets),
        specs=[
            dg.AssetSpec(
                assets.nightly_plan,
                description=(
                    "What is due, why, and what it will cost. The schedule has it made and then "
                    "works on it; made by hand it shows what the schedule would do now, and "
                    "writes nothing. Costs nothing."
                ),
                group_name=assets.name,
                kinds={"table"},
                owners=assets.owners,
                tags=assets.tags,
                code_version=PLAN_VERSION,
                metadata={COLUMN_SCHEMA: dg.MetadataValue.table_schema(columns(PLANNED_PAGES))},
            )
        ],
        retry_policy=INFRASTRUCTURE_RETRIES,
    )
    def nightly_plan(context: dg.AssetExecutionContext, config: PlanConfig) -> dg.MaterializeResult:
        with site_ledger() as ledger:
            if not config.tick:
                plan = make_plan(open_for_planning(assets.site, ledger), topic_rows(assets.site))
                context.log.info(told(plan))
                return dg.MaterializeResult(metadata=plan_metadata(plan))
            kept = _kept(ledger, assets, config.tick)
            if kept is not None:
                return _planned_before(kept)
            return _plan_tick(context, ledger, assets, config.tick)

    return nightly_plan


def _plan_tick(
    context: dg.AssetExecutionContext, ledger: Ledger, assets: SiteAssets, tick: str
) -> dg.MaterializeResult:
    """Plan, do the intake that the plan rehearsed, and keep the runs of what is due."""
    planned = open_for_planning(assets.site, ledger)
    plan = make_plan(planned, topic_rows(assets.site))
    context.log.info(told(plan))
    submit(planned, topic_rows(assets.site), requested_by=f"schedule of {assets.name}")
    with ledger.begin() as connection:
        register(context.instance, assets, connection)
    runs = list(_runs(assets, plan, _batches(context.instance, assets, plan)))
    shown = plan_metadata(plan)
    with ledger.begin() as connection:
        is_kept = nightly_plans.keep(
            connection,
            assets.name,
            tick=tick,
            run_id=context.run.run_id,
            told=told(plan),
            runs=runs,
        )
    if not is_kept:
        kept = _kept(ledger, assets, tick)
        assert kept is not None, "a plan is kept for some days"
        return _planned_before(kept)
    return dg.MaterializeResult(
        metadata={
            "tick": dg.MetadataValue.text(tick),
            "runs": dg.MetadataValue.int(len(runs)),
            **shown,
        }
    )


def _kept(ledger: Ledger, assets: SiteAssets, tick: str) -> NightlyPlan | None:
    with ledger.begin() as connection:
        return nightly_plans.of_tick(connection, assets.name, tick)


def _planned_before(plan: NightlyPlan) -> dg.MaterializeResult:
    """Of a tick that another run has planned: its runs are asked for as they were kept."""
    return dg.MaterializeResult(
        metadata={
            "tick": dg.MetadataValue.text(plan.tick),
            "runs": dg.MetadataValue.int(plan.runs),
            "plan": dg.MetadataValue.text(plan.told),
            "planned_by": dg.MetadataValue.dagster_run(plan.run_id),
        }
    )


def build_plan_job(assets: SiteAssets) -> AssetJob:
    """The job that the schedule asks for. It goes first: what waits in the queue can be long."""
    return dg.define_asset_job(
        plan_job_name(assets),
        selection=[assets.nightly_plan],
        description=(
            "Plans what is due. With the tick of a schedule in its configuration the runs of the "
            "plan are asked for; without one it only shows the plan."
        ),
        executor_def=dg.in_process_executor,
        tags=assets.tags | {PRIORITY_TAG: PRIORITY},
    )


def _batches(instance: dg.DagsterInstance, assets: SiteAssets, plan: Plan) -> list[Batch]:
    """The partitions with pages of ``plan`` that are due, as runs."""
    if not plan.today:
        return []
    most = assets.site.settings.schedule.pages_per_run
    due = {assets.partition_of(page.topic_key) for page in plan.today}
    if assets.buckets is None:
        return batches(instance.get_dynamic_partitions(assets.partitions_name), due, most)
    # As many buckets as hold a run's pages: 100 that hold one each, or one that holds 100.
    return batches(list(assets.buckets.names()), due, max(1, most * len(due) // len(plan.today)))


def _runs(assets: SiteAssets, plan: Plan, cut: Sequence[Batch]) -> Iterator[PlannedRun]:
    priced: defaultdict[str, list[PlannedPage]] = defaultdict(list)
    for page in plan.today:
        priced[assets.partition_of(page.topic_key)].append(page)
    for number, batch in enumerate(cut, start=1):
        pages = [page for key in batch.partitions for page in priced[key]]
        ends = (batch.partitions[0], batch.partitions[-1])
        yield PlannedRun(
            number=number,
            partitions=ends if batch.is_range else batch.partitions,
            is_range=batch.is_range,
            pages=len(pages),
            expected_usd=sum((page.expected_usd for page in pages), Decimal(0)),
            worst_usd=sum((page.worst_usd for page in pages), Decimal(0)),
        )
