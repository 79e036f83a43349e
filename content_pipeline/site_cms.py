"""From a site's settings to its CMS: which adapter a kind means, and with which account.

What belongs here: one opener per kind of CMS, and what can be said of a CMS without asking it. The
adapters themselves know neither files nor the environment.
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from content_pipeline.adapters.cms.folder import FolderCMS
from content_pipeline.config import Project, environment
from content_pipeline.core.cms import CMS
from content_pipeline.core.cms_settings import (
    FolderCMSSettings,
    WordPressCMSSettings,
)
from content_pipeline.core.identity import digest
from content_pipeline.core.ports import SiteHook
from content_pipeline.site_environment import address, variable
from content_pipeline.site_files import Site
from content_pipeline.site_hooks import open_hooks

Clock = Callable[[], datetime]

Opened = tuple[CMS, tuple[SiteHook, ...]]
"""A site's CMS, and what is told after pages of it were proved."""


def open_cms(site: Site, project: Project, *, clock: Clock) -> Opened:
    """The CMS of ``site`` and its hooks. Raises ConfigurationError for what is not set."""
    settings = site.settings.cms
    hooks = open_hooks(site, project, clock=clock)
    match settings:
        case FolderCMSSettings():
            root = project.root / settings.folder
            return FolderCMS(root, base_url=site.settings.base_url, clock=clock), hooks
        case WordPressCMSSettings():
            return _wordpress(site, settings, clock), hooks


def cms_route(site: Site) -> str:
    """The site's account at its CMS: a new password is a new one, with a clean slate."""
    settings, variables = site.settings.cms, environment()
    match settings:
        case FolderCMSSettings():
            return f"{settings.kind}:{site.settings.site}"
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


def _wordpress(site: Site, settings: WordPressCMSSettings, clock: Clock) -> CMS:
    from content_pipeline.adapters.cms.wordpress import WordPressCMS  # httpx2: 0.1 s
    from content_pipeline.adapters.cms.wordpress_pages import PageForm
    from content_pipeline.adapters.cms.wordpress_rest import WordPressREST

    url = settings.url or address(site, settings.url_env, "the address of the CMS")
    rest = WordPressREST(
        url,
        user=variable(site, settings.user_env, "the user for WordPress"),
        password=variable(site, settings.password_env, "the user's application password"),
        content_type=settings.content_type,
        deadline_s=settings.deadline_s,
        clock=clock,
    )
    form = PageForm(
        base_url=site.settings.base_url,
        home_path=urlsplit(url).path,
        description_in=settings.meta_description,
        json_ld=settings.json_ld,
    )
    return WordPressCMS(rest, form, content_type=settings.content_type, clock=clock)
