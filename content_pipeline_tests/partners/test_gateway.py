"""Through mitmproxy to a provider that really answers: what a lost answer costs, and its recovery.

The provider's own truth says what was billed. Every fault after the answer must leave exactly one
billed generation per attempt, and a look-up must find that very completion.
"""

import json
import os
import re
from typing import Any

import pytest

from content_pipeline.core.article import parse_article
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline_tests.adapters.llm.loopback import free_port
from content_pipeline_tests.adapters.llm.samples import KEY, request
from content_pipeline_tests.partners.calls import failure_of, reading_of
from content_pipeline_tests.partners.conftest import MakeModel
from content_pipeline_tests.partners.gateway import ADDON, Gateway

DEADLINE_S = 2.0

BEFORE = {
    "kill_before": FailureClass.UNCERTAIN,
    "html_429_before": FailureClass.THROTTLED,
    "html_503_before": FailureClass.UNCERTAIN,
    "loop_308_before": FailureClass.REQUEST,
}
AFTER = [
    "kill_after",
    "hold_after",
    "html_502_after",
    "html_524_after",
    "html_200_after",
    "empty_after",
    "cut_json_after",
    "short_body_after",
    "gzip_garbage_after",
]


def only_generation(provider: SandboxClient, attempt_id: str) -> dict[str, Any]:
    """The one generation the provider billed, for an attempt it received once."""
    truth = provider.truth()
    assert truth["creates_by_attempt_id"] == {attempt_id: 1}
    assert truth["generations_by_attempt_id"] == {attempt_id: 1}
    (generation,) = truth["generations"]
    found: dict[str, Any] = generation
    return found


def test_the_provider_is_no_part_of_this_process(provider: SandboxClient) -> None:
    assert provider.health()["pid"] != os.getpid()


def test_a_faithful_gateway_is_not_noticed(
    gateway: Gateway, provider: SandboxClient, make_model: MakeModel
) -> None:
    reading = reading_of(make_model(gateway.base_url, profile="sandbox"))
    generation = only_generation(provider, "att-0001")
    assert reading.failure is None
    assert parse_article(reading.text or "").sections
    assert reading.response_id == generation["id"]
    assert len(gateway.posts()) == 1


@pytest.mark.parametrize("fault", AFTER)
def test_an_answer_lost_on_its_way_is_billed_once_and_found_by_asking(
    gateway: Gateway, provider: SandboxClient, make_model: MakeModel, fault: str
) -> None:
    gateway.strike(fault)
    through = make_model(gateway.base_url, profile="sandbox")
    failure = failure_of(through, attempt_id=fault, deadline_s=DEADLINE_S)
    assert failure.failure_class is FailureClass.UNCERTAIN
    assert "billed" in failure.message
    assert gateway.posts() == [{"method": "POST", "attempt_id": fault, "fault": fault}]
    generation = only_generation(provider, fault)

    for model in (through, make_model(provider.base_url, profile="sandbox")):
        found = model.look_up(fault)
        assert found.verdict is Verdict.PRESENT
        assert found.raw is not None
        reading = model.read(found.raw)
        assert reading.failure is None
        assert parse_article(reading.text or "").sections
        assert reading.response_id == generation["id"]
        assert reading.usage is not None
        assert reading.usage.input_tokens == generation["prompt_tokens"]
        assert reading.usage.output_tokens == generation["completion_tokens"]
    assert only_generation(provider, fault) == generation


@pytest.mark.parametrize(("fault", "failure_class"), BEFORE.items())
def test_a_call_that_never_arrived_is_not_billed_and_not_found(
    gateway: Gateway,
    provider: SandboxClient,
    make_model: MakeModel,
    fault: str,
    failure_class: FailureClass,
) -> None:
    gateway.strike(fault)
    model = make_model(gateway.base_url, profile="sandbox")
    failure = failure_of(model, attempt_id=fault, deadline_s=DEADLINE_S)
    assert failure.failure_class is failure_class
    assert gateway.posts() == [{"method": "POST", "attempt_id": fault, "fault": fault}]
    assert provider.truth()["generations"] == []
    assert model.look_up(fault).verdict is Verdict.ABSENT


@pytest.mark.parametrize("fault", ["html_429_before", "html_503_before"])
def test_a_gateway_announces_its_wait_in_seconds_or_as_a_date(
    gateway: Gateway, make_model: MakeModel, fault: str
) -> None:
    gateway.strike(fault)
    failure = failure_of(make_model(gateway.base_url, profile="sandbox"))
    assert failure.retry_after_s == 30.0


def test_every_fault_of_the_gateway_is_tried_here() -> None:
    offered = re.findall(r'^    "(\w+)": ', ADDON.read_text(), re.MULTILINE)
    assert sorted(offered) == sorted([*BEFORE, *AFTER])


def test_one_client_goes_through_all_faults_and_is_none_the_worse(
    gateway: Gateway, provider: SandboxClient, make_model: MakeModel
) -> None:
    model = make_model(gateway.base_url, profile="sandbox")
    faults = [fault for fault in (*BEFORE, *AFTER) if fault != "hold_after"]
    for fault in faults:
        gateway.strike(fault)
        failure_of(model, attempt_id=fault)
        gateway.strike(None)
        assert reading_of(model, attempt_id=f"{fault}-next").failure is None
    assert len(gateway.posts()) == 2 * len(faults)
    billed = provider.truth()["generations_by_attempt_id"]
    assert set(billed.values()) == {1}
    assert billed.keys() == {
        *(f"{fault}-next" for fault in faults),
        *(fault for fault in faults if fault in AFTER),
    }


def test_a_dead_server_behind_a_gateway_is_uncertain_and_cannot_be_asked(
    gateway: Gateway, provider: SandboxClient, make_model: MakeModel
) -> None:
    nobody = f"http://127.0.0.1:{free_port()}/v1"
    model = make_model(nobody, profile="sandbox", proxy_url=gateway.proxy_url)
    failure = failure_of(model)
    assert failure.http_status == 502
    assert failure.failure_class is FailureClass.UNCERTAIN
    assert model.look_up("att-0001").verdict is Verdict.UNKNOWN
    assert len(gateway.posts()) == 1
    assert provider.truth()["requests"] == 0


def test_a_forward_proxy_carries_the_call_unchanged(
    gateway: Gateway, provider: SandboxClient, make_model: MakeModel
) -> None:
    model = make_model(provider.base_url, profile="sandbox", proxy_url=gateway.proxy_url)
    raw = model.send(request())
    assert json.loads(raw.body)["id"] == only_generation(provider, "att-0001")["id"]
    assert len(gateway.posts()) == 1


@pytest.mark.parametrize("way", ["as the provider", "as a proxy"])
def test_a_stranger_in_between_never_sees_the_prompt_or_the_key(
    gateway: Gateway, provider: SandboxClient, make_model: MakeModel, way: str
) -> None:
    """The gateway offers a certificate of its own making for any name."""
    if way == "as the provider":
        model = make_model(gateway.base_url.replace("http:", "https:"), profile="sandbox")
    else:
        secure = provider.base_url.replace("http:", "https:")
        model = make_model(secure, profile="sandbox", proxy_url=gateway.proxy_url)
    failure = failure_of(model)
    assert failure.failure_class is FailureClass.NOT_SENT
    assert KEY not in failure.message
    assert gateway.posts() == []
    assert provider.truth()["requests"] == 0
