"""From a site's settings to its hooks: which adapter a kind means, and with which secrets.

What belongs here: one opener per kind of hook. The adapters themselves know neither files nor the
environment.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from content_pipeline.adapters.hooks.index_page import IndexPage
from content_pipeline.adapters.hooks.mail import ALL_PAGES, Mail, MailServer
from content_pipeline.adapters.hooks.redirects import RedirectsFile
from content_pipeline.adapters.hooks.sitemap import SitemapFile
from content_pipeline.config import Project
from content_pipeline.core.cms_settings import FolderCMSSettings
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.hook_settings import (
    AnyHookSettings,
    CachePurgeSettings,
    CallHookSettings,
    CloudflarePurgeSettings,
    DeployHookSettings,
    FileHookSettings,
    IndexNowSettings,
    IndexPageSettings,
    MailSettings,
    RedirectsSettings,
    SitemapSettings,
    WebhookSettings,
)
from content_pipeline.core.ports import HookTerms, ListingHook, NewsHook, SiteHook
from content_pipeline.site_environment import secret_address, variable
from content_pipeline.site_files import Site

if TYPE_CHECKING:
    from content_pipeline.adapters.hooks.told_by_http import ToldByHTTP

Clock = Callable[[], datetime]

INDEXNOW_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")
"""By the protocol."""


def open_hooks(site: Site, project: Project, *, clock: Clock) -> tuple[SiteHook, ...]:
    """What is told after pages of ``site`` were proved. Raises ConfigurationError."""
    return tuple(_open(site, project, hook, clock) for hook in site.settings.hooks)


def _open(site: Site, project: Project, hook: AnyHookSettings, clock: Clock) -> SiteHook:
    if isinstance(hook, FileHookSettings):
        return _files(site, project, hook)
    return _call(site, hook, clock)


def _files(site: Site, project: Project, hook: FileHookSettings) -> ListingHook:
    root = _folder(site, project, hook)
    match hook:
        case SitemapSettings():
            return SitemapFile(root)
        case IndexPageSettings():
            return IndexPage(root)
        case RedirectsSettings():
            assert site.settings.topics.redirect_to is not None
            return RedirectsFile(root, target=site.settings.topics.redirect_to)


def _folder(site: Site, project: Project, hook: FileHookSettings) -> Path:
    if hook.folder is not None:
        return project.root / hook.folder
    assert isinstance(site.settings.cms, FolderCMSSettings)
    return project.root / site.settings.cms.folder


def _call(site: Site, hook: CallHookSettings, clock: Clock) -> NewsHook:
    # Imported here: httpx2 takes 0.1 s.
    from content_pipeline.adapters.hooks import cache_purge, deploy_hook, indexnow, webhook

    tell = partial(_told, hook, clock)
    terms = partial(HookTerms, debounce_s=hook.debounce_s)
    match hook:
        case IndexNowSettings():
            return indexnow.IndexNow(
                tell(hook.endpoint, "IndexNow", indexnow.ADVICE),
                kind=hook.name,
                terms=terms(batch=indexnow.MAX_URLS, tells_existing=hook.tell_existing),
                key=_indexnow_key(site, hook),
                key_location=hook.key_location,
            )
        case CloudflarePurgeSettings():
            token = variable(site, hook.token_env, "the API token for Cloudflare")
            return cache_purge.CloudflarePurge(
                tell(hook.api, "Cloudflare", cache_purge.CLOUDFLARE_ADVICE, token),
                kind=hook.name,
                terms=terms(batch=hook.batch),
                zone=hook.zone,
            )
        case CachePurgeSettings():
            url = secret_address(site, hook.url_env, "the address of the cache")
            return cache_purge.CachePurge(
                tell(url, "The cache", {}, _cache_token(site, hook)),
                kind=hook.name,
                terms=terms(batch=hook.batch),
                urls_in=hook.urls_in,
            )
        case DeployHookSettings():
            url = secret_address(site, hook.url_env, "the address of the deploy hook")
            return deploy_hook.DeployHook(
                tell(url, "The deploy hook", deploy_hook.ADVICE),
                kind=hook.name,
                terms=terms(batch=deploy_hook.ALL_PAGES),
            )
        case WebhookSettings():
            url = secret_address(site, hook.url_env, "the address of the webhook")
            return webhook.Webhook(
                tell(url, "The webhook", webhook.ADVICE),
                kind=hook.name,
                terms=terms(batch=hook.batch, tells_existing=hook.tell_existing),
                key=_signing_key(site, hook),
                clock=clock,
            )
        case MailSettings():
            return _mail(site, hook, clock)


def _cache_token(site: Site, hook: CachePurgeSettings) -> str | None:
    name = hook.token_env
    return None if name is None else variable(site, name, "the token for the cache")


def _told(
    hook: CallHookSettings,
    clock: Clock,
    url: str,
    service: str,
    advice: Mapping[int, str],
    token: str | None = None,
) -> "ToldByHTTP":
    from content_pipeline.adapters.hooks.told_by_http import ToldByHTTP
    from content_pipeline.adapters.http_calls import HTTPService

    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    calls = HTTPService(url, name=service, headers=headers, deadline_s=hook.deadline_s)
    return ToldByHTTP(service=calls, clock=clock, advice=advice)


def _indexnow_key(site: Site, hook: IndexNowSettings) -> str:
    key = variable(site, hook.key_env, "the key for IndexNow")
    if not INDEXNOW_KEY.fullmatch(key):
        raise ConfigurationError(
            f"{site.file}: the key for IndexNow in the environment variable {hook.key_env} must "
            "be 8 to 128 letters, digits and dashes"
        )
    return key


def _signing_key(site: Site, hook: WebhookSettings) -> bytes:
    from content_pipeline.adapters.hooks.webhook import signing_key

    try:
        return signing_key(variable(site, hook.secret_env, "the secret of the webhook"))
    except ValueError as error:
        raise ConfigurationError(
            f"{site.file}: environment variable {hook.secret_env}: {error}"
        ) from None


def _mail(site: Site, hook: MailSettings, clock: Clock) -> NewsHook:
    user = password = None
    if hook.user_env is not None and hook.password_env is not None:
        user = variable(site, hook.user_env, "the user of the mail server")
        password = variable(site, hook.password_env, "the password of the mail server")
    return Mail(
        MailServer(
            host=hook.host,
            port=hook.port,
            encryption=hook.encryption,
            user=user,
            password=password,
            deadline_s=hook.deadline_s,
        ),
        kind=hook.name,
        terms=HookTerms(debounce_s=hook.debounce_s, batch=ALL_PAGES),
        sender=hook.sender,
        to=hook.to,
        clock=clock,
    )
