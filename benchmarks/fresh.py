"""``fresh``: from a clone to a site on the disk with one command, as a newcomer has it.

What belongs here: ``make run`` in a clone of the last commit. The package cache is warm when this
machine has installed the project before; what is not committed is not measured.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.machine import about, load
from benchmarks.place import REPOSITORY, command_environment, take_away
from content_pipeline.config import Project


def bench_fresh(console: Console) -> None:
    """Measure and print, or say why not."""
    folder = Path(tempfile.mkdtemp(prefix="cp-fresh-"))
    folder.chmod(0o755)  # root's database server runs as nobody, who must be able to enter
    clone = Project(root=folder / "clone")
    before, walls = load(), {}
    try:
        _run(clone, "git", "clone", "--quiet", str(REPOSITORY), str(clone.root))
        if not (clone.root / "Makefile").is_file():
            console.print("fresh: skipped, the last commit holds no Makefile")
            return
        for name, target in (("make setup", "setup"), ("make run", "run"), ("again", "run")):
            walls[name] = _run(
                clone, "make", "-C", str(clone.root), f"PYTHON={sys.executable}", target
            )
    finally:
        take_away(clone, folder)
    table = Table(
        title="fresh: a new clone",
        caption=about(before),
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("step")
    table.add_column("wall, s", justify="right")
    for name, wall_s in walls.items():
        table.add_row(name, f"{wall_s:.1f}")
    console.print(table)


def _run(clone: Project, *command: str) -> float:
    """Seconds of one command; ends the benchmark with the command's words when it fails."""
    started_at = time.monotonic()
    done = subprocess.run(
        command, env=command_environment(clone), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return time.monotonic() - started_at
