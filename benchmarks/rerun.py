"""``rerun``: what it takes to find out that everything is done.

What belongs here: whole processes, as a person or a scheduler starts them, and the start-up that
each of them pays for.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.machine import load, spread
from benchmarks.place import command_environment, temporary_project
from content_pipeline.config import Project

GOAL_S = 3
"""Seconds for a run with nothing to do, after start-up."""

REPEATS = 5

RUN = ("run",)
START_UP = ("db", "status")
"""Starts like every command and asks the database whether it answers."""

COMMAND = Path(sys.executable).with_name("content-pipeline")


def bench_rerun(console: Console, *, pages: int) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=pages) as project:
        _wall_s(project, START_UP)  # the first start compiles the modules
        first_s = _wall_s(project, RUN)
        start_ups, runs = [], []
        for _ in range(REPEATS):
            start_ups.append(_wall_s(project, START_UP))
            runs.append(_wall_s(project, RUN))
    about = f"{before}, {load()} afterwards"
    console.print(_table(pages, first_s, start_ups, runs, about))


def _wall_s(project: Project, arguments: Sequence[str]) -> float:
    """Seconds of one command; ends the benchmark with the command's words when it fails."""
    started_at = time.monotonic()
    done = subprocess.run(
        [str(COMMAND), *arguments],
        env=command_environment(project),
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"content-pipeline {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return time.monotonic() - started_at


def _table(
    pages: int, first_s: float, start_ups: Sequence[float], runs: Sequence[float], about: str
) -> Table:
    table = Table(title=f"rerun: {pages} pages, {REPEATS} repeats; {about}", title_justify="left")
    table.add_column("wall, s: median (range)")
    table.add_column(justify="right")
    table.add_row("the first run, provider without latency", f"{first_s:.2f}")
    table.add_row("content-pipeline run, all pages done", spread(runs))
    table.add_row("content-pipeline db status (start-up)", spread(start_ups))
    after = statistics.median(runs) - statistics.median(start_ups)
    table.add_row(f"run after start-up (goal: {GOAL_S})", f"{after:.2f}")
    return table
