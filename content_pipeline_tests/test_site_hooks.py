"""From settings to hooks: the right adapter for each kind, with the secrets of the environment."""

import base64
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.adapters.hooks.cache_purge import CachePurge, CloudflarePurge
from content_pipeline.adapters.hooks.deploy_hook import DeployHook
from content_pipeline.adapters.hooks.index_page import IndexPage
from content_pipeline.adapters.hooks.indexnow import MAX_URLS, IndexNow
from content_pipeline.adapters.hooks.mail import Mail
from content_pipeline.adapters.hooks.redirects import RedirectsFile
from content_pipeline.adapters.hooks.sitemap import SitemapFile
from content_pipeline.adapters.hooks.webhook import Webhook
from content_pipeline.config import Project
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.hook_settings import HOOK_MODELS
from content_pipeline.core.ports import HookTerms, NewsHook, SiteHook
from content_pipeline.site_files import Site
from content_pipeline.site_hooks import open_hooks
from content_pipeline_tests.operations.small_site import clock, settings_of, site_of

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
VARIABLES = {
    "INDEXNOW_KEY": "0123456789abcdef",
    "CLOUDFLARE_API_TOKEN": "cloudflare-token",
    "CACHE_PURGE_URL": "https://cache.example/purge?token=abc",
    "DEPLOY_HOOK_URL": "https://api.example/deploy/s3cr3t?branch=main",
    "WEBHOOK_URL": "https://partner.example/hook",
    "WEBHOOK_SECRET": SECRET,
    "MAIL_USER": "pipeline",
    "MAIL_PASSWORD": "correct horse",
}
MAIL = {
    "kind": "mail",
    "to": ["desk@example.org"],
    "sender": "p@example.com",
    "host": "mail.test",
    "user_env": "MAIL_USER",
    "password_env": "MAIL_PASSWORD",
}
HOOKS: dict[str, tuple[dict[str, Any], type[object]]] = {
    "sitemap": ({}, SitemapFile),
    "index_page": ({}, IndexPage),
    "redirects": ({}, RedirectsFile),
    "indexnow": ({}, IndexNow),
    "cloudflare_purge": ({"zone": "zone-1"}, CloudflarePurge),
    "cache_purge": ({}, CachePurge),
    "deploy_hook": ({}, DeployHook),
    "webhook": ({}, Webhook),
    "mail": (MAIL, Mail),
}
VARIABLE_OF = {
    "indexnow": ("INDEXNOW_KEY",),
    "cloudflare_purge": ("CLOUDFLARE_API_TOKEN",),
    "cache_purge": ("CACHE_PURGE_URL",),
    "deploy_hook": ("DEPLOY_HOOK_URL",),
    "webhook": ("WEBHOOK_URL", "WEBHOOK_SECRET"),
    "mail": ("MAIL_USER", "MAIL_PASSWORD"),
}


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def site_with(*announce: dict[str, Any], **changes: Any) -> Site:
    topics = {"when_gone": "redirect", "redirect_to": "/all/"}
    return site_of(settings_of("towns", topics=topics, announce=list(announce), **changes))


def opened(tmp_path: Path, *announce: dict[str, Any], **changes: Any) -> tuple[SiteHook, ...]:
    hooks = open_hooks(site_with(*announce, **changes), Project(root=tmp_path), clock=clock)
    for hook in hooks:
        if isinstance(hook, NewsHook):
            hook.close()
    return hooks


@pytest.mark.parametrize("kind", HOOK_MODELS)
def test_every_kind_is_opened_as_what_it_is(kind: str, tmp_path: Path) -> None:
    more, adapter = HOOKS[kind]
    (hook,) = opened(tmp_path, {"kind": kind, **more})
    assert isinstance(hook, adapter)
    assert hook.kind == kind
    is_told_news = kind not in ("sitemap", "index_page", "redirects")
    assert isinstance(hook, NewsHook) is is_told_news


def test_hooks_have_the_name_and_the_terms_that_are_declared(tmp_path: Path) -> None:
    told = {"kind": "webhook", "name": "crm", "debounce_s": 7, "batch": 3, "tell_existing": True}
    crm, engines = opened(tmp_path, told, {"kind": "indexnow", "debounce_s": 600})
    assert isinstance(crm, NewsHook)
    assert isinstance(engines, NewsHook)
    assert crm.kind == "crm"
    assert crm.terms == HookTerms(debounce_s=7, batch=3, tells_existing=True)
    assert engines.terms == HookTerms(debounce_s=600, batch=MAX_URLS, tells_existing=False)


def test_files_stand_in_the_folder_that_is_named_or_beside_the_pages(tmp_path: Path) -> None:
    beside, elsewhere = opened(
        tmp_path, {"kind": "sitemap"}, {"kind": "index_page", "folder": "www"}
    )
    assert isinstance(beside, SitemapFile)
    assert isinstance(elsewhere, IndexPage)
    assert beside._folder.root == tmp_path / "public"
    assert elsewhere._folder.root == tmp_path / "www"


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in VARIABLE_OF.items() for name in names]
)
def test_what_is_not_set_is_named(
    kind: str, name: str, tmp_path: Path, secrets: pytest.MonkeyPatch
) -> None:
    secrets.delenv(name)
    with pytest.raises(ConfigurationError, match=f"environment variable {name}") as refused:
        opened(tmp_path, {"kind": kind, **HOOKS[kind][0]})
    assert "towns.yaml" in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("indexnow", "INDEXNOW_KEY", "too-bad!"),
        ("indexnow", "INDEXNOW_KEY", "short"),
        ("deploy_hook", "DEPLOY_HOOK_URL", "api.example/s3cr3t"),
        ("deploy_hook", "DEPLOY_HOOK_URL", "ftp://api.example/s3cr3t"),
        ("deploy_hook", "DEPLOY_HOOK_URL", "https://user:s3cr3t@api.example/"),
        ("cache_purge", "CACHE_PURGE_URL", "https://cache.example/s3cr3t x"),
        ("webhook", "WEBHOOK_URL", "https:///s3cr3t"),
        ("webhook", "WEBHOOK_SECRET", "whsec_c2hvcnQ="),
    ],
)
def test_what_cannot_be_meant_is_refused_and_not_quoted(
    kind: str, name: str, value: str, tmp_path: Path, secrets: pytest.MonkeyPatch
) -> None:
    secrets.setenv(name, value)
    with pytest.raises(ConfigurationError, match=name) as refused:
        opened(tmp_path, {"kind": kind, **HOOKS[kind][0]})
    assert value not in str(refused.value)


def test_a_token_for_a_cache_is_asked_for_only_if_there_is_one(
    tmp_path: Path, secrets: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="CACHE_TOKEN"):
        opened(tmp_path, {"kind": "cache_purge", "token_env": "CACHE_TOKEN"})
    secrets.setenv("CACHE_TOKEN", "t")
    assert len(opened(tmp_path, {"kind": "cache_purge", "token_env": "CACHE_TOKEN"})) == 1
