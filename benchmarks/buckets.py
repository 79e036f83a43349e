"""``buckets``: what Dagster and a run take on a site of 1,000,000 pages in buckets of them.

What belongs here: pages put straight into the ledger, a materialization for each bucket, and then
what people and runs wait for, beside a site of the same kind with one bucket and no page. It is a
real web server with its code server that is asked, over HTTP as the UI asks it.
"""

import csv
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg
import psutil
import yaml
from rich.console import Console
from rich.table import Table
from sqlalchemy import text

from benchmarks.machine import about, load
from benchmarks.place import REPOSITORY, command_environment, site_of_example, temporary_project
from content_pipeline.bootstrap import open_for_planning, open_ledger, topic_rows
from content_pipeline.components.project import DAGSTER_HOME
from content_pipeline.config import INSTANCE_FILE, Project
from content_pipeline.core.buckets import Buckets, TopicsOf
from content_pipeline.core.states import ALL_STAGES, Stage
from content_pipeline.ledger import buckets as bucket_rows
from content_pipeline.ledger.database import Ledger
from content_pipeline.operations.submit import submit
from content_pipeline.site_files import Site
from content_pipeline_tests.adapters.llm.loopback import free_port
from content_pipeline_tests.machines import web_server

LOAD_GOAL_S = 5
"""Seconds that the definitions may take beyond those of an empty site."""

MEMORY_GOAL_MB = 600
STATUS_GOAL_S = 3

T = TypeVar("T")

REPEATS = 3
PATIENCE_S = 120

DEFINITIONS = """
from pathlib import Path
import dagster as dg
from content_pipeline.components.content_site import site_definitions
from content_pipeline.site_files import load_site

@dg.definitions
def defs():
    return site_definitions(load_site(Path({file!r})))
"""

LOADED = "{workspaceOrError {... on Workspace {locationEntries {loadStatus locationOrLoadError \
{__typename}}}}}"

STATUS = """query Status($path: [String!]!) {assetNodeOrError(assetKey: {path: $path}) {
... on AssetNode {partitionKeysByDimension {partitionKeys} partitionStats {numMaterialized}
assetPartitionStatuses {... on DefaultPartitionStatuses {materializedPartitions}}}}}"""
"""What the page of an asset asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a web server and its code server came to on one site."""

    load_s: float
    """From the start of the processes until the site is loaded."""
    code_server_mb: float
    first_status_s: float
    """Dagster counts what it has not counted before."""
    status_s: float
    materialized: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """What a run on one bucket takes before and beside its work on pages."""

    table_s: float
    """Reading the topic table and taking in the bucket's rows."""
    taken_in: int
    unfinished_s: float
    """Finding its pages in the ledger."""


def bench_buckets(console: Console, *, pages: int, buckets: int) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=1) as project:
        shutil.copy(REPOSITORY / INSTANCE_FILE, project.root)
        empty = _serve(project, _divided(project, 1))
        site = _divided(project, buckets)
        with _opened(project) as ledger:
            put_s, _ = _timed(lambda: _put_pages(ledger, site, pages))
            _write_table(site, pages)
            bucket = _one_bucket(ledger, site)
            _materialize(project, ledger, Buckets(count=buckets))
        full = _serve(project, site)
    console.print(_table(empty, full, bucket, put_s, f"{pages:,} pages, {about(before)}"))


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


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    began = time.monotonic()
    found = work()
    return time.monotonic() - began, found


_PAGE_ID = """left(encode(sha256(
    ('["page","' || CAST(:site AS text) || '","/t' || n || '/"]')::bytea), 'hex'), 32)"""
"""As ``core.identity.page_id`` makes it."""

_PUT = (
    """INSERT INTO content_pipeline.sites
           (site, title, base_url, owner, model_route, page_deadline_s)
       SELECT :site, 'Large', 'https://large.example', '', 'none', 1209600 WHERE :pages > 0""",
    f"""INSERT INTO content_pipeline.pages (page_id, site, path, topic_key)
       SELECT {_PAGE_ID}, :site, '/t' || n || '/', 't' || n FROM generate_series(1, :pages) n""",
    f"""INSERT INTO content_pipeline.topics
           (site, topic_key, name, row_number, status, page_id, input_hash, current_job_id)
       SELECT :site, 't' || n, 'T' || n, n, 'active', {_PAGE_ID}, 'h', 'j' || n
       FROM generate_series(1, :pages) n""",
    f"""INSERT INTO content_pipeline.page_jobs
           (page_job_id, site, topic_key, page_id, state, input_hash, input_columns,
            generation_version, owner, requested_by, deadline_at)
       SELECT 'j' || n, :site, 't' || n, {_PAGE_ID}, 'queued', 'h', '{{}}', 'v', '', 'bench',
              now() + interval '14 days'
       FROM generate_series(1, :pages) n""",
    """INSERT INTO content_pipeline.transitions (page_job_id, sequence, to_state, why, worker)
       SELECT 'j' || n, 1, 'queued', 'asked for', 'bench' FROM generate_series(1, :pages) n""",
)


def _put_pages(ledger: Ledger, site: Site, pages: int) -> None:
    """Put ``pages`` queued pages into the ledger, and let PostgreSQL get to know them."""
    with ledger.begin() as connection:
        for statement in _PUT:
            values = {"site": site.settings.site, "pages": pages}
            clause = text(statement)
            connection.execute(clause, {name: values[name] for name in clause.compile().params})
    with ledger.begin() as connection:
        connection.execute(text("ANALYZE"))


def _write_table(site: Site, pages: int) -> None:
    """A topic table with a row for each of them."""
    assert site.table is not None
    with site.table.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    source = site.settings.topics
    with site.table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        for number in range(1, pages + 1):
            writer.writerow(row | {source.id: f"t{number}", source.name: f"T{number}"})


def _one_bucket(ledger: Ledger, site: Site) -> Bucket:
    divided = site.settings.in_buckets
    assert divided is not None
    name = divided.name(divided.count // 2)
    planned = open_for_planning(site, ledger)
    topics = TopicsOf(divided, frozenset({name}))

    def take_in() -> int:
        rows = topic_rows(site)
        taken = submit(planned, rows, requested_by="bench", only=topics, alone=True)
        return len(taken.topic_keys)

    def find() -> int:
        each = [divided.slots(name)]
        parts = bucket_rows.unfinished(ledger, site.settings.site, each, ALL_STAGES)
        return sum(map(len, parts))

    table_s, taken_in = _timed(take_in)
    unfinished_s, _ = _timed(find)
    return Bucket(table_s=table_s, taken_in=taken_in, unfinished_s=unfinished_s)


def _environment(project: Project) -> dict[str, str]:
    return {**command_environment(project), DAGSTER_HOME: str(project.root)}


def _materialize(project: Project, ledger: Ledger, divided: Buckets) -> None:
    """A materialization of each bucket: one that Dagster logs, and copies of it for the others.

    10,000 that Dagster logs one by one would take longer than everything that is measured.
    """
    command = [sys.executable, "-m", "benchmarks.buckets", divided.name(0)]
    subprocess.run(command, env=_environment(project), cwd=REPOSITORY, check=True)
    with ledger.begin() as connection:
        connection.execute(text(_COPY), {"first": divided.name(0), "names": list(divided.names())})


_COPY = """
    INSERT INTO dagster.event_logs
        (run_id, event, dagster_event_type, timestamp, step_key, asset_key, partition)
    SELECT run_id, event, dagster_event_type, timestamp, step_key, asset_key, name
    FROM dagster.event_logs, unnest(CAST(:names AS text[])) name
    WHERE dagster_event_type = 'ASSET_MATERIALIZATION' AND partition = :first AND name <> :first"""


def _materialize_here(bucket: str) -> None:
    """By a process that has the project as its home."""
    asset = dg.AssetKey(["countries", Stage.ARTIFACT.value])
    with dg.DagsterInstance.get() as instance:
        instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=bucket))


def _serve(project: Project, site: Site) -> Served:
    """Start a web server on ``site`` and ask it; the second start, with compiled modules."""
    module = project.root / "large.py"
    module.write_text(DEFINITIONS.format(file=str(site.file)), encoding="utf-8")
    with _web_server(project, module) as server:
        server.wait_until_loaded()
    began = time.monotonic()
    with _web_server(project, module) as server:
        server.wait_until_loaded()
        load_s = time.monotonic() - began
        first_s, materialized = _timed(lambda: server.materialized(site))
        later = [_timed(lambda: server.materialized(site))[0] for _ in range(REPEATS)]
        return Served(
            load_s=load_s,
            code_server_mb=server.code_server_mb(),
            first_status_s=first_s,
            status_s=min(later),
            materialized=materialized,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebServer:
    """Dagster's web server, which started a code server of its own."""

    process: subprocess.Popen[bytes]
    port: int

    def ask(self, query: str, variables: Mapping[str, Any] | None = None) -> Any:
        """The data that a query is answered with."""
        return web_server.WebServer(port=self.port).ask(query, **(variables or {}))

    def wait_until_loaded(self) -> None:
        """Until the definitions are there."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                (entry,) = self.ask(LOADED)["workspaceOrError"]["locationEntries"]
            except OSError:
                time.sleep(0.05)
                continue
            if entry["loadStatus"] == "LOADED":
                found = entry["locationOrLoadError"]["__typename"]
                if found != "RepositoryLocation":
                    raise SystemExit(f"the site cannot be loaded: {found}")
                return
        raise SystemExit(f"no definitions were loaded within {PATIENCE_S} s")

    def materialized(self, site: Site) -> int:
        """How many partitions of the artifact are green, asked as the UI asks."""
        path = [site.settings.site, Stage.ARTIFACT.value]
        node = self.ask(STATUS, {"path": path})["assetNodeOrError"]
        return len(node["assetPartitionStatuses"]["materializedPartitions"])

    def code_server_mb(self) -> float:
        """The resident memory of the largest process below the web server."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        return float(max(process.memory_info().rss for process in below)) / 2**20


@contextmanager
def _web_server(project: Project, module: Path) -> Iterator[WebServer]:
    port = free_port()
    command = [
        str(Path(sys.executable).with_name("dagster-webserver")),
        *("--python-file", str(module), "--port", str(port), "--log-level", "error"),
    ]
    with (project.root / "server.log").open("ab") as log:
        # Not where this repository's .env says which project it is.
        process = subprocess.Popen(
            command, env=_environment(project), cwd=project.root, stdout=log, stderr=log
        )
    try:
        yield WebServer(process=process, port=port)
    finally:
        process.terminate()
        process.wait()


def _table(empty: Served, full: Served, bucket: Bucket, put_s: float, caption: str) -> Table:
    table = Table("measured", "empty", "full", "goal", title="buckets", caption=caption)
    more_s = full.load_s - empty.load_s
    goal = f"{LOAD_GOAL_S} s more; {more_s:+.1f}"
    table.add_row("definitions are loaded, s", f"{empty.load_s:.1f}", f"{full.load_s:.1f}", goal)
    memory = (f"{served.code_server_mb:.0f}" for served in (empty, full))
    table.add_row("code server's memory, MB", *memory, f"{MEMORY_GOAL_MB}")
    first = (f"{served.first_status_s:.2f}" for served in (empty, full))
    table.add_row("status of all partitions, first, s", *first, f"{STATUS_GOAL_S}")
    later = (f"{served.status_s:.2f}" for served in (empty, full))
    table.add_row("status of all partitions, later, s", *later, f"{STATUS_GOAL_S}")
    table.add_row("green partitions", str(empty.materialized), f"{full.materialized:,}", "")
    table.add_row("a bucket's rows taken in, s", "", f"{bucket.table_s:.1f}", "")
    table.add_row("  of which rows", "", f"{bucket.taken_in:,}", "")
    table.add_row("a bucket's pages found, ms", "", f"{1000 * bucket.unfinished_s:.1f}", "")
    table.add_row("pages put into the ledger, s", "", f"{put_s:.0f}", "")
    return table


if __name__ == "__main__":
    _materialize_here(sys.argv[1])
