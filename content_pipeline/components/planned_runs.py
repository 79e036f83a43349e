"""The runs of a plan, asked for one after the other by a sensor.

What belongs here: from a plan that the ledger keeps to Dagster's run requests. A range of
partitions and a list of pages are runs of one job. Each run is asked for under a key of its own, by
which Dagster starts it once, however often a tick is repeated. What becomes of a run that is killed
is the ledger's: its pages are due again at the next tick of the schedule, at their last checkpoint.
"""

from dataclasses import dataclass

import dagster as dg

from content_pipeline.components.dagster_private import AssetJob
from content_pipeline.components.sensor_ticks import UNFINISHED, asking, kept_cursor, stored_cursor
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.site_at_work import opened_ledger
from content_pipeline.ledger import nightly_plans
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.nightly_plans import NightlyPlan, PlannedRun

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"

PLAN_TAG = "content_pipeline/plan"
"""The tick that a run belongs to: filter the list of runs by it to see all of a night."""

INTERVAL_S = 15

PER_TICK = 8
"""Dagster writes three events per page while it puts a run into its queue: a second or so for a run
of 100, in which the daemon's other sensors wait."""

AHEAD = 40
"""Runs of a site that stand in the queue or work. A plan of 5,000 runs would otherwise keep every
other site waiting until it is through."""

GOOD_FOR_S = 86_400.0
"""A plan is for its day: its budget and its publish rate were those of that day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCursor:
    """Up to which run of which plan everything was asked for."""

    plan_id: int = 0
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedFor:
    """What one tick came to."""

    cursor: PlanCursor
    requests: tuple[dg.RunRequest, ...] = ()
    said: str = ""
    """Why no run is asked for, for people."""


def pages_job_name(assets: SiteAssets) -> str:
    """What the job is called whose runs carry out a plan."""
    return f"{assets.name}_scheduled_pages"


def run_once(
    instance: dg.DagsterInstance, ledger: Ledger, assets: SiteAssets, cursor: PlanCursor
) -> AskedFor:
    """The next runs of the newest plan, as many as the queue has room for."""
    unfinished = instance.get_runs_count(
        dg.RunsFilter(job_name=pages_job_name(assets), statuses=UNFINISHED)
    )
    with asking(ledger) as connection:
        plan = nightly_plans.newest(connection, assets.name)
        if plan is None:
            return AskedFor(cursor=cursor, said="The schedule has planned nothing yet.")
        done = cursor.number if cursor.plan_id == plan.plan_id else 0
        most = max(0, min(PER_TICK, AHEAD - unfinished))
        runs = nightly_plans.runs_after(connection, plan.plan_id, done, most=most)
    if not plan.runs:
        return AskedFor(cursor=cursor, said=f"{plan.tick}: {plan.told}")
    if done >= plan.runs:
        return AskedFor(cursor=cursor, said=f"All {plan.runs} runs of {plan.tick} are asked for.")
    if plan.age_s > GOOD_FOR_S:
        left = f"{plan.runs - done} runs of {plan.tick} were not asked for within its day"
        return AskedFor(cursor=cursor, said=f"{left}; what is still due is in the next plan.")
    if not runs:
        return AskedFor(cursor=cursor, said=f"{unfinished} runs are at work or in the queue.")
    return AskedFor(
        cursor=PlanCursor(plan_id=plan.plan_id, number=runs[-1].number),
        requests=tuple(_request(assets, plan, run) for run in runs),
    )


def _request(assets: SiteAssets, plan: NightlyPlan, run: PlannedRun) -> dg.RunRequest:
    run_key = f"{assets.name}:{plan.tick}:{run.number}"
    tags = {
        PLAN_TAG: plan.tick,
        "plan/batch": f"{run.number} of {plan.runs}",
        "plan/pages": str(run.pages),
        "plan/expected_usd": f"{run.expected_usd:.4f}",
        "plan/worst_usd": f"{run.worst_usd:.4f}",
    }
    if run.is_range:
        tags |= {RANGE_START: run.partitions[0], RANGE_END: run.partitions[-1]}
        return dg.RunRequest(run_key=run_key, tags=tags)
    named = "topics" if assets.buckets is None else "buckets"
    config = {"ops": {assets.lane_op: {"config": {named: list(run.partitions)}}}}
    return dg.RunRequest(run_key=run_key, tags=tags, run_config=config)


def build_planned_runs_sensor(assets: SiteAssets, job: AssetJob) -> dg.SensorDefinition:
    """Asks for the runs of ``job`` that the schedule has planned. On: it carries out plans only."""

    @dg.sensor(
        name=f"{assets.name}_planned_runs_sensor",
        job=job,
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Asks for the runs that a tick of the schedule has planned, some at a time. Without a "
            "plan of the schedule, which is off at first, it does nothing, so it is on."
        ),
        owners=assets.owners,
        tags=assets.tags,
    )
    def planned_runs_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with opened_ledger() as ledger:
            cursor = kept_cursor(PlanCursor, context.cursor)
            asked = run_once(context.instance, ledger, assets, cursor)
        stored = stored_cursor(asked.cursor)
        if not asked.requests:
            return dg.SensorResult(skip_reason=asked.said, cursor=stored)
        return dg.SensorResult(run_requests=list(asked.requests), cursor=stored)

    return planned_runs_sensor
