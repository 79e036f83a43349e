"""``buckets``: what Dagster takes to show a site of 1,000,000 pages as buckets of them.

What belongs here: the pages put straight into the ledger, a materialization for each bucket and
asset, and then what a person and a scheduler wait for: loading the definitions, the memory of the
code server, the status of all partitions over GraphQL, the work of one run. Against a site of the
same kind with one bucket and no page.
"""

import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table
from sqlalchemy import Connection, create_engine, text

from benchmarks.machine import about, load
from benchmarks.place import REPOSITORY, command_environment, site_of_example, temporary_project
from content_pipeline.bootstrap import open_ledger
from content_pipeline.config import SITE_FILE, Project
from content_pipeline.core.buckets import Buckets, slot_of
from content_pipeline.core.states import Stage
from content_pipeline.ledger import buckets as bucket_rows
from content_pipeline.ledger.database import Ledger
from content_pipeline.postgres.urls import database_url

LOAD_GOAL_S = 5
"""Seconds that the definitions may take beyond those of an empty site."""

MEMORY_GOAL_MB = 600
STATUS_GOAL_S = 3

REPEATS = 5

DAGSTER_FOLDER = "DAGSTER_HOME"

SITE = "countries"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a process that holds a site's definitions, and answers about them, came to."""

    load_s: float
    rss_mb: float
    status_first_s: float
    status_s: float
    """The best of later ones: the UI asks again and again."""
    materialized: int


def bench_buckets(console: Console, *, pages: int, buckets: int) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=1) as project:
        shutil.copy(REPOSITORY / "dagster.yaml", project.root)
        _divide(project, 1)
        empty = _loaded(project, buckets=1)
        _divide(project, buckets)
        with _opened(project) as ledger:
            put_s = _timed(lambda: _put_pages(ledger, pages))
            _timed(lambda: _materialize(project, Buckets(count=buckets)))
            full = _loaded(project, buckets=buckets)
            slice_s = _slices(ledger, buckets)
    console.print(_table(pages, buckets, empty, full, slice_s, put_s, caption=about(before)))


def _divide(project: Project, buckets: int) -> None:
    """Let the example be partitioned into so many buckets."""
    file = project.site_files()[0].with_name(SITE_FILE)
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    document["attributes"] |= {"partition_by": "bucket", "buckets": buckets}
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


@contextmanager
def _opened(project: Project) -> Iterator[Ledger]:
    ledger = open_ledger(project)
    try:
        yield ledger
    finally:
        ledger.dispose()


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


_PUT = (
    """INSERT INTO content_pipeline.sites
           (site, title, base_url, owner, model_route, page_deadline_s)
       VALUES (:site, 'Large', 'https://large.example', '', 'none', 1209600)""",
    """INSERT INTO content_pipeline.pages (page_id, site, path, topic_key)
       SELECT 'p' || n, :site, '/p' || n || '/', 't' || n FROM generate_series(1, :pages) n""",
    """INSERT INTO content_pipeline.topics
           (site, topic_key, name, row_number, status, page_id, input_hash, current_job_id)
       SELECT :site, 't' || n, 'Topic ' || n, n, 'active', 'p' || n, 'h', 'j' || n
       FROM generate_series(1, :pages) n""",
    """INSERT INTO content_pipeline.page_jobs
           (page_job_id, site, topic_key, page_id, state, input_hash, input_columns,
            generation_version, owner, requested_by, deadline_at)
       SELECT 'j' || n, :site, 't' || n, 'p' || n, 'queued', 'h', '{}', 'v', '', 'bench',
              now() + interval '14 days'
       FROM generate_series(1, :pages) n""",
)


def _put_pages(ledger: Ledger, pages: int) -> None:
    """Put ``pages`` queued pages into the ledger, and let PostgreSQL get to know them."""
    with ledger.begin() as connection:
        for statement in _PUT:
            values = {"site": SITE, "pages": pages}
            connection.execute(text(statement), {k: values[k] for k in values if f":{k}" in statement})
    with ledger.begin() as connection:
        for table in ("topics", "pages", "page_jobs"):
            connection.execute(text(f"ANALYZE content_pipeline.{table}"))


def _materialize(project: Project, divided: Buckets) -> None:
    """One materialization of each bucket on each asset, as the runs of a month leave them."""
    subprocess.run(
        [sys.executable, "-m", "benchmarks.bucket_server", "materialize", str(divided.count)],
        env=_environment(project),
        cwd=REPOSITORY,
        check=True,
        stdout=subprocess.PIPE,
    )


def _loaded(project: Project, *, buckets: int) -> Loaded:
    """What a fresh process takes; compiled modules are there from the first one."""
    answers = [
        json.loads(
            subprocess.run(
                [sys.executable, "-m", "benchmarks.bucket_server", "answer", str(buckets)],
                env=_environment(project),
                cwd=REPOSITORY,
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout.splitlines()[-1]
        )
        for _ in range(2)
    ]
    return Loaded(**answers[-1])
