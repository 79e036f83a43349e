"""The sensor that keeps Dagster's picture of a site in agreement with the ledger.

What belongs here: one look, its limits and its cursor. What a look corrects is in ``run_repair``
and ``picture_repair``.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Self

import dagster as dg

from content_pipeline.components.picture_repair import Correction, correct
from content_pipeline.components.run_repair import RunsAtWork, judge_runs
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.site_at_work import opened_ledger
from content_pipeline.ledger import run_signs
from content_pipeline.ledger.changed_pages import Position, changed_pages
from content_pipeline.ledger.database import Ledger

INTERVAL_S = 10
"""With half a minute of silence and a second look, a dead run is ended within a minute."""

SETTLED_S = 20.0
"""A page that changed since is left for the next look: who changed it may just be telling of it."""

PAGES_AT_ONCE = 10
"""Between two looks at the clock; some 60 ms if all of them are to be told."""

BUDGET_S = 0.35
"""A look goes on with the next after this: it shares the daemon with all other sensors. One that
finds nothing to tell takes some milliseconds, one that tells of 50 pages this long."""

THE_BEGIN = Position(at=datetime(1970, 1, 1, tzinfo=UTC))


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairCursor:
    """What one look hands to the next."""

    position: Position = THE_BEGIN
    """Pages that changed before this agree."""
    read_again: tuple[str, ...] = ()
    """Ended runs for whose sake ``position`` was set back already: nothing more is owed to them."""
    planned: tuple[tuple[str, int], ...] = ()
    """Ended runs, and how many of the partitions that each had planned agree already."""

    def __str__(self) -> str:
        return json.dumps(asdict(self) | {"position": str(self.position)})

    @classmethod
    def parse(cls, written: str | None) -> Self:
        """The cursor as it was written; the begin without one."""
        if not written:
            return cls()
        kept = json.loads(written)
        return cls(
            position=Position.parse(kept["position"]),
            read_again=tuple(kept["read_again"]),
            planned=tuple((run_id, done) for run_id, done in kept.get("planned", ())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What one look did."""

    cursor: RepairCursor
    given_up: tuple[str, ...] = ()
    """Runs that were reported to Dagster: their worker is dead."""
    looked_at: int = 0
    materialized: int = 0
    """Events of pages that Dagster did not know to be done."""
    stories: int = 0
    """Pages or buckets whose checks were told anew."""
    is_caught_up: bool = False
    """No page is left that changed and settled."""

    def line(self) -> str:
        """One line for the sensor's page."""
        if not (self.looked_at or self.materialized or self.given_up):
            return "Dagster and the ledger agree."
        told = f"{self.looked_at} pages looked at, {self.materialized} materializations and "
        told += f"{self.stories} stories told"
        return f"{told}, {len(self.given_up)} runs given up" if self.given_up else f"{told}."


def run_once(
    instance: dg.DagsterInstance,
    ledger: Ledger,
    assets: SiteAssets,
    cursor: RepairCursor,
    *,
    settled_s: float = SETTLED_S,
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.monotonic,
) -> Repair:
    """One look: give up dead runs, then correct pages until the budget is used up.

    The pages of a run that ended without order are read again from its begin on. The cursor says
    so before the run counts as told, so a look that is cut short loses neither.
    """
    until = clock() + budget_s
    with ledger.begin() as connection:
        for run_id in cursor.read_again:
            run_signs.told(connection, run_id)
    runs = judge_runs(instance, ledger, assets.name, assets.site.settings.lane)
    repair = _nothing_yet(cursor, runs)
    while not repair.is_caught_up:
        if repair.cursor.planned:
            repair = _next_planned(instance, ledger, assets, repair)
        else:
            repair = _next_pages(instance, ledger, assets, runs, repair, settled_s)
        if clock() >= until:
            break
    return repair


def _nothing_yet(cursor: RepairCursor, runs: RunsAtWork) -> Repair:
    begins = [Position(at=sign.began_at) for sign in runs.ended]
    position = min([cursor.position, *begins])
    read_again = tuple(sign.run_id for sign in runs.ended)
    planned = tuple((run_id, 0) for run_id in read_again)
    return Repair(
        cursor=RepairCursor(
            position=position, read_again=read_again, planned=cursor.planned + planned
        ),
        given_up=tuple(runs.given_up),
    )


def _next_planned(
    instance: dg.DagsterInstance, ledger: Ledger, assets: SiteAssets, before: Repair
) -> Repair:
    """Show again some of the pages that were done before a run planned them and died.

    They are red since, though nothing about them changed.
    """
    (run_id, done), *others = before.cursor.planned
    planned = instance.get_records_for_run(
        run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
    ).records
    partitions = sorted({record.partition_key for record in planned if record.partition_key})
    some = partitions[done : done + PAGES_AT_ONCE]
    rest = [(run_id, done + len(some))] if done + len(some) < len(partitions) else []
    cursor = replace(before.cursor, planned=(*rest, *others))
    if not some:
        return replace(before, cursor=cursor)
    after = min(record.storage_id for record in planned)
    return _and(before, cursor, correct(instance, ledger, assets, some, after=after))


def _next_pages(
    instance: dg.DagsterInstance,
    ledger: Ledger,
    assets: SiteAssets,
    runs: RunsAtWork,
    before: Repair,
    settled_s: float,
) -> Repair:
    position = before.cursor.position
    with ledger.begin() as connection:
        found = changed_pages(
            connection, assets.name, position, settled_s=settled_s, most=PAGES_AT_ONCE
        )
    if not found:
        return replace(before, is_caught_up=True)
    untold = {assets.partition_of(page.topic_key) for page in found if page.mover not in runs.alive}
    corrected = correct(instance, ledger, assets, untold)
    return replace(
        _and(before, replace(before.cursor, position=found[-1].position), corrected),
        looked_at=before.looked_at + len(found),
        is_caught_up=len(found) < PAGES_AT_ONCE,
    )


def _and(before: Repair, cursor: RepairCursor, corrected: Correction) -> Repair:
    return replace(
        before,
        cursor=cursor,
        materialized=before.materialized + len(corrected.materialized),
        stories=before.stories + len(corrected.stories),
    )


def build_repair_sensor(assets: SiteAssets) -> dg.SensorDefinition:
    """Keeps Dagster's picture in agreement with the ledger. On: it pays nothing, starts no run."""

    @dg.sensor(
        name=f"{assets.name}_repair_sensor",
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Shows pages that were done when their run was dead already or without any run, and "
            "ends runs whose worker is gone. Pays for nothing and starts no run, so it is on."
        ),
        owners=assets.owners,
        tags=assets.tags,
    )
    def repair_sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        with opened_ledger() as ledger:
            cursor = RepairCursor.parse(context.cursor)
            repair = run_once(context.instance, ledger, assets, cursor)
        context.update_cursor(str(repair.cursor))
        return dg.SkipReason(repair.line())

    return repair_sensor
