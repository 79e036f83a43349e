"""From a site's settings to its CMS: which adapter a kind means, and with which account.

What belongs here: one opener per kind of CMS, and what can be said of a CMS without asking it. The
adapters themselves know neither files nor the environment.
"""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from content_pipeline.adapters.cms.folder import FolderCMS
from content_pipeline.adapters.hooks.index_page import IndexPage
from content_pipeline.adapters.hooks.sitemap import SitemapFile
from content_pipeline.config import Project, environment
from content_pipeline.core.cms import CMS, capabilities_of
from content_pipeline.core.cms_settings import (
    FolderCMSSettings,
    WordPressCMSSettings,
)
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.identity import digest
from content_pipeline.core.ports import SiteHook
from content_pipeline.core.service_settings import (
    DirectusCMSSettings,
    GhostCMSSettings,
    WebhookCMSSettings,
)
from content_pipeline.core.settings import checked_url
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
        case WordPressCMSSettings():
            return _wordpress(site, settings, clock), ()
        case GhostCMSSettings():
            return _ghost(site, settings, clock), ()
        case DirectusCMSSettings():
            return _directus(site, settings, clock), ()
        case WebhookCMSSettings():
            return _webhook(site, settings, clock), ()


def cms_route(site: Site) -> str:
    """The site's account at its CMS: a new password is a new one, with a clean slate."""
    settings = site.settings.cms
    match settings:
        case FolderCMSSettings():
            return f"{settings.kind}:{site.settings.site}"
        case WordPressCMSSettings():
            names = (settings.url_env, settings.user_env, settings.password_env)
            return _route(settings.kind, settings.url, *names)
        case DirectusCMSSettings():
            return _route(settings.kind, settings.url, settings.url_env, settings.token_env)
        case GhostCMSSettings() | WebhookCMSSettings():
            return _route(settings.kind, settings.url, settings.url_env, settings.key_env)


def _route(kind: str, url: str | None, *names: str) -> str:
    """The account that an address and the named variables are, without telling them."""
    account = digest(url, *(environment().get(name, "") for name in names))
    return f"{kind}:{account[:8]}"


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


def _wordpress(site: Site, settings: WordPressCMSSettings, clock: Clock) -> CMS:
    from content_pipeline.adapters.cms.wordpress import WordPressCMS  # httpx2: 0.1 s
    from content_pipeline.adapters.cms.wordpress_pages import PageForm
    from content_pipeline.adapters.cms.wordpress_rest import WordPressREST

    url = _address(site, settings.url, settings.url_env)
    rest = WordPressREST(
        url,
        user=_variable(site, settings.user_env, "the user for WordPress"),
        password=_variable(site, settings.password_env, "the user's application password"),
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


def _ghost(site: Site, settings: GhostCMSSettings, clock: Clock) -> CMS:
    from content_pipeline.adapters.cms.ghost import GhostCMS  # httpx2: 0.1 s
    from content_pipeline.adapters.cms.ghost_api import GhostAPI
    from content_pipeline.adapters.cms.ghost_pages import GhostForm
    from content_pipeline.adapters.cms.ghost_token import AdminKey

    url = _address(site, settings.url, settings.url_env)
    key = _variable(site, settings.key_env, "the Admin API key for Ghost")
    api = GhostAPI(
        url,
        key=AdminKey.parse(key),
        content_type=settings.content_type,
        deadline_s=settings.deadline_s,
        clock=clock,
    )
    form = GhostForm(
        base_url=site.settings.base_url,
        home_path=urlsplit(url).path,
        below=settings.below,
        json_ld=settings.json_ld,
    )
    return GhostCMS(api, form, clock=clock)


def _directus(site: Site, settings: DirectusCMSSettings, clock: Clock) -> CMS:
    from content_pipeline.adapters.cms.directus import DirectusCMS  # httpx2: 0.1 s
    from content_pipeline.adapters.cms.directus_api import DirectusAPI
    from content_pipeline.adapters.cms.directus_items import ItemForm

    form = ItemForm.of(settings, base_url=site.settings.base_url)
    api = DirectusAPI(
        _address(site, settings.url, settings.url_env),
        token=_variable(site, settings.token_env, "the static token for Directus"),
        collection=settings.collection,
        fields=form.asked,
        deadline_s=settings.deadline_s,
        clock=clock,
    )
    return DirectusCMS(api, form, clock=clock)


def _webhook(site: Site, settings: WebhookCMSSettings, clock: Clock) -> CMS:
    from content_pipeline.adapters.cms.webhook import WebhookCMS  # httpx2: 0.1 s
    from content_pipeline.adapters.cms.webhook_endpoint import WebhookEndpoint
    from content_pipeline.adapters.cms.webhook_signature import SigningKey

    endpoint = WebhookEndpoint(
        _address(site, settings.url, settings.url_env),
        key=SigningKey.parse(_variable(site, settings.key_env, "the webhook's signing key")),
        deadline_s=settings.deadline_s,
        clock=clock,
    )
    declared = settings.capabilities
    can = None if declared is None else capabilities_of(declared)
    return WebhookCMS(endpoint, base_url=site.settings.base_url, declared=can)


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
