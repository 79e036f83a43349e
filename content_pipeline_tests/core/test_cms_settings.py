from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from content_pipeline.core.cms import CAPABILITY_NAMES
from content_pipeline.core.cms_settings import (
    CMS_MODELS,
    WORDPRESS_SLUG,
    CMSSettings,
    FolderCMSSettings,
    SandboxCMSSettings,
    WordPressCMSSettings,
    why_unfit_for_wordpress,
)
from content_pipeline.core.service_settings import CapabilityName
from content_pipeline.core.settings import checked_url

SETTINGS: TypeAdapter[Any] = TypeAdapter(CMSSettings)


def refusal(document: object) -> str:
    with pytest.raises(ValidationError) as caught:
        SETTINGS.validate_python(document)
    (error,) = caught.value.errors()
    return error["msg"]


def test_a_cms_without_a_kind_is_a_folder() -> None:
    assert SETTINGS.validate_python({"folder": "public"}) == FolderCMSSettings(folder="public")


def test_the_kind_says_which_settings_are_meant() -> None:
    found = SETTINGS.validate_python({"kind": "wordpress", "url": "https://www.example.com/blog/"})
    assert found == WordPressCMSSettings(kind="wordpress", url="https://www.example.com/blog")


def test_settings_that_were_read_already_are_taken_as_they_are() -> None:
    settings = WordPressCMSSettings(kind="wordpress")
    assert SETTINGS.validate_python(settings) == settings


def test_the_sandbox_needs_nothing_but_its_name() -> None:
    found = SETTINGS.validate_python({"kind": "sandbox"})
    assert found == SandboxCMSSettings(kind="sandbox")
    assert not [name for name in SandboxCMSSettings.model_fields if name.endswith("_env")]


@pytest.mark.parametrize(
    ("name", "value"),
    [("latency_median_s", -1), ("listing_lag_s", 61), ("latency_sigma", 3), ("deadline_s", 0)],
)
def test_a_sandbox_that_could_not_be_is_refused(name: str, value: float) -> None:
    assert "Input should be" in refusal({"kind": "sandbox", name: value})


@pytest.mark.parametrize("kind", ["wordpres", "", 3, None])
def test_an_unknown_kind_is_refused_with_the_known_ones(kind: object) -> None:
    message = refusal({"kind": kind})
    assert message == f"`cms.kind` must be one of: {', '.join(CMS_MODELS)}"


def test_every_kind_is_known_by_the_name_its_model_gives_it() -> None:
    for kind, model in CMS_MODELS.items():
        assert kind in str(model.model_fields["kind"].annotation)


def test_a_setting_of_another_kind_is_refused() -> None:
    assert "Extra inputs" in refusal({"kind": "wordpress", "folder": "public"})


@pytest.mark.parametrize("name", ["url_env", "user_env", "password_env"])
def test_a_credential_in_the_place_of_a_variables_name_is_not_repeated(name: str) -> None:
    message = refusal({"kind": "wordpress", name: "abcd efgh ijkl mnop"})
    assert "name an environment variable" in message
    assert "abcd" not in message


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("www.example.com", "absolute http(s) URL"),
        ("ftp://example.com", "absolute http(s) URL"),
        ("https://", "absolute http(s) URL"),
        ("https://admin:secret@example.com", "no credentials"),
        ("https://example.com/?rest_route=/", "no credentials, query"),
        ("https://example.com/#a", "query or fragment"),
        ("https://zürich.example", "percent-encoded"),
        ("https://example.com/a b", "percent-encoded"),
        ("https://example.com:0", "port 1 to 65535"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused(url: str, message: str) -> None:
    found = refusal({"kind": "wordpress", "url": url})
    assert message in found
    assert "secret" not in found


@pytest.mark.parametrize("url", ["https://example.com///", "https://example.com"])
def test_an_address_ends_without_a_slash(url: str) -> None:
    assert checked_url(url) == "https://example.com"


@pytest.mark.parametrize("deadline_s", [0, -1, 601, float("nan")])
def test_a_request_must_end(deadline_s: float) -> None:
    with pytest.raises(ValidationError):
        SETTINGS.validate_python({"kind": "wordpress", "deadline_s": deadline_s})


def test_a_webhook_may_declare_every_capability_and_no_other() -> None:
    assert get_args(CapabilityName) == CAPABILITY_NAMES
    found = SETTINGS.validate_python({"kind": "webhook", "capabilities": list(CAPABILITY_NAMES)})
    assert found.capabilities == frozenset(CAPABILITY_NAMES)
    assert "drafts" in refusal({"kind": "webhook", "capabilities": ["draft"]})


@pytest.mark.parametrize("below", ["/", "/land/", "/a/b-c/"])
def test_posts_of_ghost_may_stand_below_a_path(below: str) -> None:
    assert SETTINGS.validate_python({"kind": "ghost", "below": below}).below == below


@pytest.mark.parametrize("below", ["", "land", "/land", "land/", "//", "/Land/"])
def test_what_is_no_path_of_a_collection_is_refused(below: str) -> None:
    assert refusal({"kind": "ghost", "below": below})


@pytest.mark.parametrize("kind", ["ghost", "webhook"])
def test_a_key_in_the_place_of_a_variables_name_is_not_repeated(kind: str) -> None:
    message = refusal({"kind": kind, "key_env": "whsec_c2VjcmV0"})
    assert "name an environment variable" in message
    assert "whsec" not in message


@pytest.mark.parametrize(
    ("slug", "kept"),
    [
        ("austria", True),
        ("new-york-2", True),
        ("a_b", True),
        ("x", True),
        ("2024-guide", True),
        ("feeds", True),
        ("2024", False),
        ("page2", False),
        ("feed", False),
        ("rss2", False),
        ("embed", False),
        ("Austria", False),
        ("a--b", False),
        ("-a", False),
        ("a-", False),
        ("a~b", False),
        ("a.b", False),
        ("österreich", False),
        ("a\n", False),
        ("", False),
    ],
)
def test_only_what_wordpress_keeps_is_a_slug(slug: str, kept: bool) -> None:
    assert (WORDPRESS_SLUG.fullmatch(slug) is not None) is kept


@pytest.mark.parametrize(
    ("path", "longest_hold_s", "in_turn", "words"),
    [
        ("/x/", 300, 1, None),
        ("/guide/x-x/", 300, 1, None),
        ("/Guide/x/", 300, 1, "lower-case"),
        ("/a~x/", 300, 1, "lower-case"),
        ("/feed/x/", 300, 1, "lower-case"),
        ("/x/", 180, 1, "6 times cms.deadline_s (30 s)"),
        ("/x/", 361, 2, None),
        ("/x/", 360, 2, "or raise lane.cms_requests_at_once"),
    ],
)
def test_what_wordpress_would_change_is_refused_before_anything_is_paid_for(
    path: str, longest_hold_s: float, in_turn: int, words: str | None
) -> None:
    why = why_unfit_for_wordpress(
        sample_path=path, deadline_s=30, longest_hold_s=longest_hold_s, in_turn=in_turn
    )
    assert (why is None) if words is None else (words in (why or ""))
