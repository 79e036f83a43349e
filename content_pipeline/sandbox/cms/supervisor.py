"""One sandbox CMS per site of a project, in the background: found, started, set and stopped.

What belongs here: what the pipeline wants to know of its CMSs. Like real ones they know nothing of
each other: each is a process with an address, pages and a truth of its own. The life of a process
is in ``background``; files are in ``<data home>/sandbox_cms/<site>``.
"""

from dataclasses import dataclass
from pathlib import Path

from content_pipeline.sandbox.background import Running, Service, ensured, found, stopped
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.instance import RECORD_FILE

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


def ensure_cms_running(
    data_home: Path, site: str, settings: CMSSettings | None = None
) -> CMSStatus:
    """The CMS of ``site``, started if it does not answer, working with ``settings``.

    Safe to call from any number of processes at once. ``None`` leaves a running CMS's settings
    alone. Raises ConfigurationError when it cannot be started.
    """
    wanted = settings or CMSSettings()
    status = _status(ensured(_service(data_home, site), wanted.model_dump()))
    if settings is not None and status.settings != settings:
        status.client().set_settings(settings)
    return status


def cms_status(data_home: Path, site: str) -> CMSStatus | None:
    """The running CMS of ``site``, or None when it does not answer."""
    running = found(_service(data_home, site))
    return None if running is None else _status(running)


def cms_statuses(data_home: Path) -> dict[str, CMSStatus]:
    """Site → its CMS, of all that run in the project."""
    statuses = {site: cms_status(data_home, site) for site in _sites(data_home)}
    return {site: status for site, status in statuses.items() if status is not None}


def stop_cms(data_home: Path) -> bool:
    """End all CMSs of the project and wait for their end; False when none was running.

    Raises ConfigurationError when one does not end. What they remember stays.
    """
    were_running = [stopped(_service(data_home, site)) for site in _sites(data_home)]
    return any(were_running)


def _sites(data_home: Path) -> list[str]:
    """The sites that ever had a CMS here."""
    return sorted(record.parent.name for record in (data_home / FOLDER).glob(f"*/{RECORD_FILE}"))


def _service(data_home: Path, site: str) -> Service:
    folder = data_home.resolve() / FOLDER / site
    return Service(what=f"CMS of {site}", module="content_pipeline.sandbox.cms", folder=folder)


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
