"""``waiting``: what 10,000 pages cost that only wait for their time.

What belongs here: the sensor for due work as Dagster evaluates it, over a real instance and ledger,
while nothing is due and when five pages are; and the provider's own account of what it received.
"""

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import dagster as dg
from rich.console import Console
from rich.table import Table
from sqlalchemy import Connection, func, select

from benchmarks.machine import about, load, spread
from benchmarks.place import REPOSITORY, site_of_example, temporary_project
from content_pipeline.bootstrap import open_ledger, open_site, topic_rows
from content_pipeline.components.content_site import site_definitions
from content_pipeline.components.project import DAGSTER_HOME
from content_pipeline.components.sensor_ticks import UNFINISHED
from content_pipeline.config import HOME_VARIABLE, INSTANCE_FILE, Project
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import jobs, leases
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Claim, Selection
from content_pipeline.ledger.schema import leases as lease_rows
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.submit import submit
from content_pipeline.sandbox.supervisor import provider_status
from content_pipeline.site_files import Site

WAITING = 10_000
DUE = 5

TICKS = 9
GOAL_MS = 300
"""Milliseconds that one tick may take."""

EXAMPLE_ROWS = 240
FIRST_WAIT_S = 3_600
WAIT_SPREAD_S = 36_000
"""The pages wait an hour, and up to ten more: each has a time of its own."""

LEASE_S = 60
CLAIMED_AT_ONCE = 500

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

_FAILED = Failure(failure_class=FailureClass.BUDGET, message="the site's cap is used up")


@dataclass(slots=True)
class Ticks:
    """Evaluations of the sensor, one after the other."""

    milliseconds: list[float] = field(default_factory=list)
    runs_asked_for: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """Everything that could be busy."""

    runs: int
    leases: int
    calls: int
    """That the provider received, of whatever kind."""


def bench_waiting(console: Console) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=EXAMPLE_ROWS) as project, as_dagster(project) as instance:
        ledger = open_ledger(project)
        try:
            site = site_of_example(project)
            started_at = time.monotonic()
            waiting = _let_all_wait(open_site(site, project, ledger, purpose="bench"), site)
            prepared_s = time.monotonic() - started_at
            idle, at_work = _tick(instance, site, TICKS), _at_work(project, instance, ledger, site)
            _make_due(ledger, waiting[:DUE])
            due, still = _tick(instance, site, 1), _at_work(project, instance, ledger, site)
            run = _run_due_work(instance, site)
            after = _at_work(project, instance, ledger, site)
        finally:
            ledger.dispose()
    table = _table(idle, at_work)
    table.add_section()
    table.add_row(f"tick when {DUE} are due, ms", spread(due.milliseconds, ".0f"))
    table.add_row("runs it asked for", str(due.runs_asked_for))
    table.add_row("calls before that run", str(still.calls))
    table.add_row("calls after it, and the run", f"{after.calls}, {run}")
    table.caption = f"prepared in {prepared_s:.0f} s; {about(before)}"
    console.print(table)


@contextmanager
def as_dagster(project: Project) -> Iterator[dg.DagsterInstance]:
    """What a process of Dagster is started with: the instance file, and the variables naming it."""
    shutil.copy(REPOSITORY / INSTANCE_FILE, project.root)
    names = {HOME_VARIABLE: str(project.root), DAGSTER_HOME: str(project.root)}
    before = dict(os.environ)  # noqa: TID251 - this process plays one that Dagster started
    os.environ.update(names)  # noqa: TID251
    try:
        with dg.DagsterInstance.get() as instance:
            yield instance
    finally:
        os.environ.clear()  # noqa: TID251
        os.environ.update(before)  # noqa: TID251


def _let_all_wait(runtime: SiteRuntime, site: Site) -> list[str]:
    """Want 10,000 pages and set each back as a used-up cap does; the ids of their page jobs."""
    submit(runtime, many(list(topic_rows(site)), WAITING), requested_by=runtime.worker)
    selection = Selection(site=runtime.site.site)
    waiting: list[str] = []
    while claims := _claim(runtime, selection):
        with runtime.ledger.begin() as connection:
            for claim in claims:
                wait_s = FIRST_WAIT_S + len(waiting) * WAIT_SPREAD_S / WAITING
                _set_back(connection, claim, wait_s)
                waiting.append(claim.page_job_id)
    return waiting


def many(rows: list[dict[str, str]], count: int) -> Iterable[dict[str, str]]:
    """``count`` rows: the example's again and again, each time as other topics."""
    for number in range(count):
        row, turn = rows[number % len(rows)], number // len(rows)
        yield row | {"iso": f"{row['iso']}{turn}", "name": f"{row['name']} {turn}"}


def _claim(runtime: SiteRuntime, selection: Selection) -> list[Claim]:
    with runtime.ledger.begin() as connection:
        return leases.claim_due(
            connection, selection, most=CLAIMED_AT_ONCE, worker=runtime.worker, lease_s=LEASE_S
        )


def _set_back(connection: Connection, claim: Claim, wait_s: float) -> None:
    job = jobs.load(connection, claim.page_job_id)
    to = PageJobState.FAILED_RETRYABLE
    jobs.move(connection, job, to, lease=claim.lease, failure=_FAILED, wait_s=wait_s)
    leases.release(connection, claim.lease)


def _make_due(ledger: Ledger, page_job_ids: Iterable[str]) -> None:
    with ledger.begin() as connection:
        for page_job_id in page_job_ids:
            jobs.postpone(connection, jobs.load(connection, page_job_id), wait_s=0)


def _tick(instance: dg.DagsterInstance, site: Site, times: int) -> Ticks:
    """Evaluate the sensor as Dagster's code server does."""
    definitions, ticks = site_definitions(site), Ticks()
    sensor = definitions.resolve_sensor_def(f"{site.settings.site}_due_work_sensor")
    assert isinstance(sensor, dg.SensorDefinition)
    repository = definitions.get_repository_def()
    for _ in range(times):
        with dg.build_sensor_context(instance=instance, repository_def=repository) as context:
            started_at = time.perf_counter()
            answer = sensor.evaluate_tick(context)
            ticks.milliseconds.append(1000 * (time.perf_counter() - started_at))
        ticks.runs_asked_for += len(answer.run_requests or ())
        ticks.said = answer.skip_message or ""
    return ticks


def _at_work(project: Project, instance: dg.DagsterInstance, ledger: Ledger, site: Site) -> AtWork:
    provider = provider_status(project.data_home)
    assert provider is not None, f"the provider of {site.settings.site} is gone"
    with ledger.begin() as connection:
        held = connection.execute(select(func.count()).select_from(lease_rows)).scalar_one()
    return AtWork(
        runs=instance.get_runs_count(dg.RunsFilter(statuses=UNFINISHED)),
        leases=held,
        calls=len(provider.address.client().requests()),
    )


def _run_due_work(instance: dg.DagsterInstance, site: Site) -> str:
    """Carry out what the sensor asked for; how it ended."""
    job = site_definitions(site).resolve_job_def(f"{site.settings.site}_due_work")
    result = job.execute_in_process(instance=instance, run_config=_QUIET, raise_on_error=False)
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    counts = {name: count for name, count in run.tags.items() if name.startswith("pages/")}
    return ", ".join(f"{count} {name.removeprefix('pages/')}" for name, count in counts.items())


def _table(idle: Ticks, at_work: AtWork) -> Table:
    table = Table(
        title=f"waiting: {WAITING:,} pages whose time has not come",
        title_justify="left",
        caption_justify="left",
        show_header=False,
    )
    table.add_row(
        f"tick of the sensor, ms, {TICKS} times (goal: {GOAL_MS})",
        spread(idle.milliseconds, ".0f"),
    )
    table.add_row("runs they asked for", str(idle.runs_asked_for))
    table.add_row("what they said", idle.said)
    table.add_row("unfinished runs of Dagster", str(at_work.runs))
    table.add_row("pages that a worker holds", str(at_work.leases))
    table.add_row("calls that the provider received", str(at_work.calls))
    return table
