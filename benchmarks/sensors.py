"""``sensors``: what a tick of each sensor takes at 10,000 and at 1,000,000 pages, and a night.

What belongs here: each sensor's ``run_once`` over a real instance and a ledger of realistic states
while nothing is due, which is when it looks furthest; and the schedule's evaluation, and a backfill
over pages that are all done, of a site of 10,000 pages.
"""

import csv
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
from benchmarks.waiting import EXAMPLE_ROWS, as_dagster, many
from content_pipeline.bootstrap import open_ledger, open_site, topic_rows, utc_now
from content_pipeline.components import due_work, partitions_sensor, reconciling, site_watch
from content_pipeline.components.content_site import site_definitions
from content_pipeline.components.partitions_sensor import Cursor
from content_pipeline.components.schedule import RANGE_END, RANGE_START
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.config import Project, environment
from content_pipeline.core.states import Stage
from content_pipeline.ledger import noted_topics
from content_pipeline.ledger.database import Ledger
from content_pipeline.operations.submit import submit
from content_pipeline.postgres.urls import database_url
from content_pipeline.site_files import Site
from content_pipeline_tests.ledger.large_ledger import count, fill, without_guards

SIZES = (10_000, 1_000_000)
GOALS_S = {10_000: 0.5, 1_000_000: 1.0}
"""Seconds that one tick may take, by pages in the ledger."""

TICKS = 5
FILLED_AT_ONCE = 200_000

NIGHT_PAGES = 10_000
NIGHT_GOAL_S = 120
PAGES_PER_RUN = 500

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the sensors look."""

    project: Project
    instance: dg.DagsterInstance
    ledger: Ledger
    assets: SiteAssets

    def fill(self, first: int, last: int) -> None:
        """Write pages as the server's own account."""
        server = create_engine(_server_url(self.project))
        for start in range(first, last + 1, FILLED_AT_ONCE):
            end = min(last, start + FILLED_AT_ONCE - 1)
            fill(server, self.assets.name, start, end, announcements=2_000 if start == 1 else 0)
        server.dispose()


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
    console.print(_night_table())
    console.print(f"in all {time.monotonic() - started_at:.0f} s")


def _sensors() -> list[tuple[str, Callable[[Place], object]]]:
    """Each sensor's name and one tick of it."""
    return [
        ("due work", lambda p: due_work.run_once(p.instance, p.ledger, p.assets)),
        ("reconcile", lambda p: reconciling.run_once(p.instance, p.ledger, p.assets)),
        ("site changes", lambda p: site_watch.run_once(p.instance, p.ledger, p.assets)),
        ("partitions, all new", lambda p: _register_from(p, 0)),
        ("partitions, none new", lambda p: _register_from(p, _last_topic(p))),
    ]


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


def _night_table() -> Table:
    """The evaluation of the schedule where every page is done, and a backfill over all of them."""
    before = load()
    with temporary_project(pages=EXAMPLE_ROWS) as project, as_dagster(project) as instance:
        ledger = open_ledger(project)
        try:
            site = _all_published(project, ledger)
            started_at = time.monotonic()
            said = _evaluate_schedule(instance, site)
            planned_s = time.monotonic() - started_at
            runs = _backfill(instance, site)
            backfilled_s = time.monotonic() - started_at - planned_s
        finally:
            ledger.dispose()
    table = Table(
        title=f"sensors: a night of {NIGHT_PAGES:,} published pages (goal: {NIGHT_GOAL_S} s)",
        title_justify="left",
        caption=about(before),
        caption_justify="left",
        show_header=False,
    )
    table.add_row("plan and intake by the schedule, s", f"{planned_s:.1f}")
    table.add_row("what it said", said)
    table.add_row(f"backfill of all pages in {runs} runs, s", f"{backfilled_s:.1f}")
    table.add_row("together, s", f"{planned_s + backfilled_s:.1f}")
    return table


def _all_published(project: Project, ledger: Ledger) -> Site:
    """Want 10,000 pages, and let them be published by the database."""
    site = site_of_example(project)
    rows = list(many(list(topic_rows(site)), NIGHT_PAGES))
    assert site.table is not None
    with site.table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    runtime = open_site(site, project, ledger, purpose="bench")
    submit(runtime, topic_rows(site), requested_by=runtime.worker)
    server = create_engine(_server_url(project))
    with server.begin() as connection:
        without_guards(connection)
        for statement in _PUBLISHED:
            values = {"site": site.settings.site, "article": _ARTICLE}
            connection.execute(text(statement), values)
    count(server)
    server.dispose()
    return site


_ARTICLE = article_of({"Name": "A country", "Capital": "Its capital"}).model_dump_json()
_PUBLISHED = (
    """UPDATE content_pipeline.page_jobs SET state = 'published', sequence = 8, revision = 1,
       finished_at = now() WHERE site = :site AND state = 'queued'""",
    """UPDATE content_pipeline.pages SET last_revision = 1, published_revision = 1,
       published_content_hash = 'c', published_title = 't', published_meta_description = 'm',
       remote_id = page_id, remote_url = 'https://example.com', remote_fingerprint = 'f',
       content_changed_at = now(), verified_at = now(), first_public_at = now()
       WHERE site = :site""",
    """INSERT INTO content_pipeline.attempts (attempt_id, page_job_id, kind, step, number, epoch,
       state, worker, generation_version, input_hash, model, input_tokens, output_tokens,
       started_at, finished_at)
       SELECT page_job_id || kind, page_job_id, kind, 'article', 1, 1, 'succeeded', 'w',
              generation_version, input_hash, 'gpt-5-mini', 900, 700, now(), now()
       FROM content_pipeline.page_jobs, (VALUES ('generate'), ('publish')) k(kind)
       WHERE site = :site""",
    """INSERT INTO content_pipeline.draft_revisions (page_id, revision, page_job_id, attempt_id,
       article, output_hash)
       SELECT page_id, 1, page_job_id, page_job_id || 'generate', CAST(:article AS jsonb), 'h'
       FROM content_pipeline.page_jobs WHERE site = :site""",
    """INSERT INTO content_pipeline.spend (attempt_id, site, page_job_id, day, state, reserved_usd,
       settled_usd)
       SELECT page_job_id || 'generate', site, page_job_id, current_date - 1, 'settled', 0.02, 0.004
       FROM content_pipeline.page_jobs WHERE site = :site""",
)


def _server_url(project: Project) -> URL:
    url = make_url(database_url(environment(), project.data_home).ledger_url)
    return url.set(username="postgres")


def _evaluate_schedule(instance: dg.DagsterInstance, site: Site) -> str:
    """As Dagster's code server does; what the schedule said."""
    definitions = site_definitions(site)
    schedule = definitions.resolve_schedule_def(f"{site.settings.site}_schedule")
    assert isinstance(schedule, dg.ScheduleDefinition)
    with dg.build_schedule_context(instance, scheduled_execution_time=utc_now()) as context:
        answer = schedule.evaluate_tick(context)
    return answer.skip_message or f"{len(answer.run_requests or ())} runs"


def _backfill(instance: dg.DagsterInstance, site: Site) -> int:
    """Ask for every page once more, in ranges; how many runs that were."""
    assets = SiteAssets(site=site)
    job = site_definitions(site).resolve_implicit_global_asset_job_def()
    keys = list(instance.get_dynamic_partitions(assets.partitions_name))
    for start in range(0, len(keys), PAGES_PER_RUN):
        batch = keys[start : start + PAGES_PER_RUN]
        job.execute_in_process(
            instance=instance,
            asset_selection=[assets.key(stage) for stage in Stage],
            run_config=_QUIET,
            tags={RANGE_START: batch[0], RANGE_END: batch[-1]},
        )
    return -(-len(keys) // PAGES_PER_RUN)
