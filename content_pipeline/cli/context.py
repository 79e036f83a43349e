"""What most commands need first: the project, its ledger, the site that is meant, who asks."""

import getpass
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click
from rich.console import Console

from content_pipeline.bootstrap import open_ledger, open_site
from content_pipeline.config import Project, find_project
from content_pipeline.core.errors import ConfigurationError, SiteFileError
from content_pipeline.ledger.database import Ledger
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.site_files import Site, load_site

site_option = click.option(
    "--site", "site_name", help="The site's name; needed when the project has several."
)


def load_sites(project: Project) -> list[Site]:
    """All sites of the project. Raises ConfigurationError when one is wrong or there is none."""
    sites = [load_site(file) for file in _site_files(project)]
    for site in sites:
        _refuse_twice(site.settings.site, sites)
    return sites


def _site_files(project: Project) -> list[Path]:
    files = project.site_files()
    if not files:
        raise ConfigurationError(
            f"{project.root} declares no site; put a defs.yaml of type "
            "content_pipeline.ContentSite into a folder of its own below defs/"
        )
    return files


def _refuse_twice(name: str, sites: list[Site]) -> None:
    files = [str(site.file) for site in sites if site.settings.site == name]
    if len(files) > 1:
        raise ConfigurationError(f"site {name!r} is declared by {' and '.join(files)}; rename one")


def choose_site(project: Project, name: str | None, file: Path | None = None) -> Site:
    """The one site that is meant. Raises ConfigurationError when that is not clear."""
    if file is not None:
        return load_site(file)
    if name is not None:
        return _named_site(project, name)
    sites = load_sites(project)
    if len(sites) == 1:
        return sites[0]
    known = ", ".join(site.settings.site for site in sites)
    raise ConfigurationError(f"the project has several sites; choose one with --site: {known}")


def _named_site(project: Project, name: str) -> Site:
    """Site ``name``: a mistake in another team's file does not stop it."""
    sites: list[Site] = []
    mistakes: list[SiteFileError] = []
    for file in _site_files(project):
        try:
            sites.append(load_site(file))
        except SiteFileError as mistake:
            mistakes.append(mistake)
    _refuse_twice(name, sites)
    for site in sites:
        if site.settings.site == name:
            return site
    if mistakes:
        raise mistakes[0]  # which may well be the site that is meant
    known = ", ".join(site.settings.site for site in sites)
    raise ConfigurationError(f"there is no site {name!r}; known: {known}")


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """Where commands print. A name from a table is shown as it is: ``:cat:`` stays no cat."""
    return Console(stderr=stderr, emoji=False, highlight=False, width=width)


@contextmanager
def opened_ledger(project: Project | None = None) -> Iterator[Ledger]:
    """The project's ledger, closed afterwards."""
    ledger = open_ledger(project or find_project())
    try:
        yield ledger
    finally:
        ledger.dispose()


@contextmanager
def opened_site(name: str | None) -> Iterator[SiteRuntime]:
    """The one site that is meant with all that works on it, closed afterwards with its ledger."""
    project = find_project()
    site = choose_site(project, name)
    with (
        opened_ledger(project) as ledger,
        closing(open_site(site, project, ledger, purpose="cli")) as runtime,
    ):
        yield runtime


def person() -> str:
    """Who gives the command, for the records: account and machine."""
    try:
        account = getpass.getuser()
    except (KeyError, OSError):
        account = "somebody"  # a container's account often has no name
    return f"{account}@{socket.gethostname()}"


def stated(option: str, text: str) -> str:
    """What a person gave as a reason, which must say something. Raises ConfigurationError."""
    if not text.strip():
        raise ConfigurationError(f"{option} must say why; it is kept with the page")
    return text.strip()
