"""A sandbox server in the background, one per folder: found, started and stopped.

What belongs here: the life of the process as seen from the pipeline, whatever service it imitates.
Whether one is running is decided by its answer and its token alone: a pid or a port may belong to
something else by now.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from content_pipeline.core.errors import CallFailed, ConfigurationError
from content_pipeline.sandbox.control_calls import control_call
from content_pipeline.sandbox.instance import (
    EXIT_HELD,
    LOCK_FILE,
    LOG_FILE,
    InstanceRecord,
    locked,
    read_record,
)

START_LOCK_FILE = "start.lock"
START_S = 30.0
"""A start takes 0.5 s; on a machine with every core busy ten times that has been seen."""
STOP_S = 10.0
POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One kind of server in one folder."""

    what: str
    """As in "the sandbox provider"."""
    module: str
    """What ``python -m`` runs."""
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that answers, with what it says about itself."""

    record: InstanceRecord
    health: Mapping[str, Any]


def found(service: Service) -> Running | None:
    """The running server, or None when none answers."""
    record = read_record(service.folder)
    if record is None:
        return None
    try:
        health = control_call(service.what, record.port, "GET", "health")
    except CallFailed:
        return None
    return Running(record=record, health=health) if health.get("token") == record.token else None


def ensured(service: Service, settings: Mapping[str, Any]) -> Running:
    """The running server, started with ``settings`` if none answers.

    Safe to call from any number of processes at once. Raises ConfigurationError when none can be
    started.
    """
    running = found(service)
    if running is not None:
        return running
    folder = service.folder
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be made: {error.strerror}") from None
    held = f"another process has been starting the sandbox {service.what} all that time"
    with locked(folder / START_LOCK_FILE, START_S, held):
        return found(service) or _started(service, settings)


def stopped(service: Service) -> bool:
    """End the server and wait for its end; False when none was running.

    Raises ConfigurationError when it does not end. What it remembers stays.
    """
    running = found(service)
    if running is None:
        return False
    record = running.record
    control_call(service.what, record.port, "POST", "stop", {"token": record.token})
    pid = running.health["pid"]
    held = f"the sandbox {service.what} (pid {pid}) does not end; end it by hand"
    with locked(service.folder / LOCK_FILE, STOP_S, held):
        return True


def _started(service: Service, settings: Mapping[str, Any]) -> Running:
    log = service.folder / LOG_FILE
    _spawn(service, log, settings)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if running := found(service):
            return running
        time.sleep(POLL_S)
    raise ConfigurationError(
        f"the sandbox {service.what} did not answer within {START_S:g} s of its start; see {log}"
    )


def _spawn(service: Service, log: Path, settings: Mapping[str, Any]) -> None:
    """Start the process; it detaches itself, so neither a signal nor our end reaches it."""
    options = [
        part
        for name, value in settings.items()
        for part in (f"--{name.replace('_', '-')}", *_texts(value))
    ]
    command = [sys.executable, "-m", service.module, "--detach", "--data", str(service.folder)]
    with log.open("a") as output:
        finished = subprocess.run(  # noqa: S603  # our own module, our own options
            [*command, *options],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Nothing of our environment: keys of real services have no business in there.
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            cwd="/",
            timeout=START_S,
            check=False,
        )
    # A process that holds the folder and did not answer in time may just be slow: wait for it.
    if finished.returncode not in (0, EXIT_HELD):
        raise ConfigurationError(f"the sandbox {service.what} cannot be started; see {log}")


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, tuple) else [str(value)]
