"""What most commands need first: the project, its ledger, the site that is meant, who asks."""

import getpass
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from content_pipeline.bootstrap import open_ledger
from content_pipeline.config import Project, find_project
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.ledger.database import Ledger
from content_pipeline.site_files import Site, load_site

site_option = click.option(
    "--site", "site_name", help="The site's name; needed when the project has several."
)


def load_sites(project: Project) -> list[Site]:
    """All sites of the project. Raises ConfigurationError when there is none."""
    sites = [load_site(file) for file in project.site_files()]
    if not sites:
        raise ConfigurationError(
            f"{project.root} declares no site; put a defs.yaml of type "
            "content_pipeline.ContentSite into a folder of its own below defs/"
        )
    names = [site.settings.site for site in sites]
    for site in sites:
        if names.count(site.settings.site) > 1:
            raise ConfigurationError(
                f"{site.file}: another file declares site {site.settings.site!r} too; rename one"
            )
    return sites


def choose_site(project: Project, name: str | None, file: Path | None = None) -> Site:
    """The one site that is meant. Raises ConfigurationError when that is not clear."""
    if file is not None:
        return load_site(file)
    sites = load_sites(project)
    if name is None and len(sites) == 1:
        return sites[0]
    known = ", ".join(site.settings.site for site in sites)
    for site in sites:
        if site.settings.site == name:
            return site
    if name is None:
        raise ConfigurationError(f"the project has several sites; choose one with --site: {known}")
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
