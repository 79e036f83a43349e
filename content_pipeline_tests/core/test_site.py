from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from content_pipeline.core.cms_settings import FolderCMSSettings
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.generation_settings import WITH_RESPONSES, GenerationAPI
from content_pipeline.core.retries import LONGEST_WAIT_S, RetryPolicy
from content_pipeline.core.site import SiteSettings
from content_pipeline_tests.core.samples import site_document, site_settings


def refusal(**changes: Any) -> tuple[str, str]:
    """Place and message of the one thing that is wrong."""
    with pytest.raises(ValidationError) as caught:
        site_settings(**changes)
    (error,) = caught.value.errors()
    return ".".join(map(str, error["loc"])), error["msg"].removeprefix("Value error, ")


def test_a_site_needs_little_and_has_safe_defaults() -> None:
    site = site_settings()
    assert site.topics.path == "/{name}/"
    assert site.article.prompt == "prompt.md"
    assert site.language == "en"
    assert (site.budgets.page_usd, site.budgets.site_day_usd) == (Decimal(1), Decimal(50))
    assert site.lane.patience_s >= 4 * site.lane.lease_s, "a dead worker's page is taken in a run"
    assert site.lane.page_deadline_s > LONGEST_WAIT_S, "no wait of a site file passes it"
    assert site.cms == FolderCMSSettings(folder="public/towns")
    assert site.retries == {}


def test_calls_are_chat_completions_unless_the_owners_choose() -> None:
    generation = site_settings().generation
    assert (generation.api, generation.background) == (GenerationAPI.CHAT, False)


@pytest.mark.parametrize("provider", sorted(WITH_RESPONSES))
@pytest.mark.parametrize("background", [True, False])
def test_responses_can_be_chosen_where_the_provider_keeps_them(
    provider: str, background: bool
) -> None:
    generation = site_settings(
        generation__provider=provider,
        generation__api="responses",
        generation__background=background,
    ).generation
    assert (generation.api, generation.background) == (GenerationAPI.RESPONSES, background)


@pytest.mark.parametrize("provider", ["openrouter", "vllm", "ollama", "llama_cpp", "generic"])
def test_responses_are_refused_where_a_lost_one_could_not_be_asked_for(provider: str) -> None:
    place, message = refusal(generation__provider=provider, generation__api="responses")
    assert place == "generation"
    assert f"provider '{provider}' does not keep responses" in message
    assert "use `api: chat`, or one of azure, openai, sandbox" in message


def test_the_background_needs_the_api_that_has_one() -> None:
    _, message = refusal(generation__background=True)
    assert message == "`background: true` needs `api: responses`; chat has no such mode"


@pytest.mark.parametrize(
    "place",
    [
        "site",
        "title",
        "base_url",
        "topics",
        "topics__id",
        "topics__name",
        "article",
        "article__facts",
        "generation",
        "generation__provider",
        "generation__model",
        "cms",
        "cms__folder",
    ],
)
def test_what_only_the_owners_can_know_has_no_default(place: str) -> None:
    document = site_document()
    *sections, key = place.split("__")
    section = document
    for name in sections:
        section = section[name]
    del section[key]
    with pytest.raises(ValidationError) as caught:
        SiteSettings.model_validate(document)
    (error,) = caught.value.errors()
    assert (error["type"], error["loc"][-1]) == ("missing", key)


@pytest.mark.parametrize(
    "place",
    [
        "sites",
        "topics__tables",
        "article__rules__min_word",
        "generation__temprature",
        "generation__sandbox__latency",
        "generation__price__input",
        "cms__path",
        "budgets__page",
        "lane__lease",
    ],
)
def test_a_key_nobody_knows_is_refused_everywhere(place: str) -> None:
    with pytest.raises(ValidationError) as caught:
        site_settings(**{place: 1})
    assert "extra_forbidden" in {error["type"] for error in caught.value.errors()}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    # identity
    ({"site": "Towns"}, "site", "should match pattern"),
    ({"site": "1towns"}, "site", "should match pattern"),
    ({"site": "towns/x"}, "site", "should match pattern"),
    ({"site": "towns\n"}, "site", "should match pattern"),
    ({"site": "t" * 41}, "site", "should match pattern"),
    ({"title": ""}, "title", "at least 1 character"),
    ({"language": "english!"}, "language", "should match pattern"),
    # base URL
    ({"base_url": "towns.example"}, "base_url", "absolute http(s) URL"),
    ({"base_url": "ftp://towns.example"}, "base_url", "absolute http(s) URL"),
    ({"base_url": "https://"}, "base_url", "absolute http(s) URL"),
    ({"base_url": "https://["}, "base_url", "Invalid IPv6 URL"),
    ({"base_url": "https://me:pass@towns.example"}, "base_url", "no credentials"),
    ({"base_url": "https://@towns.example"}, "base_url", "no credentials"),
    ({"base_url": "https://towns.example/?a=b"}, "base_url", "no credentials, query or fragment"),
    ({"base_url": "https://towns.example/?"}, "base_url", "no credentials, query or fragment"),
    ({"base_url": "https://towns.example/#a"}, "base_url", "no credentials, query or fragment"),
    ({"base_url": "https://towns.example/#"}, "base_url", "no credentials, query or fragment"),
    ({"base_url": "https://my towns.example"}, "base_url", "percent-encoded ASCII"),
    ({"base_url": "https://towns.example\n"}, "base_url", "percent-encoded ASCII"),
    ({"base_url": "https://zürich.example"}, "base_url", "percent-encoded ASCII"),
    ({"base_url": 'https://towns.example/"'}, "base_url", "percent-encoded ASCII"),
    ({"base_url": "https://towns.example:99999"}, "base_url", "Port out of range"),
    ({"base_url": "https://towns.example:x"}, "base_url", "Port could not be cast"),
    ({"base_url": "https://towns.example:0"}, "base_url", "port 0"),
    # topics
    ({"topics__query": "select 1"}, "topics", "not both"),
    ({"topics__table": None}, "topics", "give either `table` (a file) or `query` (SQL)"),
    (
        {"topics__table": None, "topics__query": "select 1"},
        "topics",
        "`query` and `database_env` go together",
    ),
    ({"topics__database_env": "TOWNS_DB"}, "topics", "`query` and `database_env` go together"),
    ({"topics__path": "{name}/"}, "topics.path", "start with and end in a slash"),
    ({"topics__path": "/{name}"}, "topics.path", "start with and end in a slash"),
    ({"topics__path": "/"}, "topics.path", "must name a {column}"),
    ({"topics__path": "/towns/"}, "topics.path", "must name a {column}"),
    ({"topics__path": "/{}/"}, "topics.path", "must name a {column}"),
    ({"topics__path": "/{name}/{}/"}, "topics.path", "between single slashes"),
    ({"topics__path": "//{name}/"}, "topics.path", "between single slashes"),
    ({"topics__path": "/../{name}/"}, "topics.path", "between single slashes"),
    ({"topics__path": "/my towns/{name}/"}, "topics.path", "between single slashes"),
    ({"topics__path": "/sitemap.xml/{name}/"}, "topics.path", "between single slashes"),
    ({"topics__path": "/{name}/?a=/"}, "topics.path", "between single slashes"),
    ({"topics__path": "/{name}{/"}, "topics.path", "between single slashes"),
    # article
    ({"article__facts": {}}, "article.facts", "at least 1 item"),
    ({"article__must_state": ["lake"]}, "article", "not in facts: lake"),
    (
        {"article__facts": {"name": "Name", "country": " "}},
        "article",
        "the fact 'country' has an empty label",
    ),
    (
        {"article__facts": {"name": "Name", "country": "Name"}},
        "article",
        "two facts are called 'Name'",
    ),
    ({"article__rules__min_words": 5000}, "article.rules", "min_words is larger than max_words"),
    # generation
    ({"generation__provider": "opnai"}, "generation.provider", "'sandbox', 'openai', 'azure'"),
    ({"generation__model": ""}, "generation.model", "at least 1 character"),
    ({"generation__max_output_tokens": 15}, "generation.max_output_tokens", "equal to 16"),
    ({"generation__temperature": 2.1}, "generation.temperature", "less than or equal to 2"),
    ({"generation__temperature": float("nan")}, "generation.temperature", "less than or equal"),
    ({"generation__deadline_s": 0}, "generation.deadline_s", "greater than 0"),
    ({"generation__deadline_s": float("inf")}, "generation.deadline_s", "equal to 3600"),
    ({"generation__in_flight": 0}, "generation.in_flight", "equal to 1"),
    ({"generation__in_flight": 257}, "generation.in_flight", "equal to 256"),
    ({"generation__in_flight": "many"}, "generation.in_flight", "valid integer"),
    (
        {"generation__api_key_env": "sk-0123456789abcdef"},
        "generation.api_key_env",
        "capital letters",
    ),
    (
        {"generation__api_key_env": "0f" * 16},
        "generation.api_key_env",
        "name an environment variable",
    ),
    (
        {"generation__base_url_env": "https://x.example"},
        "generation.base_url_env",
        "capital letters",
    ),
    ({"generation__base_url_env": ""}, "generation.base_url_env", "capital letters"),
    (
        {"generation__price": {"input_usd_per_mtok": -1, "output_usd_per_mtok": 1}},
        "generation.price.input_usd_per_mtok",
        "greater than or equal to 0",
    ),
    (
        {"generation__price": {"input_usd_per_mtok": "NaN", "output_usd_per_mtok": 1}},
        "generation.price.input_usd_per_mtok",
        "finite number",
    ),
    (
        {"generation__sandbox__latency_median_s": 61},
        "generation.sandbox.latency_median_s",
        "less than or equal to 60",
    ),
    # cms
    ({"cms__kind": "wordpres"}, "cms", "must be one of: folder, wordpress"),
    ({"cms__folder": ""}, "cms.folder.folder", "a folder of the site's own"),
    ({"cms__folder": "."}, "cms.folder.folder", "a folder of the site's own"),
    ({"cms__folder": "../.."}, "cms.folder.folder", "a folder of the site's own"),
    ({"cms__folder": "/"}, "cms.folder.folder", "a folder of the site's own"),
    ({"cms__folder": "public\x00"}, "cms.folder.folder", "a folder of the site's own"),
    # budgets, lane, retries
    ({"budgets__page_usd": 0}, "budgets.page_usd", "greater than 0"),
    ({"budgets__page_usd": "Infinity"}, "budgets.page_usd", "finite number"),
    ({"budgets__site_day_usd": "much"}, "budgets.site_day_usd", "valid decimal"),
    ({"lane__lease_s": 0.4}, "lane.lease_s", "equal to 0.5"),
    ({"lane__patience_s": 3601}, "lane.patience_s", "equal to 3600"),
    ({"lane__longest_hold_s": 0}, "lane.longest_hold_s", "greater than 0"),
    ({"lane__cms_requests_at_once": 0}, "lane.cms_requests_at_once", "equal to 1"),
    ({"lane__cms_requests_at_once": 65}, "lane.cms_requests_at_once", "equal to 64"),
    ({"lane__run_limit_s": float("inf")}, "lane.run_limit_s", "equal to 604800"),
    ({"lane__page_deadline_s": 367 * 86_400}, "lane.page_deadline_s", "equal to 31622400"),
    ({"generation__answer_slack_s": 0}, "", "generation.answer_slack_s is 0 s"),
    ({"generation__deadline_s": 3600}, "", "lane.longest_hold_s (600 s) must be longer than 36"),
    ({"lane__lease_s": 600}, "", "must be at least 2 times lane.lease_s (600 s)"),
    ({"lane__run_limit_s": 500}, "", "must be longer than lane.longest_hold_s (600 s)"),
    ({"lane__patience_s": 1800}, "", "must be longer than lane.patience_s (1800 s)"),
    ({"lane__page_deadline_s": 900}, "", "must be longer than lane.run_limit_s (1800 s)"),
    ({"retries": {"budget": {"attempts": 3}}}, "retries", "budget has no policy"),
    (
        {"retries": {"transient": {"attempts": 0}}},
        "retries.transient.attempts",
        "greater than or equal to 1",
    ),
    ({"retries": {"often": {"attempts": 1}}}, "retries.often.[key]", "'not_sent', 'transient'"),
]


@pytest.mark.parametrize(
    ("changes", "place", "message"), REFUSED, ids=[str(changes)[:60] for changes, _, _ in REFUSED]
)
def test_a_bad_value_is_refused_at_its_place(
    changes: dict[str, Any], place: str, message: str
) -> None:
    found_place, found_message = refusal(**changes)
    assert found_place == place
    assert message in found_message


def test_a_credential_in_the_wrong_place_is_not_repeated() -> None:
    for place in ("generation__api_key_env", "generation__base_url_env"):
        _, message = refusal(**{place: "0123456789abcdef0123456789abcdef"})
        assert "0123" not in message


@pytest.mark.parametrize(
    ("base_url", "kept"),
    [
        ("https://towns.example", "https://towns.example"),
        ("https://towns.example/", "https://towns.example"),
        ("https://towns.example/guide//", "https://towns.example/guide"),
        ("http://127.0.0.1:8000/a%20b", "http://127.0.0.1:8000/a%20b"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://xn--zrich-kva.example/@guide", "https://xn--zrich-kva.example/@guide"),
    ],
)
def test_urls_of_pages_are_the_base_and_the_path(base_url: str, kept: str) -> None:
    site = site_settings(base_url=base_url)
    assert site.base_url == kept
    assert site.url_of("/berlin/") == f"{kept}/berlin/"


@pytest.mark.parametrize(
    "path",
    ["/{name}/", "/{country}/{name}/", "/in-{country}_~/{name}-{code}/", "/v1/{Long Name (new)}/"],
)
def test_paths_that_can_be_published_are_taken(path: str) -> None:
    assert site_settings(topics__path=path).topics.path == path


@pytest.mark.parametrize("folder", ["public/towns", "../site/public", "/var/www/towns", "a.b"])
def test_a_site_may_stand_anywhere_in_a_folder_of_its_own(folder: str) -> None:
    assert site_settings(cms__folder=folder).cms == FolderCMSSettings(folder=folder)


def test_a_query_takes_the_place_of_a_table() -> None:
    source = site_settings(
        topics__table=None, topics__query="select 1", topics__database_env="TOWNS_DATABASE_URL"
    ).topics
    assert (source.table, source.database_env) == (None, "TOWNS_DATABASE_URL")


def test_limits_that_leave_room_for_each_other_are_taken_together() -> None:
    site = site_settings(
        generation__deadline_s=3600,
        lane__longest_hold_s=4000,
        lane__run_limit_s=5000,
        lane__page_deadline_s=6000,
    )
    assert site.lane.run_limit_s == 5000


def test_a_policy_says_what_is_heeded_and_for_how_long() -> None:
    policy = {"attempts": 3, "heed_retry_after": False, "deadline_s": 900}
    site = site_settings(retries={"throttled": policy})
    assert site.retries[FailureClass.THROTTLED] == RetryPolicy(
        attempts=3, heed_retry_after=False, deadline_s=900
    )


def test_a_policy_of_the_site_is_read_under_the_name_of_its_class() -> None:
    site = site_settings(retries={"transient": {"attempts": 2, "first_wait_s": 0.5}})
    assert site.retries == {
        FailureClass.TRANSIENT: RetryPolicy(attempts=2, first_wait_s=0.5, max_wait_s=300)
    }


@pytest.mark.parametrize(
    ("provider", "identity"), [("sandbox", "sandbox/gpt-5-mini"), ("openai", "gpt-5-mini")]
)
def test_sandbox_text_is_never_taken_for_a_models(provider: str, identity: str) -> None:
    site = site_settings(generation__provider=provider)
    assert site.model_identity("gpt-5-mini") == identity


@pytest.mark.parametrize(
    "failure_class", ["policy", "invalid_input", "invalid_page", "terminal", "conflict"]
)
def test_what_would_end_the_same_is_not_tried_again(failure_class: str) -> None:
    assert site_settings(retries={failure_class: {"attempts": 1}}).retries
    with pytest.raises(ValidationError, match="is tried once"):
        site_settings(retries={failure_class: {"attempts": 2}})


def test_money_stays_exact() -> None:
    site = site_settings(budgets__page_usd=0.1, budgets__site_day_usd="5.00")
    assert site.budgets.page_usd == Decimal("0.1")
    assert str(site.budgets.site_day_usd) == "5.00"


def test_settings_cannot_be_changed_behind_anybodys_back() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        site_settings().title = "Other"  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["wordpress", "sandbox"])
def test_a_path_that_wordpress_would_change_is_refused_with_the_site(kind: str) -> None:
    place, message = refusal(cms={"kind": kind}, topics__path="/Guide/{name}/")
    assert place == ""
    assert "correct topics.path" in message
    assert site_settings(topics__path="/Guide/{name}/").cms.kind == "folder"
