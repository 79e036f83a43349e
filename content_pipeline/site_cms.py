"""From a site's settings to its CMS: which adapter a kind means, and with which account.

What belongs here: one opener per kind of CMS, and what can be said of a CMS without asking it. The
adapters themselves know neither files nor the environment.
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from content_pipeline.adapters.cms.folder import FolderCMS
from content_pipeline.adapters.cms.git import GitCMS, GitSite
from content_pipeline.adapters.cms.git_clone import Author, GitClone
from content_pipeline.adapters.cms.git_command import Git, GitRemote
from content_pipeline.adapters.hooks.index_page import IndexPage
from content_pipeline.adapters.hooks.sitemap import SitemapFile
from content_pipeline.config import Project, environment
from content_pipeline.core.cms import CMS
from content_pipeline.core.cms_settings import (
    FolderCMSSettings,
    GitCMSSettings,
    WordPressCMSSettings,
    checked_url,
)
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.identity import digest
from content_pipeline.core.ports import SiteHook
from content_pipeline.site_files import Site

Clock = Callable[[], datetime]

Opened = tuple[CMS, tuple[SiteHook, ...]]
"""A site's CMS, and what is told after pages of it were proved."""


def open_cms(site: Site, project: Project, *, clock: Clock) -> Opened:
    """The CMS of ``site`` and its hooks. Raises ConfigurationError for what is not set."""
    settings = site.settings.cms
    match settings:
        case FolderCMSSettings():
            return _folder_site(site, project.root / settings.folder, clock)
        case GitCMSSettings():
            return _git_site(site, settings, project, clock)
        case WordPressCMSSettings():
            raise ConfigurationError(f"{site.file}: cms.kind {settings.kind} cannot be opened yet")


def cms_route(site: Site) -> str:
    """The site's account at its CMS: a new password is a new one, with a clean slate."""
    settings, variables = site.settings.cms, environment()
    match settings:
        case FolderCMSSettings():
            return f"{settings.kind}:{site.settings.site}"
        case GitCMSSettings():
            names = (settings.remote_env, settings.username_env, settings.password_env)
            account = digest(
                settings.remote, settings.branch, *(variables.get(name, "") for name in names)
            )
            return f"{settings.kind}:{account[:8]}"
        case WordPressCMSSettings():
            names = (settings.url_env, settings.user_env, settings.password_env)
            account = digest(settings.url, *(variables.get(name, "") for name in names))
            return f"{settings.kind}:{account[:8]}"


def published_folder(site: Site, project: Project) -> Path | None:
    """Where the site's pages are written as files; None when they are not."""
    settings = site.settings.cms
    return project.root / settings.folder if isinstance(settings, FolderCMSSettings) else None


def where_to_look(site: Site, project: Project) -> str:
    """What a person opens to see the site."""
    folder = published_folder(site, project)
    return site.settings.base_url + "/" if folder is None else str(folder / "index.html")


def _folder_site(site: Site, root: Path, clock: Clock) -> Opened:
    cms = FolderCMS(root, base_url=site.settings.base_url, clock=clock)
    return cms, (SitemapFile(root), IndexPage(root))


def _git_site(site: Site, settings: GitCMSSettings, project: Project, clock: Clock) -> Opened:
    """A clone below the project's data, shared by all that publish to the same branch."""
    variables = environment()
    address = settings.remote or _variable(site, settings.remote_env, "the address of the CMS")
    remote = GitRemote.of(
        address if _is_remote(address) else str(project.root / address),
        username=variables.get(settings.username_env, "").strip(),
        password=variables.get(settings.password_env, "").strip(),
    )
    deployed = settings.deployed_url
    if deployed is not None and "://" not in deployed:
        deployed = str(project.root / deployed)
    name = digest(remote.url, settings.branch)
    clone = GitClone(
        git=Git(
            folder=project.data_home / "git" / f"{name}.git",
            remote=remote,
            variables=variables,
            deadline_s=settings.deadline_s,
        ),
        branch=settings.branch,
        author=Author(name=settings.author_name, email=settings.author_email),
    )
    lies = GitSite(
        base_url=site.settings.base_url,
        content_folder=settings.content_folder,
        deployed=deployed,
        front_matter=settings.front_matter,
    )
    return GitCMS(clone, lies, clock=clock), ()


def _is_remote(address: str) -> bool:
    """Whether ``address`` names a repository elsewhere, as a URL or like ``host:path``."""
    return "://" in address or ":" in address.partition("/")[0]


def _variable(site: Site, name: str, what: str) -> str:
    """What the environment variable ``name`` holds."""
    value = environment().get(name, "").strip()
    if not value:
        raise ConfigurationError(
            f"{site.file}: {what} is missing; set it in the environment variable {name}"
        )
    return value


def _address(site: Site, url: str | None, url_env: str) -> str:
    """Where a CMS is reached: as the site's file says, else as the environment does."""
    if url is not None:
        return url
    try:
        return checked_url(_variable(site, url_env, "the address of the CMS"))
    except ValueError as error:
        raise ConfigurationError(f"{site.file}: environment variable {url_env}: {error}") from None
