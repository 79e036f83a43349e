"""``limit``: how well a provider's hidden limit of calls at once is used, by two processes.

What belongs here: real ``content-pipeline run`` processes against the sandbox provider, which
rejects every call beyond a number that nobody told them. What was under way, and what was rejected,
is read from the provider's own journal, once the processes have had a minute to learn.
"""

import csv
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from benchmarks.machine import about, load
from benchmarks.place import command_environment, temporary_project
from benchmarks.rerun import COMMAND
from content_pipeline.bootstrap import open_ledger, utc_now
from content_pipeline.config import Project
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.supervisor import ensure_provider_running

HIDDEN_LIMIT = 16
"""Calls at once; `--limit` takes another."""

MOST_CALLS = 64
"""What the site allows."""

PROCESSES = 2
LATENCY_MEDIAN_S = 3.0
"""Long beside what a page costs us, as with real models: else it would be our CPUs that limit."""
LEARNING_S = 60.0
MEASURED_S = 60.0
START_S = 60.0
"""Until the first call at the latest."""

GOAL_USED = 0.9
GOAL_REJECTED = 0.02

PAGES = 2000
"""More than are done meanwhile: a limit can only be used while pages wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What the provider saw of the measured time."""

    used_share: float
    """Of the hidden limit, over time."""
    calls: int
    rejected: int
    rejected_before: int
    """While the processes learned."""


def bench_hidden_limit(console: Console, *, hidden_limit: int = HIDDEN_LIMIT) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=1) as project:
        _prepare(project, hidden_limit)
        open_ledger(project).dispose()  # two processes would both start the database
        provider = ensure_provider_running(project.data_home).client()
        with _working(project):
            began_at = _first_call(provider)
            time.sleep(LEARNING_S + MEASURED_S)
            requests, generations = provider.requests(), provider.truth()["generations"]
        use = measured(requests, generations, began_at, hidden_limit)
    console.print(_table(use, hidden_limit, caption=about(before)))


def measured(
    requests: Sequence[dict[str, Any]],
    generations: Sequence[dict[str, Any]],
    began_at: datetime,
    hidden_limit: int,
) -> Use:
    """What the provider's records say of the time after learning."""
    start = began_at + timedelta(seconds=LEARNING_S)
    end = start + timedelta(seconds=MEASURED_S)
    busy = sum((_inside(each, start, end) for each in generations), start=timedelta(0))
    calls = [(_time(each), each["at_once"] > hidden_limit) for each in requests if each["at_once"]]
    return Use(
        used_share=busy / (hidden_limit * (end - start)),
        calls=sum(start <= at < end for at, _ in calls),
        rejected=sum(start <= at < end for at, rejected in calls if rejected),
        rejected_before=sum(at < start for at, rejected in calls if rejected),
    )


def _inside(generation: dict[str, Any], start: datetime, end: datetime) -> timedelta:
    """How much of a generation lies between two times."""
    done_at = _time(generation)
    began_at = done_at - timedelta(seconds=generation["latency_s"])
    return max(timedelta(0), min(done_at, end) - max(began_at, start))


def _time(record: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(record["at"])


def _first_call(provider: SandboxClient) -> datetime:
    deadline = time.monotonic() + START_S
    while not provider.health()["requests"]:
        if time.monotonic() > deadline:
            raise SystemExit(f"no call was made within {START_S:g} s")
        time.sleep(0.1)
    return utc_now()


@contextmanager
def _working(project: Project) -> Iterator[None]:
    """Processes at work on the site; killed afterwards, as nothing of it is needed."""
    log = project.data_home / "workers.log"
    with log.open("wb") as output:
        processes = [
            subprocess.Popen(
                [str(COMMAND), "run", "--quiet"],
                env=command_environment(project),
                cwd=project.root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            for _ in range(PROCESSES)
        ]
    try:
        yield
        if any(process.poll() is not None for process in processes):
            raise SystemExit(f"a process ended too early: {log.read_text()[-2000:]}")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _prepare(project: Project, hidden_limit: int) -> None:
    """Many topics made of one, and as many calls at once as the processes may ever make."""
    (file,) = project.site_files()
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    attributes = document["attributes"]
    attributes["generation"] |= {
        "in_flight": MOST_CALLS // PROCESSES,
        "in_flight_everywhere": MOST_CALLS,
        "sandbox": {
            "latency_median_s": LATENCY_MEDIAN_S,
            "latency_sigma": 0.5,
            "most_at_once": hidden_limit,
        },
    }
    attributes["budgets"]["site_day_usd"] = 10_000
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    _multiply(file.parent / attributes["topics"]["table"], attributes["topics"])


def _multiply(table: Path, source: dict[str, str]) -> None:
    with table.open(encoding="utf-8", newline="") as lines:
        (row,) = csv.DictReader(lines)
    with table.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, fieldnames=list(row))
        writer.writeheader()
        for number in range(PAGES):
            same = {column: f"{row[column]} {number:05}" for column in (source["name"],)}
            writer.writerow(row | same | {source["id"]: f"{row[source['id']]}{number:05}"})


def _table(use: Use, hidden_limit: int, caption: str) -> Table:
    table = Table(
        title=f"limit: {hidden_limit} calls at once allowed by the provider, {MOST_CALLS} by the "
        f"site; {PROCESSES} processes, after {LEARNING_S:g} s",
        caption=caption,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column(f"in {MEASURED_S:g} s")
    table.add_column("", justify="right")
    table.add_row(f"of the limit used (goal: {GOAL_USED:.0%})", f"{use.used_share:.1%}")
    share = use.rejected / use.calls if use.calls else 0.0
    table.add_row(f"of the calls rejected (goal: {GOAL_REJECTED:.0%})", f"{share:.2%}")
    table.add_row("calls", f"{use.calls:,}")
    table.add_row("rejected while it was learned", f"{use.rejected_before:,}")
    return table
