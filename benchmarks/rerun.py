"""``rerun``: what it takes to find out that everything is done.

What belongs here: whole processes, as a person or a scheduler starts them, and the start-up that
each of them pays for.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.machine import about, load, spread
from benchmarks.place import command_environment, temporary_project
from content_pipeline.config import Project

GOAL_S = 3
"""Seconds for a run with nothing to do, after start-up."""

REPEATS = 5

RUN = ("run",)
START_UP = ("db", "status")
"""Starts like every command and asks the database whether it answers."""

COMMAND = Path(sys.executable).with_name("content-pipeline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What one command took."""

    wall_s: float
    cpu_s: float


def bench_rerun(console: Console, *, pages: int) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=pages) as project:
        _timed(project, START_UP)  # the first start compiles the modules
        first = _timed(project, RUN)
        start_ups, runs = [], []
        for _ in range(REPEATS):
            start_ups.append(_timed(project, START_UP))
            runs.append(_timed(project, RUN))
    console.print(_table(pages, first, start_ups, runs, caption=about(before)))


def _timed(project: Project, arguments: Sequence[str]) -> Process:
    """One command; ends the benchmark with the command's words when it fails."""
    used_before, started_at = _cpu_s_of_children(), time.monotonic()
    done = subprocess.run(
        [str(COMMAND), *arguments],
        env=command_environment(project),
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
    )
    wall_s = time.monotonic() - started_at
    if done.returncode != 0:
        raise SystemExit(f"content-pipeline {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return Process(wall_s=wall_s, cpu_s=_cpu_s_of_children() - used_before)


def _cpu_s_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _table(
    pages: int,
    first: Process,
    start_ups: Sequence[Process],
    runs: Sequence[Process],
    caption: str,
) -> Table:
    table = Table(
        title=f"rerun: {pages} pages, {REPEATS} repeats",
        caption=caption,
        title_justify="left",
        caption_justify="left",
    )
    for name in ("median (range)", "wall, s", "CPU, s"):
        table.add_column(name, justify="left" if name == "median (range)" else "right")
    for name, processes in (
        ("the first run: services started, no latency", [first]),
        ("content-pipeline run, all pages done", runs),
        ("content-pipeline db status (start-up)", start_ups),
    ):
        table.add_row(
            name,
            spread([process.wall_s for process in processes]),
            spread([process.cpu_s for process in processes]),
        )
    table.add_row(
        f"run after start-up (goal: {GOAL_S} s)",
        _difference(runs, start_ups, lambda process: process.wall_s),
        _difference(runs, start_ups, lambda process: process.cpu_s),
    )
    return table


def _difference(
    more: Sequence[Process], less: Sequence[Process], of: Callable[[Process], float]
) -> str:
    return f"{statistics.median(map(of, more)) - statistics.median(map(of, less)):.2f}"
