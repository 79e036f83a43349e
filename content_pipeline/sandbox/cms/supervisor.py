"""One sandbox CMS per project, in the background: found, started, set and stopped.

What belongs here: what the pipeline wants to know of its CMS. The life of the process is in
``background``; files are in ``<data home>/sandbox_cms``.
"""

from dataclasses import dataclass
from pathlib import Path

from content_pipeline.sandbox.background import Running, Service, ensured, found, stopped
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.settings import CMSSettings

FOLDER = "sandbox_cms"


@dataclass(frozen=True, slots=True, kw_only=True)
class CMSStatus:
    """What a running CMS says about itself."""

    base_url: str
    """The site's address."""
    port: int
    pid: int
    settings: CMSSettings
    started_at: str
    requests: int
    live: int
    """Pages that visitors see."""
    in_flight: int

    def client(self) -> CMSClient:
        """The way to its truth, faults, people and settings."""
        return CMSClient(self.port)


def ensure_cms_running(data_home: Path, settings: CMSSettings | None = None) -> CMSStatus:
    """The project's CMS, started if none answers, working with ``settings``.

    Safe to call from any number of processes at once. ``None`` leaves a running CMS's settings
    alone. Raises ConfigurationError when none can be started.
    """
    wanted = settings or CMSSettings()
    status = _status(ensured(_service(data_home), wanted.model_dump()))
    if settings is not None and status.settings != settings:
        status.client().set_settings(settings)
    return status


def cms_status(data_home: Path) -> CMSStatus | None:
    """The running CMS of this project, or None when none answers."""
    running = found(_service(data_home))
    return None if running is None else _status(running)


def stop_cms(data_home: Path) -> bool:
    """End the project's CMS and wait for its end; False when none was running.

    Raises ConfigurationError when it does not end. What it remembers stays.
    """
    return stopped(_service(data_home))


def _service(data_home: Path) -> Service:
    folder = data_home.resolve() / FOLDER
    return Service(what="CMS", module="content_pipeline.sandbox.cms", folder=folder)


def _status(running: Running) -> CMSStatus:
    record, health = running.record, running.health
    return CMSStatus(
        base_url=record.base_url,
        port=record.port,
        pid=health["pid"],
        settings=CMSSettings.model_validate(health["settings"]),
        started_at=health["started_at"],
        requests=health["requests"],
        live=health["live"],
        in_flight=health["in_flight"],
    )
