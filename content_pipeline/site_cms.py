"""From a site's settings to its CMS: which adapter a kind means, and with which account.

What belongs here: one opener per kind of CMS, and what can be said of a CMS without asking it. The
adapters themselves know neither files nor the environment.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from content_pipeline.adapters.cms.folder import FolderCMS
from content_pipeline.config import Project, environment
from content_pipeline.core.cms import CMS, PublicPages, capabilities_of
from content_pipeline.core.cms_settings import (
    FolderCMSSettings,
    GitCMSSettings,
    SandboxCMSSettings,
    WordPressCMSSettings,
)
from content_pipeline.core.identity import digest
from content_pipeline.core.ports import SiteHook
from content_pipeline.core.service_settings import (
    DirectusCMSSettings,
    GhostCMSSettings,
    WebhookCMSSettings,
)
from content_pipeline.sandbox.cms.accounts import PIPELINE
from content_pipeline.sandbox.cms.settings import CMSSettings as SandboxSettings
from content_pipeline.sandbox.cms.supervisor import cms_status, ensure_cms_running
from content_pipeline.site_environment import address, variable
from content_pipeline.site_files import Site
from content_pipeline.site_hooks import open_hooks

if TYPE_CHECKING:
    from content_pipeline.adapters.cms.git_command import Git

Clock = Callable[[], datetime]

VISIT_S = 20.0
"""A visitor would have left long before."""

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
        case GitCMSSettings():
            return _git_site(site, settings, project, clock), hooks
        case WordPressCMSSettings():
            return _wordpress(site, settings, clock), hooks
        case GhostCMSSettings():
            return _ghost(site, settings, clock), hooks
        case DirectusCMSSettings():
            return _directus(site, settings, clock), hooks
        case WebhookCMSSettings():
            return _webhook(site, settings, clock), hooks
        case SandboxCMSSettings():
            return _sandbox(site, settings, project, clock), hooks


def public_pages(site: Site) -> PublicPages | None:
    """The site as its visitors get it; None unless it is to be asked."""
    if not site.settings.check_public_url:
        return None
    from content_pipeline.adapters.cms.public_pages import PublicSite  # httpx2: 0.1 s

    return PublicSite(site.settings.base_url, deadline_s=VISIT_S)


def cms_route(site: Site) -> str:
    """The site's account at its CMS: a new password is a new one, with a clean slate."""
    settings = site.settings.cms
    match settings:
        case FolderCMSSettings() | SandboxCMSSettings():
            return f"{settings.kind}:{site.settings.site}"
        case GitCMSSettings():
            names = (settings.remote_env, settings.username_env, settings.password_env)
            return _route(settings.kind, f"{settings.remote} {settings.branch}", *names)
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


def longest_request_s(site: Site) -> float | None:
    """After how many seconds the adapter gives up a request; None where none leaves the machine."""
    settings = site.settings.cms
    return None if isinstance(settings, FolderCMSSettings) else settings.deadline_s


def published_folder(site: Site, project: Project) -> Path | None:
    """Where the site's pages are written as files; None when they are not."""
    settings = site.settings.cms
    return project.root / settings.folder if isinstance(settings, FolderCMSSettings) else None


def where_to_look(site: Site, project: Project) -> str:
    """What a person opens to see the site."""
    folder = published_folder(site, project)
    if folder is not None:
        return str(folder / "index.html")
    if isinstance(site.settings.cms, SandboxCMSSettings):
        running = cms_status(project.data_home, site.settings.site)
        if running is not None:
            return f"{running.base_url}/"
    return f"{site.settings.base_url}/"


def _git_site(site: Site, settings: GitCMSSettings, project: Project, clock: Clock) -> CMS:
    from content_pipeline.adapters.cms.git import GitCMS, GitSite  # httpx2: 0.1 s
    from content_pipeline.adapters.cms.git_clone import Author, GitClone

    deployed = settings.deployed_url
    if deployed is not None and "://" not in deployed:
        deployed = str(project.root / deployed)
    clone = GitClone(
        git=_git(site, settings, project),
        branch=settings.branch,
        author=Author(name=settings.author_name, email=settings.author_email),
    )
    in_repository = GitSite(
        base_url=site.settings.base_url,
        content_folder=settings.content_folder,
        deployed=deployed,
        front_matter=settings.front_matter,
    )
    return GitCMS(clone, in_repository, clock=clock)


def _git(site: Site, settings: GitCMSSettings, project: Project) -> "Git":
    """Git on a copy below the project's data, which all who publish to the branch share."""
    from content_pipeline.adapters.cms.git_command import Git, GitRemote

    variables = environment()
    place = settings.remote or variable(site, settings.remote_env, "the address of the repository")
    is_elsewhere = "://" in place or ":" in place.partition("/")[0]  # a URL, or host:path
    remote = GitRemote.of(
        place if is_elsewhere else str(project.root / place),
        username=variables.get(settings.username_env, "").strip(),
        password=variables.get(settings.password_env, "").strip(),
    )
    return Git(
        folder=project.data_home / "git" / f"{digest(remote.url, settings.branch)}.git",
        remote=remote,
        variables=variables,
        deadline_s=settings.deadline_s,
    )


def _wordpress(site: Site, settings: WordPressCMSSettings, clock: Clock) -> CMS:
    account = _Account(
        url=settings.url or address(site, settings.url_env, "the address of the CMS"),
        user=variable(site, settings.user_env, "the user for WordPress"),
        password=variable(site, settings.password_env, "the user's application password"),
    )
    return _by_rest(site, settings, account, clock)


def _sandbox(site: Site, settings: SandboxCMSSettings, project: Project, clock: Clock) -> CMS:
    """The site's own offline CMS, started if it does not run."""
    running = ensure_cms_running(
        project.data_home,
        site.settings.site,
        SandboxSettings(
            latency_median_s=settings.latency_median_s,
            latency_sigma=settings.latency_sigma,
            listing_lag_s=settings.listing_lag_s,
            companion=settings.companion,
            seed=settings.seed,
        ),
    )
    account = _Account(url=running.base_url, user=PIPELINE.login, password=PIPELINE.app_password)
    as_wordpress = WordPressCMSSettings(kind="wordpress", deadline_s=settings.deadline_s)
    return _by_rest(site, as_wordpress, account, clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    """Where WordPress is reached, and as whom."""

    url: str
    user: str
    password: str = field(repr=False)


def _by_rest(site: Site, settings: WordPressCMSSettings, account: _Account, clock: Clock) -> CMS:
    from content_pipeline.adapters.cms.wordpress import WordPressCMS  # httpx2: 0.1 s
    from content_pipeline.adapters.cms.wordpress_pages import PageForm
    from content_pipeline.adapters.cms.wordpress_rest import WordPressREST

    rest = WordPressREST(
        account.url,
        user=account.user,
        password=account.password,
        content_type=settings.content_type,
        deadline_s=settings.deadline_s,
        clock=clock,
        at_once=site.settings.lane.cms_requests_at_once,
    )
    form = PageForm(
        base_url=site.settings.base_url,
        home_path=urlsplit(account.url).path,
        description_in=settings.meta_description,
        json_ld=settings.json_ld,
    )
    return WordPressCMS(rest, form, content_type=settings.content_type, clock=clock)


def _ghost(site: Site, settings: GhostCMSSettings, clock: Clock) -> CMS:
    from content_pipeline.adapters.cms.ghost import GhostCMS  # httpx2: 0.1 s
    from content_pipeline.adapters.cms.ghost_api import GhostAPI
    from content_pipeline.adapters.cms.ghost_pages import GhostForm
    from content_pipeline.adapters.cms.ghost_token import AdminKey

    url = settings.url or address(site, settings.url_env, "the address of the CMS")
    key = variable(site, settings.key_env, "the Admin API key for Ghost")
    api = GhostAPI(
        url,
        key=AdminKey.parse(key),
        content_type=settings.content_type,
        deadline_s=settings.deadline_s,
        clock=clock,
        at_once=site.settings.lane.cms_requests_at_once,
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
        settings.url or address(site, settings.url_env, "the address of the CMS"),
        token=variable(site, settings.token_env, "the static token for Directus"),
        collection=settings.collection,
        fields=form.asked,
        deadline_s=settings.deadline_s,
        clock=clock,
        at_once=site.settings.lane.cms_requests_at_once,
    )
    return DirectusCMS(api, form, clock=clock)


def _webhook(site: Site, settings: WebhookCMSSettings, clock: Clock) -> CMS:
    from content_pipeline.adapters.cms.webhook import WebhookCMS  # httpx2: 0.1 s
    from content_pipeline.adapters.cms.webhook_endpoint import WebhookEndpoint
    from content_pipeline.adapters.cms.webhook_signature import SigningKey

    endpoint = WebhookEndpoint(
        settings.url or address(site, settings.url_env, "the address of the CMS"),
        key=SigningKey.parse(variable(site, settings.key_env, "the webhook's signing key")),
        deadline_s=settings.deadline_s,
        clock=clock,
        at_once=site.settings.lane.cms_requests_at_once,
    )
    declared = settings.capabilities
    can = None if declared is None else capabilities_of(declared)
    return WebhookCMS(endpoint, base_url=site.settings.base_url, declared=can)
