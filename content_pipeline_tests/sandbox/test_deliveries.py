"""How an announced wait is written, and what a client may conclude from it."""

import json

import pytest

from content_pipeline.adapters.llm.headers import retry_after_s
from content_pipeline.bootstrap import utc_now
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.deliveries import refused
from content_pipeline.sandbox.faults import Fault, FaultKind, FaultPlan
from content_pipeline_tests.sandbox.asking import body_of, exchange, raw_request, stored_as

WAIT_S = 1.2345


def busy(style: str, kind: FaultKind = FaultKind.STATUS) -> Fault:
    return Fault.model_validate(
        {"kind": kind, "status": 429, "retry_after_s": WAIT_S, "retry_after_style": style}
    )


@pytest.mark.parametrize(
    ("style", "name", "value"),
    [
        ("seconds", "retry-after", "2"),
        ("float", "retry-after", "1.235"),
        ("ms", "retry-after-ms", "1235"),
    ],
)
def test_a_wait_is_written_in_the_asked_style_and_never_shortened(
    style: str, name: str, value: str
) -> None:
    assert refused(busy(style)).headers[name] == value


@pytest.mark.parametrize("style", ["seconds", "float", "ms", "http_date"])
@pytest.mark.parametrize("kind", [FaultKind.STATUS, FaultKind.HTML])
def test_a_client_reads_at_least_the_announced_wait(style: str, kind: FaultKind) -> None:
    before = utc_now()
    read = retry_after_s(refused(busy(style, kind)).headers, before)
    assert read is not None
    assert read >= WAIT_S
    # A date has no fractions: it is up to a second later.
    assert read < WAIT_S + 1 + (utc_now() - before).total_seconds()


def test_an_answer_without_headers_announces_nothing() -> None:
    assert busy("seconds").announced_s == WAIT_S
    assert Fault(kind=FaultKind.STATUS).announced_s is None
    assert busy("seconds", FaultKind.DROP_BEFORE).announced_s is None
    assert "retry-after" not in refused(Fault(kind=FaultKind.STATUS)).headers


def test_the_provider_tells_which_request_was_told_to_wait(box: SandboxClient) -> None:
    rule = {"fault": busy("ms").model_dump(mode="json"), "match": {"nth": 1}}
    box.set_faults(FaultPlan.model_validate({"rules": [rule]}))
    for number in (1, 2):
        body = json.dumps(body_of(**stored_as(f"a-{number}", "a"))).encode()
        exchange(box, raw_request(body))
    first, second = box.requests()
    assert (first["attempt_id"], first["wait_s"], first["fault"]) == ("a-1", WAIT_S, "status")
    assert (second["attempt_id"], second["wait_s"], second["fault"]) == ("a-2", None, None)
    assert first["page_job_id"] == second["page_job_id"] == "a"
