"""``buckets``: what Dagster and a run take on a site of 1,000,000 pages in buckets of them.

What belongs here: the site, its topic table taken in, a materialization for each bucket, and then
what people and runs wait for, beside a site of the same kind with one bucket and no page. Each goal
stands beside its value.
"""

import csv
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import yaml
from rich.console import Console
from rich.table import Table
from sqlalchemy import text

from benchmarks.bucket_work import Came, came_of
from benchmarks.machine import about, load
from benchmarks.place import REPOSITORY, site_of_example, temporary_project
from benchmarks.web_server import Served, serve
from content_pipeline.bootstrap import open_ledger
from content_pipeline.config import INSTANCE_FILE, Project
from content_pipeline.core.buckets import Buckets
from content_pipeline.ledger.database import Ledger
from content_pipeline.site_files import Site

LOAD_GOAL_S = 5
"""Seconds that the definitions may take beyond those of an empty site."""

CODE_SERVER_GOAL_MB = 600
PAGE_GOAL_S = 3
"""Until the page of an asset, with all its tabs, is answered."""

INTAKE_GOAL_MB = 400
"""Resident beyond what the process had before its first intake."""

BUCKET_GOAL_ROWS = 100
"""Rows that a bucket's run may read in the ledger for each of its pages, whatever the site has: it
looks at a page at each of its steps. Of few pages whole tables are read, and each hook that is told
the whole list of pages (the sitemap) reads that after the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything, on the full site but for ``empty``."""

    empty: Served
    full: Served
    first_intake: Came
    later_intake: Came
    """Of the same table again, as a whole."""
    known_bucket: Came
    """A bucket's rows, of the table that was taken in."""
    edited_bucket: Came
    """A bucket's rows, of a table that was edited since."""
    run: Came
    loads: dict[str, float]
    """Part of the benchmark → the machine's load after it."""


def bench_buckets(console: Console, *, pages: int, buckets: int) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=1) as project:
        shutil.copy(REPOSITORY / INSTANCE_FILE, project.root)
        measured = _measure(project, pages, buckets)
    caption = f"{pages:,} pages in {buckets:,} buckets, {about(before)}"
    console.print(_table(measured, caption))


def _measure(project: Project, pages: int, buckets: int) -> Measured:
    loads: dict[str, float] = {}
    empty = serve(project, _divided(project, 1))
    loads["empty"] = load()
    site = _divided(project, buckets)
    _write_table(site, pages)
    first = came_of(project, "take_in")
    loads["intake"] = load()
    later = came_of(project, "take_in")
    divided = Buckets(count=buckets)
    one, other = divided.name(buckets // 2), divided.name(buckets // 3)
    known = came_of(project, "want", other)
    run = came_of(project, "run", one)
    loads["run"] = load()
    with _opened(project) as ledger:
        _materialize_others(ledger, divided, one)
    full = serve(project, site)
    loads["full"] = load()
    _write_table(site, pages, edited="T1 anew")
    edited = came_of(project, "want", other)
    loads["edited"] = load()
    return Measured(
        empty=empty,
        full=full,
        first_intake=first,
        later_intake=later,
        known_bucket=known,
        edited_bucket=edited,
        run=run,
        loads=loads,
    )


def _divided(project: Project, buckets: int) -> Site:
    """The example, partitioned into so many buckets."""
    file = project.site_files()[0]
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    document["attributes"] |= {"partition_by": "bucket", "buckets": buckets}
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return site_of_example(project)


@contextmanager
def _opened(project: Project) -> Iterator[Ledger]:
    ledger = open_ledger(project)
    try:
        yield ledger
    finally:
        ledger.dispose()


def _write_table(site: Site, pages: int, edited: str = "T1") -> None:
    """A topic table of so many rows, the first of them named ``edited``."""
    assert site.table is not None
    with site.table.open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    source = site.settings.topics
    with site.table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row | {source.id: "t1", source.name: edited})
        for number in range(2, pages + 1):
            writer.writerow(row | {source.id: f"t{number}", source.name: f"T{number}"})


def _materialize_others(ledger: Ledger, divided: Buckets, one: str) -> None:
    """Copies of what the run of the bucket ``one`` told Dagster, for all the others.

    10,000 runs would take longer than everything that is measured.
    """
    with ledger.begin() as connection:
        for statement in _COPIES:
            connection.execute(text(statement), {"one": one, "names": list(divided.names())})


_COPIES = (
    """INSERT INTO dagster.event_logs
           (run_id, event, dagster_event_type, timestamp, step_key, asset_key, partition)
       SELECT run_id, event, dagster_event_type, timestamp, step_key, asset_key, name
       FROM dagster.event_logs, unnest(CAST(:names AS text[])) name
       WHERE dagster_event_type = 'ASSET_MATERIALIZATION' AND partition = :one AND name <> :one""",
    """INSERT INTO dagster.asset_check_executions
           (asset_key, check_name, partition, run_id, execution_status, evaluation_event,
            evaluation_event_timestamp, evaluation_event_storage_id,
            materialization_event_storage_id)
       SELECT asset_key, check_name, name, run_id, execution_status, evaluation_event,
              evaluation_event_timestamp, evaluation_event_storage_id,
              materialization_event_storage_id
       FROM dagster.asset_check_executions, unnest(CAST(:names AS text[])) name
       WHERE partition = :one AND name <> :one""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One line of the table."""

    what: str
    value: str
    empty: str = ""
    number: float | None = None
    """``value``, to compare with the goal."""
    goal: float | None = None
    """At most."""
    cpu_s: float | None = None
    """Of the processes that were waited for: comparable on a busy machine, as seconds are not."""
    load: float | None = None

    def cells(self) -> tuple[str, ...]:
        """As they are shown."""
        met = ""
        if self.goal is not None and self.number is not None:
            met = "met" if self.number <= self.goal else "MISSED"
        numbers = (
            "" if each is None else f"{each:.1f}" for each in (self.goal, self.cpu_s, self.load)
        )
        goal, cpu_s, at = numbers
        return (self.what, self.empty, self.value, goal, met, cpu_s, at)


def _table(measured: Measured, caption: str) -> Table:
    table = Table(title="buckets", caption=caption)
    for heading in ("measured", "empty site", "value", "goal", "", "CPU s", "load"):
        table.add_column(heading)
    for line in (*_dagster_lines(measured), *_intake_lines(measured), *_bucket_lines(measured)):
        table.add_row(*line.cells())
    return table


def _dagster_lines(measured: Measured) -> Iterator[_Line]:
    empty, full, at = measured.empty, measured.full, measured.loads["full"]
    more_s = full.load_s - empty.load_s
    yield _Line(
        what="definitions loaded, s more than empty",
        empty=f"{empty.load_s:.1f}, CPU {empty.load_cpu_s:.1f}",
        value=f"{more_s:+.1f}",
        number=more_s,
        goal=LOAD_GOAL_S,
        cpu_s=full.load_cpu_s,
        load=at,
    )
    yield _Line(
        what="an asset's page, the first time, s",
        empty=f"{empty.first_page_s:.2f}, CPU {empty.first_page_cpu_s:.2f}",
        value=f"{full.first_page_s:.2f}",
        number=full.first_page_s,
        goal=PAGE_GOAL_S,
        cpu_s=full.first_page_cpu_s,
        load=at,
    )
    yield _Line(
        what="an asset's page, later, s",
        empty=f"{empty.page_s:.2f}",
        value=f"{full.page_s:.2f}",
        number=full.page_s,
        goal=PAGE_GOAL_S,
        load=at,
    )
    yield _Line(what="  its slowest query, s", empty=empty.slowest, value=full.slowest)
    yield _Line(
        what="  green partitions", empty=f"{empty.materialized}", value=f"{full.materialized:,}"
    )
    yield _Line(
        what="code server's memory, MB",
        empty=f"{empty.code_server_mb:.0f}",
        value=f"{full.code_server_mb:.0f}",
        number=full.code_server_mb,
        goal=CODE_SERVER_GOAL_MB,
        load=at,
    )


def _intake_lines(measured: Measured) -> Iterator[_Line]:
    at = measured.loads["intake"]
    for name, came in (("first", measured.first_intake), ("second", measured.later_intake)):
        more_mb = came.peak_mb - came.base_mb
        yield _Line(
            what=f"the whole table, the {name} time, s",
            value=f"{came.seconds:.0f}, {came.pages:,} rows",
            cpu_s=came.cpu_s + came.database_cpu_s,
            load=at,
        )
        yield _Line(
            what="  memory beyond what it had, MB",
            empty=f"{came.base_mb:.0f} had",
            value=f"{more_mb:.0f}",
            number=more_mb,
            goal=INTAKE_GOAL_MB,
        )


def _bucket_lines(measured: Measured) -> Iterator[_Line]:
    for name, came, at in (
        ("a bucket's rows, table unchanged", measured.known_bucket, "run"),
        ("a bucket's rows, table edited", measured.edited_bucket, "edited"),
        ("a bucket's run", measured.run, "run"),
    ):
        yield _Line(
            what=f"{name}, s",
            value=f"{came.seconds:.1f}, {came.pages:,} pages",
            cpu_s=came.cpu_s + came.database_cpu_s,
            load=measured.loads[at],
        )
        yield _Line(
            what="  memory, MB", empty=f"{came.base_mb:.0f} had", value=f"{came.peak_mb:.0f}"
        )
        rows = came.rows_read / max(1, came.pages)
        yield _Line(
            what="  ledger's rows read for each page",
            value=f"{rows:.1f}",
            number=rows,
            goal=BUCKET_GOAL_ROWS,
        )
