"""Work on a site in buckets, by a process of its own, with the memory that it took.

What belongs here: taking a table in, whole or for one bucket, and a run of Dagster on one bucket;
the process tells what it came to as one line of JSON. ``python -m benchmarks.bucket_work ACT
[BUCKET]``.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import dagster as dg
import psutil
from sqlalchemy import text

from benchmarks.machine import cpu_seconds
from benchmarks.place import REPOSITORY, site_of_example
from benchmarks.web_server import dagster_environment
from content_pipeline.adapters import tables
from content_pipeline.bootstrap import open_for_planning, open_ledger, topic_rows
from content_pipeline.components.content_site import site_definitions
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.config import Project, find_project
from content_pipeline.core.buckets import TopicsOf
from content_pipeline.core.states import Stage
from content_pipeline.ledger.database import Ledger
from content_pipeline.operations.submit import submit
from content_pipeline.site_files import Site

LOOK_EVERY_S = 0.01

COUNTED = ("topics", "pages", "page_jobs")
"""Tables of as many rows as the site has pages."""

COUNTS_LATE_S = 1.2
"""PostgreSQL makes what a connection has read known once a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What some work came to."""

    pages: int
    seconds: float
    cpu_s: float
    """Of the process itself; the database's beside it."""
    database_cpu_s: float
    base_mb: float
    """Resident before, with everything imported."""
    peak_mb: float
    """Resident at most."""
    rows_read: int
    """Of the tables with a row for each page, by whatever way."""


def came_of(project: Project, act: str, bucket: str = "") -> Came:
    """What ``act`` comes to, done by a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bucket_work", act, bucket]
    done = subprocess.run(
        command,
        env=dagster_environment(project),
        cwd=REPOSITORY,
        check=True,
        stdout=subprocess.PIPE,
    )
    return Came(**json.loads(done.stdout.splitlines()[-1]))


def _take_in(ledger: Ledger, site: Site, _bucket: str) -> int:
    planned = open_for_planning(site, ledger)
    return len(submit(planned, topic_rows(site), requested_by="bench").topic_keys)


def _want(ledger: Ledger, site: Site, bucket: str) -> int:
    buckets = site.settings.in_buckets
    assert buckets is not None
    only = TopicsOf(buckets, frozenset({bucket}))
    planned = open_for_planning(site, ledger)
    rows = topic_rows(site)
    return len(submit(planned, rows, requested_by="bench", only=only, alone=True).topic_keys)


def _run(_ledger: Ledger, site: Site, bucket: str) -> int:
    assets = SiteAssets(site=site)
    job = site_definitions(site).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.get() as instance:
        result = job.execute_in_process(
            instance=instance,
            asset_selection=[assets.key(stage) for stage in Stage],
            partition_key=bucket,
        )
        run = instance.get_run_by_id(result.run_id)
    assert run is not None
    return sum(int(value) for name, value in run.tags.items() if name.startswith("pages/"))


ACTS: dict[str, Callable[[Ledger, Site, str], int]] = {
    "take_in": _take_in,
    "want": _want,
    "run": _run,
}


class Peak:
    """The most memory that this process had resident, looked at every now and then."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.bytes = self._process.memory_info().rss

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            self.bytes = max(self.bytes, self._process.memory_info().rss)


def _measured(act: Callable[[Ledger, Site, str], int], bucket: str) -> Came:
    project = find_project()
    site = site_of_example(project)
    ledger = open_ledger(project)
    assert tables.ROWS_AT_ONCE  # the import of pandas is no part of what is measured
    before = _rows_read(ledger)
    peak = Peak()
    base, began, used = peak.bytes, time.monotonic(), cpu_seconds(project)
    with peak:
        pages = act(ledger, site, bucket)
    seconds, used = time.monotonic() - began, cpu_seconds(project).since(used)
    after = _rows_read(ledger)
    ledger.dispose()
    return Came(
        pages=pages,
        seconds=seconds,
        cpu_s=used.client,
        database_cpu_s=used.database,
        base_mb=base / 2**20,
        peak_mb=peak.bytes / 2**20,
        rows_read=after - before,
    )


def _rows_read(ledger: Ledger) -> int:
    time.sleep(COUNTS_LATE_S)
    with ledger.begin() as connection:
        found: int = connection.execute(_READ, {"names": list(COUNTED)}).scalar_one()
    return int(found)


_READ = text(
    "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_user_tables "
    "WHERE schemaname = 'content_pipeline' AND relname = ANY(:names)"
)


if __name__ == "__main__":
    print(json.dumps(asdict(_measured(ACTS[sys.argv[1]], sys.argv[2]))))
