"""Several machines on one: Dagster's services, a Redis and workers, each a process group.

What belongs here: starting and ending the processes. What is true of their work is asked of the
sandbox by the test.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from content_pipeline.config import environment

HOST = "127.0.0.1"
POLL_S = 0.1
LONGEST_S = 180
"""Far beyond what any step takes; a test that waits so long fails."""

QUICK_DAEMON = """
import dagster._daemon.controller as controller
controller.DEFAULT_DAEMON_INTERVAL_SECONDS = 1
from dagster._daemon.cli import main
main()
"""
"""Dagster's daemon, that looks at backfills each second instead of each half minute."""


@dataclass(kw_only=True)
class Fleet:
    """Processes of one project that end with the block."""

    folder: Path
    """Of what they print."""
    variables: Mapping[str, str]
    _ends: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_error: object) -> None:
        self._ends.close()

    def start(self, name: str, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """A process in a group of its own, so that the death of a machine is one signal."""
        with self.log(name).open("ab") as output:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**environment(), "PYTHONWARNINGS": "ignore", **self.variables},
                cwd=self.folder,
                start_new_session=True,
            )
        self._ends.callback(end, process)
        return process

    def daemon(self, workspace: Path) -> "subprocess.Popen[bytes]":
        """Dagster's daemon: it starts runs and looks after them."""
        own = [sys.executable, "-c", QUICK_DAEMON, "run", "-w", str(workspace)]
        return self.start("daemon", own)

    def code_server(self, file: Path, port: int) -> "subprocess.Popen[bytes]":
        """What has the definitions of ``file``; runs are processes of its group."""
        own = [sys.executable, "-m", "dagster", "api", "grpc", "--python-file", str(file)]
        return self.start("code", [*own, "--host", HOST, "--port", str(port)])

    def web_server(self, workspace: Path, port: int) -> "subprocess.Popen[bytes]":
        """The UI's other side."""
        own = [sys.executable, "-m", "dagster_webserver", "-w", str(workspace)]
        return self.start("web", [*own, "-h", HOST, "-p", str(port), "--log-level", "error"])

    def worker(self, name: str) -> "subprocess.Popen[bytes]":
        """A machine: a worker that carries out one run at a time."""
        module = "content_pipeline.components.celery_worker"
        own = [sys.executable, "-m", module, "--concurrency", "1", "--hostname", f"{name}@{name}"]
        return self.start(name, own)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def told(self) -> str:
        """The last that each process printed, for the message of a failed test."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"== {log.name}\n{log.read_text()[-3000:]}" for log in logs)


def end(process: "subprocess.Popen[bytes]", number: int = signal.SIGKILL) -> None:
    """End it and wait: SIGKILL is for the whole group, as a machine dies; else it alone is told."""
    try:
        if number == signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])


def wait_until(reached: Callable[[], bool], fleet: Fleet) -> None:
    until = time.monotonic() + LONGEST_S
    while not reached():
        assert time.monotonic() < until, fleet.told()
        time.sleep(POLL_S)
