"""What the ticks of a site's schedule have planned, and the runs that are to be asked for.

What belongs here: keeping a plan's runs once per tick, and reading on in them. A plan is kept as a
whole or not at all, so whoever asks for its runs, and how often, always asks for the same ones.
Only the newest plan of a site counts: what is still due of an earlier one is in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select
from sqlalchemy.dialects.postgresql import insert as insert_once

from content_pipeline.ledger.schema import nightly_batches, nightly_plans

KEPT_DAYS = 30
"""How long a plan is kept; its runs are Dagster's, and they stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run of a plan."""

    number: int
    """From 1 on, in the order in which the runs are asked for."""
    partitions: tuple[str, ...]
    """Of a range, its two ends."""
    is_range: bool
    pages: int
    expected_usd: Decimal
    worst_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyPlan:
    """What one tick has planned."""

    plan_id: int
    tick: str
    """When the schedule ticked, UTC: ``2026-03-01T02:00Z``."""
    run_id: str
    """Of Dagster's run that planned."""
    told: str
    """The plan in one line, for people."""
    runs: int
    planned_at: datetime
    age_s: float


def keep(
    connection: Connection,
    site: str,
    *,
    tick: str,
    run_id: str,
    told: str,
    runs: Sequence[PlannedRun],
) -> bool:
    """Keep the plan of ``tick``; False, and nothing changes, when that tick has one already."""
    planned = connection.execute(
        insert_once(nightly_plans)
        .values(site=site, tick=tick, run_id=run_id, told=told, batches=len(runs))
        .on_conflict_do_nothing(index_elements=["site", "tick"])
        .returning(nightly_plans.c.plan_id)
    ).scalar_one_or_none()
    if planned is None:
        return False
    if runs:
        connection.execute(
            insert(nightly_batches),
            [
                {
                    "plan_id": planned,
                    "number": run.number,
                    "partitions": list(run.partitions),
                    "is_range": run.is_range,
                    "pages": run.pages,
                    "expected_usd": run.expected_usd,
                    "worst_usd": run.worst_usd,
                }
                for run in runs
            ],
        )
    too_old = func.clock_timestamp() - func.make_interval(0, 0, 0, KEPT_DAYS)
    connection.execute(
        delete(nightly_plans)
        .where(nightly_plans.c.site == site, nightly_plans.c.plan_id != planned)
        .where(nightly_plans.c.created_at < too_old)
    )
    return True


def of_tick(connection: Connection, site: str, tick: str) -> NightlyPlan | None:
    """The plan of one tick."""
    return _one(connection, nightly_plans.c.site == site, nightly_plans.c.tick == tick)


def newest(connection: Connection, site: str) -> NightlyPlan | None:
    """The plan that counts."""
    return _one(connection, nightly_plans.c.site == site)


def runs_after(connection: Connection, plan_id: int, number: int, *, most: int) -> list[PlannedRun]:
    """The next runs of a plan after the one with ``number``."""
    rows = connection.execute(
        select(nightly_batches)
        .where(nightly_batches.c.plan_id == plan_id, nightly_batches.c.number > number)
        .order_by(nightly_batches.c.number)
        .limit(most)
    )
    return [
        PlannedRun(
            number=row.number,
            partitions=tuple(row.partitions),
            is_range=row.is_range,
            pages=row.pages,
            expected_usd=row.expected_usd,
            worst_usd=row.worst_usd,
        )
        for row in rows
    ]


def _one(connection: Connection, *conditions: ColumnElement[bool]) -> NightlyPlan | None:
    age = func.extract("epoch", func.clock_timestamp() - nightly_plans.c.created_at)
    row = connection.execute(
        select(nightly_plans, age.label("age_s"))
        .where(*conditions)
        .order_by(nightly_plans.c.plan_id.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    return NightlyPlan(
        plan_id=row.plan_id,
        tick=row.tick,
        run_id=row.run_id,
        told=row.told,
        runs=row.batches,
        planned_at=row.created_at,
        age_s=float(row.age_s),
    )
