"""Who is told after pages changed, as declared: what is accepted, and why something is not."""

from typing import Any

import pytest
from pydantic import ValidationError

from content_pipeline.core.hook_settings import (
    HOOK_MODELS,
    TAKEN_NAMES,
    DeployHookSettings,
    IndexNowSettings,
    MailSettings,
    WebhookSettings,
)
from content_pipeline.core.site import LaneSettings, SiteSettings
from content_pipeline_tests.operations.small_site import settings_of

FOLDER: dict[str, Any] = {"kind": "folder", "folder": "public/towns"}
WORDPRESS = {"kind": "wordpress", "url": "https://cms.example"}
REDIRECT: dict[str, Any] = {"when_gone": "redirect", "redirect_to": "/all/"}
MAIL = {"kind": "mail", "to": ["desk@example.org"], "sender": "p@example.com", "host": "mail.test"}
NEEDED: dict[str, dict[str, Any]] = {
    "cloudflare_purge": {"zone": "0123abcd"},
    "mail": {key: value for key, value in MAIL.items() if key != "kind"},
}


def site(*announce: dict[str, Any], cms: dict[str, Any] = FOLDER, **topics: Any) -> SiteSettings:
    document = settings_of("towns", topics=topics).model_dump(mode="json")
    document["cms"] = cms
    return SiteSettings.model_validate(document | {"announce": announce or None})


def complaint(*announce: dict[str, Any], cms: dict[str, Any] = FOLDER, **topics: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        site(*announce, cms=cms, **topics)
    return str(refused.value.errors(include_input=False)[0]["msg"]).removeprefix("Value error, ")


def names(settings: SiteSettings) -> list[str]:
    return [hook.name for hook in settings.hooks]


def test_a_folder_has_its_files_beside_the_pages_unless_told_otherwise() -> None:
    assert names(site()) == ["sitemap", "index_page"]
    assert names(site(**REDIRECT)) == ["sitemap", "index_page", "redirects"]
    assert names(site({"kind": "sitemap"})) == ["sitemap"]


def test_another_cms_tells_nobody_unless_told_to() -> None:
    assert names(site(cms=WORDPRESS)) == []
    assert names(site({"kind": "indexnow"}, cms=WORDPRESS)) == ["indexnow"]


def test_an_empty_list_is_a_list() -> None:
    document = settings_of("towns").model_dump(mode="json") | {"announce": []}
    assert SiteSettings.model_validate(document).hooks == ()


@pytest.mark.parametrize("kind", HOOK_MODELS)
def test_every_kind_can_be_declared_with_what_it_needs_and_is_called_by_its_kind(kind: str) -> None:
    (hook,) = site({"kind": kind, **NEEDED.get(kind, {})}, **REDIRECT).hooks
    assert (hook.kind, hook.name) == (kind, kind)


@pytest.mark.parametrize("kind", HOOK_MODELS)
def test_no_kind_takes_a_key_that_it_does_not_know(kind: str) -> None:
    with pytest.raises(ValidationError, match="extra_forbidden"):
        site({"kind": kind, **NEEDED.get(kind, {}), "zzz": 1}, **REDIRECT)


def test_two_of_a_kind_are_told_apart_by_name() -> None:
    two = [{"kind": "webhook", "name": name} for name in ("crm", "search")]
    assert names(site(*two)) == ["crm", "search"]
    assert complaint({"kind": "webhook"}, {"kind": "webhook"}) == (
        "announce: two are called 'webhook'; give one of them another `name`"
    )


@pytest.mark.parametrize("name", sorted(TAKEN_NAMES))
def test_a_hook_is_not_called_like_another_asset(name: str) -> None:
    told = complaint({"kind": "webhook", "name": name})
    assert told == f"announce: {name!r} is the name of another asset; choose another `name`"


@pytest.mark.parametrize("kind", ["sitemap", "index_page"])
def test_files_of_a_site_without_a_folder_need_one(kind: str) -> None:
    assert f"so {kind} needs a `folder`" in complaint({"kind": kind}, cms=WORDPRESS)
    assert names(site({"kind": kind, "folder": "public"}, cms=WORDPRESS)) == [kind]


def test_redirects_need_a_place_to_lead_to() -> None:
    told = complaint({"kind": "redirects"})
    assert told == "announce: redirects go with `topics.when_gone: redirect` and `redirect_to`"


@pytest.mark.parametrize("hook", [{}, {"kind": "carrier_pigeon"}, {"kind": 3}])
def test_an_unknown_kind_is_told_which_there_are(hook: dict[str, Any]) -> None:
    assert complaint(hook).startswith("`kind` must be one of: sitemap, index_page, redirects,")


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        ({"kind": "deploy_hook", "url_env": "https://api.example/hook/1"}, "environment variable"),
        ({"kind": "webhook", "secret_env": "whsec_abc"}, "environment variable"),
        ({"kind": "indexnow", "endpoint": "api.indexnow.org"}, "absolute http(s) URL"),
        ({"kind": "deploy_hook", "debounce_s": -1}, "greater than or equal to 0"),
        ({"kind": "cloudflare_purge", "zone": "a/../b"}, "pattern"),
        ({"kind": "cloudflare_purge", "zone": "z", "batch": 501}, "less than or equal to 500"),
        (MAIL | {"to": []}, "at least 1 item"),
        (MAIL | {"to": ["a@b.c\nBcc: d@e.f"]}, "plain e-mail addresses"),
        (MAIL | {"sender": "Pipeline <p@example.com>"}, "plain e-mail addresses"),
        (MAIL | {"user_env": "MAIL_USER"}, "go together"),
        (
            MAIL | {"user_env": "U", "password_env": "P", "encryption": "none"},
            "only sent encrypted",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_reason(hook: dict[str, Any], words: str) -> None:
    assert words in complaint(hook)


def test_telling_is_interrupted_only_after_the_longest_call() -> None:
    assert site().telling_s == site().lane.lease_s
    slow = {"kind": "webhook", "deadline_s": 120}
    assert site(slow, {"kind": "indexnow"}).telling_s == 125


@pytest.mark.parametrize(
    "model", [IndexNowSettings, WebhookSettings, DeployHookSettings, MailSettings]
)
def test_a_plain_run_is_patient_enough_for_what_is_gathered_by_default(model: type[Any]) -> None:
    """Else a site that is run once a day would tell of today's pages tomorrow."""
    patience_s = LaneSettings.model_fields["patience_s"].default
    assert model.model_fields["debounce_s"].default <= patience_s
