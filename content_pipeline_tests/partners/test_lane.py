"""The real lane among partners: what a whole run pays, publishes and repeats.

The judges are the provider's truth, the folder's own log of writes, and llmock's verdict.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.adapters.llm.prices import GenaiPrices
from content_pipeline.core.money import Usage
from content_pipeline.core.ports import LanguageModel
from content_pipeline.ledger.database import Ledger
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.small_site import (
    clock,
    path_of,
    rows_of,
    settings_of,
    site_of,
)
from content_pipeline_tests.partners.conftest import MakeModel
from content_pipeline_tests.partners.gateway import Gateway
from content_pipeline_tests.partners.llmock import Llmock

MakeSite = Callable[..., Bench]

TOWNS = 10

ARTICLE = {
    "title": "Aarau 0",
    "meta_description": "Aarau 0 in Canton 0, home of 10,000 people on the banks of the Aare.",
    "introduction": "Aarau 0 is a town in Canton 0 with a population of 10,000. " * 4,
    "sections": [
        {"heading": "The river", "body_markdown": "The Aare flows past the old walls. " * 4},
        {"heading": "The people", "body_markdown": "Its 10,000 inhabitants like it here. " * 4},
    ],
}
"""A page that meets the rules of the first town."""


@pytest.fixture
def make_site(ledger: Ledger, provider: SandboxClient, site_name: str, tmp_path: Path) -> MakeSite:
    """Builds a site whose pages are written by the given model."""

    def make(model: LanguageModel, towns: int, **changes: Any) -> Bench:
        return Bench(
            site=site_of(settings_of(site_name, **changes)),
            rows=rows_of(towns),
            ledger=ledger,
            sandbox=provider,
            folder=tmp_path / "public",
            model=model,
        )

    return make


def published_once(site: Bench) -> bool:
    """Every page is public, and was written exactly once."""
    done = set(site.states().values()) == {"published"}
    return done and sorted(site.writes()) == sorted((path_of(row), 1) for row in site.rows)


def booked(site: Bench) -> dict[str, Decimal]:
    """Page job → the dollars that the ledger books for it, with no doubt left."""
    reports = [site.report(row["id"]) for row in site.rows]
    assert not any(report.uncertain_usd for report in reports)
    return {report.page_job_id: report.usd for report in reports}


def bill(provider: SandboxClient) -> dict[str, Decimal]:
    """Page job → the list price of the tokens of all its generations, as the provider counts."""
    prices = GenaiPrices(provider="openai", now=clock)
    billed: dict[str, Decimal] = defaultdict(Decimal)
    for generation in provider.truth()["generations"]:
        usage = Usage(
            input_tokens=generation["prompt_tokens"],
            output_tokens=generation["completion_tokens"],
            cached_tokens=generation["cached_tokens"],
        )
        billed[generation["page_job_id"]] += prices.cost(generation["model"], usage)
    return billed


def test_answers_lost_after_the_call_are_recovered_and_not_paid_again(
    gateway: Gateway, provider: SandboxClient, make_model: MakeModel, make_site: MakeSite
) -> None:
    gateway.strike("kill_after", first_of_page_job=True)
    site = make_site(make_model(gateway.base_url, profile="sandbox"), TOWNS)
    site.submit_and_run()
    assert published_once(site)
    truth = provider.truth()
    assert len(truth["generations"]) == len(truth["generations_by_page_job_id"]) == TOWNS
    assert set(truth["creates_by_attempt_id"].values()) == {1}
    assert booked(site) == bill(provider)
    assert [post["fault"] for post in gateway.posts()] == ["kill_after"] * TOWNS


def test_calls_lost_on_their_way_are_paid_once_when_they_are_proved_lost(
    gateway: Gateway, provider: SandboxClient, make_model: MakeModel, make_site: MakeSite
) -> None:
    gateway.strike("kill_before", first_of_page_job=True)
    site = make_site(
        make_model(gateway.base_url, profile="sandbox"),
        3,
        generation={"deadline_s": 1, "answer_slack_s": 0.5},
        lane={"patience_s": 8},
    )
    site.submit_and_run()
    assert published_once(site)
    assert set(provider.truth()["generations_by_page_job_id"].values()) == {1}
    assert len(provider.truth()["generations"]) == 3
    assert booked(site) == bill(provider)
    assert sorted(str(post["fault"]) for post in gateway.posts()) == [
        *["None"] * 3,
        *["kill_before"] * 3,
    ]


def test_an_account_without_credit_is_asked_once_for_a_whole_site(
    llmock: Llmock, make_model: MakeModel, make_site: MakeSite
) -> None:
    llmock.script({"type": "fail", "status": 429, "code": "insufficient_quota", "times": None})
    site = make_site(make_model(llmock.base_url), TOWNS, generation={"in_flight": 1})
    site.submit_and_run()
    assert len(llmock.requests()) == 1
    assert site.writes() == []


def test_a_judge_of_clients_finds_nothing_against_the_lanes_retries(
    llmock: Llmock, make_model: MakeModel, make_site: MakeSite
) -> None:
    """Retries are told by equal bodies, so the model is one that is sent no ids in them."""
    llmock.script(
        {"type": "fail", "status": 429, "retry_after": 1.0},
        {"type": "fail", "status": 503, "retry_after": 0.5},
        {"type": "fail", "status": 500},
        {"type": "reply", "text": json.dumps(ARTICLE)},
    )
    quick = {"attempts": 4, "first_wait_s": 0.2, "max_wait_s": 1}
    site = make_site(
        make_model(llmock.base_url, profile="generic"),
        1,
        retries={"throttled": quick, "transient": quick},
        lane={"patience_s": 10},
    )
    site.submit_and_run()
    assert published_once(site)
    verdict = llmock.verdict()
    assert (verdict["calls"], verdict["attempts"]) == (1, 4)
    assert verdict["findings"] == []
