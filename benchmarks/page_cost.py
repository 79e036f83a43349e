"""``page``: what one page of a backfill costs, in CPU by process and in words to the database.

What belongs here: the lane alone, with as many calls in flight as a whole backfill has, next to the
same calls made by as many threads that do nothing else: less than those no lane can cost.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.backfill import GOAL, IN_FLIGHT, LATENCY_S, submitted, write_site
from benchmarks.machine import CpuSeconds, about, cpu_seconds, load, spread
from benchmarks.place import temporary_project
from benchmarks.statements import counted, statement_table
from content_pipeline.bootstrap import open_ledger
from content_pipeline.config import Project
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import jobs, reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.operations.lane import advance
from content_pipeline.operations.requests import build_request, position

CPUS = 2
"""Of the machine that the goal of a backfill is meant for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One pass over all pages."""

    cpu: CpuSeconds
    wall_s: float

    @property
    def cpu_s(self) -> float:
        """Of all processes."""
        return self.cpu.client + self.cpu.database + self.cpu.provider


def bench_page_cost(console: Console, *, pages: int, rounds: int) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=1) as project:
        write_site(project, pages)
        ledger = open_ledger(project)
        try:
            _lane(project, ledger, "warm", pages)
            lanes = [_lane(project, ledger, f"lane{number}", pages) for number in range(rounds)]
            calls = [_calls(project, ledger, f"calls{number}") for number in range(rounds)]
            with counted(ledger.engine) as said:
                _lane(project, ledger, "counted", pages)
        finally:
            ledger.dispose()
    console.print(_table(lanes, calls, pages, caption=about(before)))
    # Submitting is one transaction of a site, and no page's.
    lane = {name: each for name, each in said.items() if not name.startswith("submit.")}
    console.print(statement_table("page: what is said to the database", lane, pages))


def _lane(project: Project, ledger: Ledger, name: str, pages: int) -> Cost:
    runtime, selection = submitted(project, ledger, name)
    cpu, began = cpu_seconds(project), time.monotonic()
    states = [settled.state for settled in advance(runtime, selection)]
    cost = Cost(cpu=cpu_seconds(project).since(cpu), wall_s=time.monotonic() - began)
    if states.count(PageJobState.PUBLISHED) != pages:
        raise SystemExit("the lane did not publish every page: nothing to compare")
    return cost


def _calls(project: Project, ledger: Ledger, name: str) -> Cost:
    """The calls alone, through the same client; nothing of them is kept."""
    runtime, _ = submitted(project, ledger, name)
    with ledger.begin() as connection:
        wanted = [page.page_job_id for page in reports.page_reports(connection, name)]
        found = jobs.load_all(connection, wanted).values()
    requests = []
    for job in found:
        asked = position(runtime, job)
        assert asked.step is not None
        # Its own id, of which the provider has no answer yet.
        requests.append(build_request(runtime, job, asked.step, asked.prompt, job.page_job_id))
    cpu, began = cpu_seconds(project), time.monotonic()
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        for raw in pool.map(runtime.model.send, requests):
            runtime.model.read(raw)
    return Cost(cpu=cpu_seconds(project).since(cpu), wall_s=time.monotonic() - began)


def _table(lanes: Sequence[Cost], calls: Sequence[Cost], pages: int, caption: str) -> Table:
    table = Table(
        title=f"page: {pages} pages, {IN_FLIGHT} calls in flight, {LATENCY_S} s a call",
        caption=caption,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("CPU, ms a page: median (range)")
    ways = {"lane": lanes, "the calls alone": calls}
    for name in ways:
        table.add_column(name, justify="right")
    for process in ("client", "database", "provider"):
        table.add_row(
            process,
            *(_each(pages, [getattr(c.cpu, process) for c in costs]) for costs in ways.values()),
        )
    table.add_row("all", *(_each(pages, [cost.cpu_s for cost in costs]) for costs in ways.values()))
    table.add_section()
    bound_s = pages * LATENCY_S / IN_FLIGHT
    table.add_row(
        f"CPU to bound, on {CPUS} CPUs (goal of a backfill: {GOAL})",
        *(
            spread([cost.cpu_s / CPUS / bound_s for cost in costs], ".2f")
            for costs in ways.values()
        ),
    )
    table.add_row(
        "wall to bound",
        *(spread([cost.wall_s / bound_s for cost in costs], ".2f") for costs in ways.values()),
    )
    return table


def _each(pages: int, seconds: Sequence[float]) -> str:
    return spread([1000 * each / pages for each in seconds], ".1f")
