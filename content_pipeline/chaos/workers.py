"""Workers of a chaos run: real ``content-pipeline run`` processes, killed and started again.

What belongs here: starting, watching, killing, and knowing when nothing is left to do. A worker is
killed through its own process handle, so nothing else on the machine can be hit.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from content_pipeline.bootstrap import utc_now
from content_pipeline.chaos.project import SITE, Arena
from content_pipeline.chaos.site_records import pages_out
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.states import FINAL
from content_pipeline.ledger import overview

WORKERS = 2
"""Processes at once: what must hold between machines must hold between these."""

PROGRAM = (sys.executable, "-c", "from content_pipeline.cli import main; main()")
"""What the installed script ``content-pipeline`` is made of."""

POLL_S = 0.05
MOST_ROUNDS = 6
"""Starts without a kill; whatever is open then stays open and counts as missing."""

CANNOT_WORK = 2
"""Exit status of a command that was used or configured wrongly."""

SPARE_S = 120.0
PER_PAGE_S = 2.0
"""A run that takes longer than this for each page, and the above, hangs: the verdict comes then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """How the workers fared."""

    kills: tuple[datetime, ...]
    """When all workers were killed together."""
    killed: int
    """Worker processes that died so."""
    started: int
    wall_s: float
    """From the first start to the last end, the rerun not included."""

    def followed_by(self, other: "Campaign") -> "Campaign":
        """Both as one; what was between them took no time."""
        return Campaign(
            kills=self.kills + other.kills,
            killed=self.killed + other.killed,
            started=self.started + other.started,
            wall_s=self.wall_s + other.wall_s,
        )


@dataclass(slots=True)
class _Crew:
    """The workers that are at work."""

    arena: Arena = field(repr=False)
    log: Path
    started: int = 0
    at_work: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, count: int) -> None:
        with self.log.open("ab") as output:
            for _ in range(count):
                self.at_work.append(_spawn(self.arena, output.fileno()))
                self.started += 1

    def is_done(self) -> bool:
        """Whether every worker has ended. Raises ConfigurationError when one could not work."""
        for worker in self.at_work:
            if worker.poll() == CANNOT_WORK:
                raise ConfigurationError(
                    f"a worker of the chaos run could not work: {_last_line(self.log)}"
                )
        return all(worker.poll() is not None for worker in self.at_work)

    def kill(self) -> int:
        """End all that are at work without any chance to clean up; how many there were."""
        alive = [worker for worker in self.at_work if worker.poll() is None]
        for worker in alive:
            worker.kill()
        for worker in alive:
            worker.wait()
        self.at_work.clear()
        return len(alive)


def drive(arena: Arena, kill_shares: Sequence[float]) -> Campaign:
    """Run workers until nothing is left to do, killing all of them at each share of done pages.

    Ends with one more run, which must find nothing to do. Raises ConfigurationError.
    """
    started_at = time.monotonic()
    deadline = started_at + SPARE_S + PER_PAGE_S * len(arena.names)
    kills: list[datetime] = []
    killed = 0
    with _crew(arena) as crew:
        for share in kill_shares:
            crew.start(WORKERS)
            if _reached(crew, arena, share, deadline):
                kills.append(utc_now())
                killed += crew.kill()
        for _ in range(MOST_ROUNDS):
            crew.start(WORKERS)
            _wait(crew, deadline)
            if not _is_open(arena) or time.monotonic() > deadline:
                break
        wall_s = time.monotonic() - started_at
        crew.start(1)
        _wait(crew, deadline + SPARE_S)
        return Campaign(kills=tuple(kills), killed=killed, started=crew.started, wall_s=wall_s)


@contextmanager
def _crew(arena: Arena) -> Iterator[_Crew]:
    crew = _Crew(arena=arena, log=arena.project.data_home / "workers.log")
    try:
        yield crew
    finally:
        crew.kill()


def _spawn(arena: Arena, output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  # our own program, our own arguments
        [*PROGRAM, "run", "--site", SITE, "--quiet"],
        cwd=arena.project.root,
        env=_environment(arena.variables),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The worker imports this very package, wherever it starts."""
    package = str(Path(__file__).resolve().parents[2])
    return {**variables, "PYTHONPATH": package}


def _reached(crew: _Crew, arena: Arena, share: float, deadline: float) -> bool:
    """Wait for ``share`` of the pages; False when the workers ended before."""
    wanted = share * len(arena.names)
    while not crew.is_done() and time.monotonic() < deadline:
        if pages_out(arena) >= wanted:
            return True
        time.sleep(POLL_S)
    return False


def _wait(crew: _Crew, deadline: float) -> None:
    while not crew.is_done() and time.monotonic() < deadline:
        time.sleep(POLL_S)
    crew.kill()


def _is_open(arena: Arena) -> bool:
    with arena.ledger.begin() as connection:
        status = overview.site_status(connection, SITE)
    unfinished = any(count for state, count in status.states.items() if state not in FINAL)
    return unfinished or bool(status.pending_announcements)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
