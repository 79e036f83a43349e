"""One sandbox provider per project, in the background: found, started, set and stopped.

What belongs here: what the pipeline wants to know of its provider. The life of the process is in
``background``; files are in ``<data home>/sandbox``.
"""

from dataclasses import dataclass
from pathlib import Path

from content_pipeline.sandbox.background import Running, Service, ensured, found, stopped
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.settings import ProviderSettings

FOLDER = "sandbox"


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
    wanted = settings or ProviderSettings()
    status = _status(ensured(_service(data_home), wanted.model_dump()))
    if settings is not None and status.settings != settings:
        status.address.client().set_settings(settings)
    return status.address


def provider_status(data_home: Path) -> ProviderStatus | None:
    """The running provider of this project, or None when none answers."""
    running = found(_service(data_home))
    return None if running is None else _status(running)


def stop_provider(data_home: Path) -> bool:
    """End the project's provider and wait for its end; False when none was running.

    Raises ConfigurationError when it does not end. What it remembers stays.
    """
    return stopped(_service(data_home))


def _service(data_home: Path) -> Service:
    folder = data_home.resolve() / FOLDER
    return Service(what="provider", module="content_pipeline.sandbox", folder=folder)


def _status(running: Running) -> ProviderStatus:
    record, health = running.record, running.health
    return ProviderStatus(
        address=ProviderAddress(base_url=record.base_url, port=record.port, pid=health["pid"]),
        settings=ProviderSettings.model_validate(health["settings"]),
        started_at=health["started_at"],
        requests=health["requests"],
        generations=health["generations"],
        in_flight=health["in_flight"],
        token=record.token,
    )
