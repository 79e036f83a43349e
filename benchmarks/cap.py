"""``cap``: 64 processes after one cap of ten dollars, and how near they come without passing it.

What belongs here: processes that reserve and settle through leases of their own, an observer beside
them, and the same maximum once more from the rows that they leave. No call is made: a call is a
short sleep that ends in one of the ways calls end.
"""

import multiprocessing
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier

from rich.console import Console
from rich.table import Table
from sqlalchemy import Connection, text

from benchmarks.machine import about, load
from benchmarks.place import site_of_example, temporary_project
from content_pipeline.bootstrap import open_ledger, open_site, topic_rows
from content_pipeline.config import Project
from content_pipeline.core.errors import BudgetExhausted
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.money import round_usd
from content_pipeline.ledger import attempts, jobs, leases, spend
from content_pipeline.ledger.database import Lease, Ledger, create_ledger_engine
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline.ledger.spend import Caps
from content_pipeline.operations.submit import submit
from content_pipeline.site_files import site_of

PROCESSES = 64
SITES = 4

CAP_USD = Decimal(10)
CAPS = Caps(page_usd=Decimal(1_000), site_day_usd=Decimal(1_000), global_day_usd=CAP_USD)

WORST_CASES_USD = (0.002, 0.04)
"""From a small model's short page to a large model's long one."""

SHARE_OF_WORST = (0.3, 0.95)
"""What a call comes to: the output is rarely as long as it may become."""

GOAL = 0.95
"""Of the cap: what must be used before nothing fits any more."""

CALL_S = 0.02
"""Mean; so short that reservations and settlements always meet."""

PATIENCE = 40
"""Refusals in a row after which a process takes the cap for used up: others may still settle."""

LEASE_S = 600
"""Longer than the whole race, which renews nothing."""

_NOT_SENT = Failure(failure_class=FailureClass.TRANSIENT, message="nothing was sent")
_LOST = Failure(failure_class=FailureClass.UNCERTAIN, message="the answer was lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Racer:
    """One process, and the page it works on."""

    url: str
    number: int
    selection: Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What one process did."""

    calls: int
    refused: int


@dataclass(slots=True, kw_only=True)
class Observed:
    """What a connection of its own saw while the processes raced."""

    samples: int = 0
    budget_usd: Decimal = field(default=Decimal(0))
    """The most that the cap's row ever held."""
    rows_usd: Decimal = field(default=Decimal(0))
    """The most that the reservations and settlements ever came to."""
    disagreed: int = 0
    """Samples in which the two were not the same."""


def bench_cap(console: Console) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=PROCESSES // SITES) as project:
        ledger = open_ledger(project)
        try:
            racers = _racers(project, ledger)
            started_at = time.monotonic()
            with _observing(racers[0].url) as observed:
                made = _race(racers)
            wall_s = time.monotonic() - started_at
            with ledger.begin() as connection:
                recomputed, used = _most_committed(connection), _in_rows(connection)
        finally:
            ledger.dispose()
    table = _table(observed, recomputed, used, made)
    table.caption = f"{wall_s:.1f} s with the processes' start; {about(before)}"
    console.print(table)


def _racers(project: Project, ledger: Ledger) -> list[Racer]:
    """Sites that share the cap, with a page for each process."""
    example = site_of_example(project)
    racers: list[Racer] = []
    url = ledger.engine.url.render_as_string(hide_password=False)
    for number in range(SITES):
        name = f"site{number}"
        site = site_of(example.settings.model_copy(update={"site": name}), example.file)
        runtime = open_site(site, project, ledger, purpose="bench")
        for key in submit(runtime, topic_rows(site), requested_by=runtime.worker).topic_keys:
            selection = Selection(site=name, topics=(key,))
            racers.append(Racer(url=url, number=len(racers), selection=selection))
    return racers


def _race(racers: Sequence[Racer]) -> list[Made]:
    """Let all go at once, each a process; what each did."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.__main__"])  # 64 starts cost one import
    start: Barrier = context.Barrier(len(racers))
    results: SimpleQueue[Made] = context.SimpleQueue()
    children = [context.Process(target=_run, args=(racer, start, results)) for racer in racers]
    for child in children:
        child.start()
    for child in children:
        child.join()
    if any(child.exitcode for child in children):
        raise SystemExit("a process of the race failed; its words are above")
    return [results.get() for _ in children]


def _run(racer: Racer, start: Barrier, results: "SimpleQueue[Made]") -> None:
    ledger = Ledger(create_ledger_engine(racer.url))
    try:
        with ledger.begin() as connection:
            (claim,) = leases.claim_due(
                connection, racer.selection, most=1, worker=f"racer-{racer.number}", lease_s=LEASE_S
            )
            job = jobs.load(connection, claim.page_job_id)
        start.wait()
        results.put(_spend_all(ledger, job, claim.lease, random.Random(racer.number)))
        with ledger.begin() as connection:
            leases.release(connection, claim.lease)
    finally:
        ledger.dispose()


def _spend_all(ledger: Ledger, job: PageJob, lease: Lease, chance: random.Random) -> Made:
    """One call after the other, until nothing fits for long."""
    calls = refused = in_a_row = 0
    while in_a_row < PATIENCE:
        worst_usd = round_usd(Decimal(chance.uniform(*WORST_CASES_USD)))
        try:
            attempt_id = _begin(ledger, job, lease, number=calls + 1, worst_usd=worst_usd)
        except BudgetExhausted:
            refused, in_a_row = refused + 1, in_a_row + 1
            time.sleep(chance.expovariate(1 / CALL_S))
            continue
        calls, in_a_row = calls + 1, 0
        time.sleep(chance.expovariate(1 / CALL_S))
        _end(ledger, lease, attempt_id, worst_usd, chance)
    return Made(calls=calls, refused=refused)


def _begin(ledger: Ledger, job: PageJob, lease: Lease, *, number: int, worst_usd: Decimal) -> str:
    """Reserve, then note the attempt: its time is of when the cap's row was held."""
    with ledger.fenced(lease) as connection:
        spend.reserve(
            connection,
            attempt_id=attempts.attempt_id(job.page_job_id, AttemptKind.GENERATE, number),
            page_job_id=job.page_job_id,
            site=job.site,
            worst_case_usd=worst_usd,
            caps=CAPS,
        )
        return attempts.open_attempt(
            connection,
            job,
            AttemptKind.GENERATE,
            number=number,
            worker=lease.worker,
            run_id=None,
            step="article",
        )


def _end(
    ledger: Ledger, lease: Lease, attempt_id: str, worst_usd: Decimal, chance: random.Random
) -> None:
    """In one of the ways calls end, most of them well."""
    with ledger.fenced(lease) as connection:
        luck = chance.random()
        if luck < 0.04:
            spend.release(connection, attempt_id)
            attempts.fail(connection, attempt_id, _NOT_SENT)
        elif luck < 0.08:
            spend.keep_as_uncertain(connection, attempt_id)
            attempts.leave_uncertain(connection, attempt_id, _LOST)
        elif luck < 0.12:
            spend.settle_at_worst_case(connection, attempt_id)
            attempts.succeed(connection, attempt_id, revision=None, output_hash="hash")
        else:
            share = Decimal(chance.uniform(*SHARE_OF_WORST))
            spend.settle(connection, attempt_id, worst_usd * share)
            attempts.succeed(connection, attempt_id, revision=None, output_hash="hash")


_NOW = text(
    """
    SELECT (SELECT coalesce(sum(committed_usd), 0) FROM content_pipeline.budgets
            WHERE scope LIKE 'global:%'),
           (SELECT coalesce(sum(coalesce(settled_usd, reserved_usd)), 0)
            FROM content_pipeline.spend)
    """
)
"""One statement is one snapshot, so the two must agree."""

_MOST = text(
    """
    SELECT max(usd) FROM (
        SELECT sum(change) OVER (ORDER BY at, change) AS usd FROM (
            SELECT started_at AS at, reserved_usd AS change
            FROM content_pipeline.attempts JOIN content_pipeline.spend USING (attempt_id)
            UNION ALL
            SELECT finished_at, coalesce(settled_usd, reserved_usd) - reserved_usd
            FROM content_pipeline.attempts JOIN content_pipeline.spend USING (attempt_id)
        ) changes
    ) running
    """
)
"""Every attempt raised it when it began and lowered it when it ended, by the database's clock."""


@contextmanager
def _observing(url: str) -> Iterator[Observed]:
    """Look, and look again, from a connection that nobody else uses."""
    observed, over = Observed(), threading.Event()
    ledger = Ledger(create_ledger_engine(url))

    def watch() -> None:
        while not over.wait(0.001):
            with ledger.begin() as connection:
                in_budget, in_rows = connection.execute(_NOW).one()
            observed.samples += 1
            observed.budget_usd = max(observed.budget_usd, in_budget)
            observed.rows_usd = max(observed.rows_usd, in_rows)
            observed.disagreed += in_budget != in_rows

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield observed
    finally:
        over.set()
        watcher.join()
        ledger.dispose()


def _most_committed(connection: Connection) -> Decimal:
    most: Decimal = connection.execute(_MOST).scalar_one()
    return most


def _in_rows(connection: Connection) -> Decimal:
    usd: Decimal = connection.execute(_NOW).one()[1]
    return usd


def _table(observed: Observed, recomputed: Decimal, used: Decimal, made: Sequence[Made]) -> Table:
    calls, refused = sum(each.calls for each in made), sum(each.refused for each in made)
    table = Table(
        title=f"cap: ${CAP_USD} for {len(made)} processes on {SITES} sites",
        title_justify="left",
        caption_justify="left",
        show_header=False,
    )
    samples = f"of {observed.samples:,} samples"
    table.add_row("most in the cap's row", f"${observed.budget_usd:.4f} {samples}")
    table.add_row("most reserved and settled", f"${observed.rows_usd:.4f} {samples}")
    table.add_row("the same, from the rows they left", f"${recomputed:.4f} at any instant")
    table.add_row("samples in which row and sum differ", f"{observed.disagreed}")
    table.add_row(f"used of the cap (goal: {GOAL:.0%})", f"{used / CAP_USD:.2%}")
    table.add_row("calls", f"{calls:,}, {min(each.calls for each in made)} or more by each process")
    table.add_row("refused for the cap", f"{refused:,}")
    passed = max(observed.budget_usd, observed.rows_usd, recomputed) > CAP_USD
    table.add_row("the cap was", "[red]PASSED[/red]" if passed else "never passed")
    return table
