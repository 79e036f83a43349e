"""What the machine tells: CPU seconds of processes, and how busy it is with other work.

What belongs here: reading counters. CPU seconds are worth comparing on a busy machine, wall
seconds only as ratios.
"""

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from content_pipeline.config import Project
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.sandbox.supervisor import provider_status


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSeconds:
    """CPU seconds used so far: by this process, the project's database and its provider."""

    client: float
    database: float
    provider: float

    def since(self, earlier: "CpuSeconds") -> "CpuSeconds":
        """What was used after ``earlier``."""
        return CpuSeconds(
            client=self.client - earlier.client,
            database=self.database - earlier.database,
            provider=self.provider - earlier.provider,
        )


def cpu_seconds(project: Project) -> CpuSeconds:
    """The counters now; 0 for a service that does not run."""
    provider = provider_status(project.data_home)
    return CpuSeconds(
        client=time.process_time(),
        database=tree_cpu_s(EmbeddedServer(project.data_home).status().pid),
        provider=tree_cpu_s(provider.address.pid if provider else None),
    )


def tree_cpu_s(pid: int | None) -> float:
    """CPU seconds of a process and its children; of children that ended, where the system keeps it.

    macOS forgets what a database connection used once it is closed.
    """
    if pid is None:
        return 0.0
    parent = psutil.Process(pid)
    total = 0.0
    for process in (parent, *parent.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
        total += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return total


def load() -> float:
    """How many processes wanted a CPU, on average over the last minute."""
    return os.getloadavg()[0]


def about(load_before: float) -> str:
    """The circumstances of a measurement that ends now, for the caption of its table."""
    return f"load {load_before:.1f} before, {load():.1f} after, on {os.cpu_count()} CPUs"


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """The median of some measurements and, of several, their range."""
    middle = format(statistics.median(values), form)
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):{form}}..{max(values):{form}})"
