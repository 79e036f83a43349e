"""``sensors``: what a tick of each sensor, and the schedule's, takes at 10,000 and 1,000,000 pages.

What belongs here: each sensor's ``run_once`` over a real instance and a ledger of realistic states
while nothing is due, which is when it looks furthest; and those of the repair sensor that have
pages to tell of, which is when it has most to do.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import dagster as dg
from rich.console import Console
from rich.table import Table
from sqlalchemy import URL, create_engine, make_url, text

from benchmarks.instant import article_of
from benchmarks.machine import about, load, spread
from benchmarks.place import site_of_example, temporary_project
from benchmarks.waiting import EXAMPLE_ROWS, as_dagster
from content_pipeline.bootstrap import open_ledger, utc_now
from content_pipeline.components import (
    due_work,
    partitions_sensor,
    planned_runs,
    reconciling,
    repairing,
    site_watch,
)
from content_pipeline.components.nightly_plan import build_plan_job
from content_pipeline.components.partitions_sensor import Cursor
from content_pipeline.components.planned_runs import PlanCursor
from content_pipeline.components.repairing import THE_BEGIN, RepairCursor
from content_pipeline.components.schedule import build_schedule
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.config import Project, environment
from content_pipeline.ledger import noted_topics
from content_pipeline.ledger.changed_pages import Position
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import SCHEMA
from content_pipeline.postgres.urls import database_url
from content_pipeline_tests.ledger.large_ledger import count, fill, without_guards

SIZES = (10_000, 1_000_000)
GOALS_S = {10_000: 0.5, 1_000_000: 1.0}
"""Seconds that one tick may take, by pages in the ledger."""

TICKS = 5
FILLED_AT_ONCE = 200_000

UNTOLD = 2_000
"""Pages that Dagster does not know, for the repair sensor's ticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the sensors look."""

    project: Project
    instance: dg.DagsterInstance
    ledger: Ledger
    assets: SiteAssets

    def fill(self, first: int, last: int) -> None:
        """Write pages as the server's own account; the first of them with their drafts."""
        server = create_engine(server_url(self.project))
        for start in range(first, last + 1, FILLED_AT_ONCE):
            end = min(last, start + FILLED_AT_ONCE - 1)
            fill(server, self.assets.name, start, end, announcements=2_000 if start == 1 else 0)
        with server.begin() as connection:
            without_guards(connection)
            values = {
                "site": self.assets.name,
                "first": first,
                "last": first + UNTOLD - 1,
                "article": ARTICLE,
            }
            for statement in _UNTOLD:
                connection.execute(text(statement), values)
        count(server)
        server.dispose()


ARTICLE = article_of({"Name": "A country", "Capital": "Its capital"}).model_dump_json()

_UNTOLD = (
    f"""INSERT INTO {SCHEMA}.draft_revisions (page_id, revision, page_job_id, attempt_id, article,
        output_hash)
        SELECT page_id, 1, page_job_id, :site || '-agenerate' || substr(topic_key, 2),
               CAST(:article AS jsonb), 'h'
        FROM {SCHEMA}.page_jobs WHERE site = :site
          AND CAST(substr(topic_key, 2) AS int) BETWEEN :first AND :last AND revision = 1""",
    f"""UPDATE {SCHEMA}.page_jobs
        SET updated_at = now() - make_interval(days => 9,
                                               secs => CAST(substr(topic_key, 2) AS int))
        WHERE site = :site AND CAST(substr(topic_key, 2) AS int) BETWEEN :first AND :last""",
)
"""Drafts of pages, which are the first in the order of their last change from then on."""


def bench_sensors(console: Console, *, most: int) -> None:
    """Measure and print; ``most``: sizes above it are left out."""
    before, started_at = load(), time.monotonic()
    sizes = [size for size in SIZES if size <= most]
    rows: dict[str, list[str]] = {name: [] for name, _ in _sensors()}
    filled_s: list[float] = []
    with temporary_project(pages=EXAMPLE_ROWS) as project, as_dagster(project) as instance:
        ledger = open_ledger(project)
        place = Place(
            project=project,
            instance=instance,
            ledger=ledger,
            assets=SiteAssets(site=site_of_example(project)),
        )
        try:
            for first, size in zip([1, *(size + 1 for size in sizes)], sizes, strict=False):
                filling_from = time.monotonic()
                place.fill(first, size)
                filled_s.append(time.monotonic() - filling_from)
                for name, tick in _sensors():
                    rows[name].append(spread(_ticks(place, tick), ".3f"))
        finally:
            ledger.dispose()
    table = Table(
        "nothing due",
        *(f"{size:,} pages, goal {GOALS_S[size]:g}" for size in sizes),
        title=f"sensors: seconds per tick, {TICKS} times",
        title_justify="left",
        caption=about(before),
        caption_justify="left",
    )
    for name, measured in rows.items():
        table.add_row(name, *measured)
    table.add_section()
    table.add_row("(filling the ledger)", *(f"{seconds:.0f}" for seconds in filled_s))
    console.print(table)
    console.print(f"in all {time.monotonic() - started_at:.0f} s")


def _sensors() -> list[tuple[str, Callable[[Place], object]]]:
    """Each sensor's name and one tick of it."""
    return [
        ("due work", lambda p: due_work.run_once(p.instance, p.ledger, p.assets)),
        ("reconcile", lambda p: reconciling.run_once(p.instance, p.ledger, p.assets)),
        ("site changes", lambda p: site_watch.run_once(p.instance, p.ledger, p.assets)),
        ("partitions, all new", lambda p: _register_from(p, 0)),
        ("partitions, none new", lambda p: _register_from(p, _last_topic(p))),
        ("planned runs", lambda p: planned_runs.run_once(p.instance, p.ledger, p.assets, _NO_PLAN)),
        ("the schedule's tick", _schedule_tick),
        ("repair, nothing changed", _Repair(since=Position(at=utc_now())).tick),
        ("repair, Dagster knows no page", _Repair(since=THE_BEGIN).tick),
    ]


@dataclass(slots=True, kw_only=True)
class _Repair:
    """Ticks of the repair sensor, each going on where the one before stopped."""

    since: Position

    def tick(self, place: Place) -> None:
        cursor = RepairCursor(position=self.since)
        look = repairing.run_once(place.instance, place.ledger, place.assets, cursor, settled_s=0)
        self.since = look.cursor.position


_NO_PLAN = PlanCursor()


def _schedule_tick(place: Place) -> object:
    """The whole evaluation, as Dagster's code server does it."""
    schedule = build_schedule(place.assets, build_plan_job(place.assets))
    at = utc_now()
    with dg.build_schedule_context(place.instance, scheduled_execution_time=at) as context:
        return schedule.evaluate_tick(context)


def _last_topic(place: Place) -> int:
    with place.ledger.begin() as connection:
        return noted_topics.last_noted(connection, place.assets.name)


def _register_from(place: Place, number: int) -> object:
    cursor = Cursor(newest=number)
    return partitions_sensor.run_once(place.instance, place.ledger, place.assets, cursor)


def _ticks(place: Place, tick: Callable[[Place], object]) -> list[float]:
    """Seconds of some ticks, after one that warms the caches."""
    tick(place)
    taken: list[float] = []
    for _ in range(TICKS):
        started_at = time.perf_counter()
        tick(place)
        taken.append(time.perf_counter() - started_at)
    return taken


def server_url(project: Project) -> URL:
    url = make_url(database_url(environment(), project.data_home).ledger_url)
    return url.set(username="postgres")
