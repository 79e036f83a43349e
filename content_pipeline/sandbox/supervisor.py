"""One sandbox provider per project, in the background: found, started, set and stopped.

What belongs here: the life of the process as seen from the pipeline. Whether one is running is
decided by its answer and its token alone: a pid or a port may belong to something else by now.
Files are in ``<data home>/sandbox``.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from content_pipeline.core.errors import CallFailed, ConfigurationError
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.instance import EXIT_HELD, LOCK_FILE, LOG_FILE, locked, read_record
from content_pipeline.sandbox.settings import ProviderSettings

FOLDER = "sandbox"
START_LOCK_FILE = "start.lock"
START_S = 30.0
"""A start takes 0.5 s; on a machine with every core busy ten times that has been seen."""
STOP_S = 10.0
POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAddress:
    """A running provider."""

    base_url: str
    """For the openai client."""
    port: int
    pid: int

    def client(self) -> SandboxClient:
        """The way to its truth, faults and settings."""
        return SandboxClient(self.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderStatus:
    """What a running provider says about itself."""

    address: ProviderAddress
    settings: ProviderSettings
    started_at: str
    requests: int
    generations: int
    in_flight: int
    token: str


def ensure_provider_running(
    data_home: Path, settings: ProviderSettings | None = None
) -> ProviderAddress:
    """The project's provider, started if none answers, working with ``settings``.

    Safe to call from any number of processes at once. ``None`` leaves a running provider's settings
    alone. Raises ConfigurationError when none can be started.
    """
    folder = _folder(data_home)
    status = provider_status(data_home)
    if status is None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigurationError(f"{folder} cannot be made: {error.strerror}") from None
        held = "another process has been starting the sandbox provider all that time"
        with locked(folder / START_LOCK_FILE, START_S, held):
            status = provider_status(data_home) or _started(data_home, settings)
    if settings is not None and status.settings != settings:
        status.address.client().set_settings(settings)
    return status.address


def provider_status(data_home: Path) -> ProviderStatus | None:
    """The running provider of this project, or None when none answers."""
    record = read_record(_folder(data_home))
    if record is None:
        return None
    try:
        health = SandboxClient(record.port).health()
    except CallFailed:
        return None
    if health.get("token") != record.token:
        return None
    return ProviderStatus(
        address=ProviderAddress(base_url=record.base_url, port=record.port, pid=health["pid"]),
        settings=ProviderSettings.model_validate(health["settings"]),
        started_at=health["started_at"],
        requests=health["requests"],
        generations=health["generations"],
        in_flight=health["in_flight"],
        token=record.token,
    )


def stop_provider(data_home: Path) -> bool:
    """End the project's provider and wait for its end; False when none was running.

    Raises ConfigurationError when it does not end. What it remembers stays.
    """
    status = provider_status(data_home)
    if status is None:
        return False
    status.address.client().stop(status.token)
    held = f"the sandbox provider (pid {status.address.pid}) does not end; end it by hand"
    with locked(_folder(data_home) / LOCK_FILE, STOP_S, held):
        return True


def _folder(data_home: Path) -> Path:
    return data_home.resolve() / FOLDER


def _started(data_home: Path, settings: ProviderSettings | None) -> ProviderStatus:
    folder = _folder(data_home)
    log = folder / LOG_FILE
    _spawn(folder, log, settings or ProviderSettings())
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if status := provider_status(data_home):
            return status
        time.sleep(POLL_S)
    raise ConfigurationError(
        f"the sandbox provider did not answer within {START_S:g} s of its start; see {log}"
    )


def _spawn(folder: Path, log: Path, settings: ProviderSettings) -> None:
    """Start the process; it detaches itself, so neither a signal nor our end reaches it."""
    options = [
        part
        for name, value in settings.model_dump().items()
        for part in (f"--{name.replace('_', '-')}", *_texts(value))
    ]
    command = [sys.executable, "-m", "content_pipeline.sandbox", "--detach", "--data", str(folder)]
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
        raise ConfigurationError(f"the sandbox provider cannot be started; see {log}")


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, tuple) else [str(value)]
