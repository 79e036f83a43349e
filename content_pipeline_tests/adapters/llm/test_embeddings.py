"""The paid call for a vector: one POST, classified like every call; HTTP 200 is not success."""

import base64
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.adapters.llm.openai_model import OpenAIModel
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import EmbeddingRequest, RawResponse, Reading
from content_pipeline.core.vectors import packed
from content_pipeline_tests.adapters.llm import loopback
from content_pipeline_tests.adapters.llm.samples import KEY, PROMPT, chat, raw
from content_pipeline_tests.adapters.llm.test_send import FAULTS, SLOW

F = FailureClass
VECTOR = packed([0.5, -0.5, 0.25])
BASE64 = base64.b64encode(VECTOR).decode()


def request(**changes: Any) -> EmbeddingRequest:
    fields: dict[str, Any] = {
        "attempt_id": "att-0001",
        "model": "text-embedding-3-small",
        "text": PROMPT,
        "dimensions": None,
        "deadline_s": 20.0,
    }
    return EmbeddingRequest(**{**fields, **changes})


def answer_of(embedding: object = BASE64, **changes: Any) -> dict[str, Any]:
    """A list of one embedding as OpenAI sends it."""
    document = {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": embedding}],
        "model": "text-embedding-3-small",
        "usage": {"prompt_tokens": 12, "total_tokens": 12},
    }
    return {**document, **changes}


def read(answer: RawResponse) -> Reading:
    model = chat("http://127.0.0.1:9/v1")
    try:
        return model.embeddings.read(answer)
    finally:
        model.close()


def sent_to(behaviour: loopback.Behaviour, **changes: Any) -> tuple[RawResponse, loopback.Server]:
    with loopback.serving(behaviour) as server:
        model = chat(server.base_url)
        try:
            return model.embeddings.send(request(**changes)), server
        finally:
            model.close()


def failure_of(model: OpenAIModel, **changes: Any) -> Failure:
    try:
        with pytest.raises(CallFailed) as caught:
            model.embeddings.send(request(**changes))
    finally:
        model.close()
    assert caught.value.__cause__ is None
    return caught.value.failure


def test_one_request_says_what_is_wanted_and_nothing_more() -> None:
    answer, server = sent_to(loopback.answer(200, answer_of()))
    assert answer.status == 200
    assert json.loads(answer.body) == answer_of()
    (received,) = server.received
    assert (received.method, received.target) == ("POST", "/v1/embeddings")
    assert received.json() == {
        "model": "text-embedding-3-small",
        "input": PROMPT,
        "encoding_format": "base64",
    }
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.headers["idempotency-key"] == "att-0001"
    assert received.headers["x-client-request-id"] == "att-0001"


def test_a_length_is_asked_for_where_the_step_states_one() -> None:
    _, server = sent_to(loopback.answer(200, answer_of()), dimensions=256)
    assert server.received[0].json()["dimensions"] == 256


@pytest.mark.parametrize(("behaviour", "failure_class"), FAULTS)
def test_a_fault_is_classified_as_for_every_paid_call_after_one_post(
    behaviour: loopback.Behaviour, failure_class: FailureClass
) -> None:
    with loopback.serving(behaviour) as server:
        failure = failure_of(chat(server.base_url))
    assert failure.failure_class is failure_class
    assert len(server.received) == 1
    assert not [canary for canary in (KEY, PROMPT, "canary") if canary in repr(failure)]


@pytest.mark.parametrize("behaviour", SLOW)
def test_a_call_is_over_at_its_deadline_and_uncertain(behaviour: loopback.Behaviour) -> None:
    with loopback.serving(behaviour) as server:
        failure = failure_of(chat(server.base_url), deadline_s=0.4)
    assert failure.failure_class is F.UNCERTAIN
    assert server.posts == 1


def test_what_never_left_is_not_uncertain() -> None:
    failure = failure_of(chat(f"http://127.0.0.1:{loopback.free_port()}/v1"))
    assert failure.failure_class is F.NOT_SENT


@pytest.mark.parametrize("embedding", [BASE64, [0.5, -0.5, 0.25]])
def test_a_vector_is_read_in_both_forms(embedding: object) -> None:
    reading = read(raw(answer_of(embedding), {"x-request-id": "req_1"}))
    assert (reading.vector, reading.failure, reading.text) == (VECTOR, None, None)
    assert (reading.model, reading.request_id) == ("text-embedding-3-small", "req_1")
    assert reading.usage is not None
    assert (reading.usage.input_tokens, reading.usage.output_tokens) == (12, 0)


NOT_AN_EMBEDDING: list[tuple[bytes | object, str]] = [
    (b"", "empty"),
    (b"<html></html>", "markup"),
    (b"upstream timed out", "not JSON"),
    (json.dumps(answer_of()).encode()[:-20], "too early"),
    ("a text", "str"),
    ([answer_of()], "list"),
    (None, "NoneType"),
    ({}, "no data"),
    (answer_of(data=None), "no data"),
    (answer_of(data=[]), "no data"),
    (answer_of(data={}), "no data"),
    (answer_of(data="x"), "no data"),
    ({"error": "boom"}, "error of unknown form"),
]


@pytest.mark.parametrize(("body", "words"), NOT_AN_EMBEDDING)
def test_what_is_no_answer_of_the_endpoint_may_hide_a_paid_one(
    body: bytes | object, words: str
) -> None:
    reading = read(raw(body))
    assert reading.vector is None
    assert reading.failure is not None
    assert reading.failure.failure_class is F.UNCERTAIN
    assert words in reading.failure.message


USELESS: list[dict[str, Any]] = [
    answer_of(data=[None]),
    answer_of(data=["x"]),
    answer_of(data=[{}]),
    answer_of(data=answer_of()["data"] * 2),
    answer_of(None),
    answer_of("not base64!"),
    answer_of("ünïcode"),
    answer_of(BASE64[:-1]),
    answer_of({"0": 0.5}),
    answer_of(["0.5"]),
    answer_of([None]),
    answer_of([[0.5]]),
    answer_of([True, False]),
    answer_of([1e39]),
    answer_of([10**400]),
]


@pytest.mark.parametrize("document", USELESS)
def test_an_answer_without_a_vector_was_paid_for_and_is_of_no_use(
    document: dict[str, Any],
) -> None:
    reading = read(raw(document))
    assert reading.vector is None
    assert reading.failure is not None
    assert reading.failure.failure_class is F.BAD_OUTPUT
    assert reading.usage is not None


@pytest.mark.parametrize("embedding", [[math.nan], [], ""])
def test_numbers_are_handed_on_for_the_rules_of_vectors_to_judge(embedding: object) -> None:
    assert read(raw(answer_of(embedding))).vector is not None


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 5}, 5),
        ({"total_tokens": 7}, 7),
        ({"prompt_tokens": 5, "total_tokens": 9}, 9),
        ({"prompt_tokens": 0, "total_tokens": 0}, None),
        ({"prompt_tokens": -5}, None),
        ({"prompt_tokens": "5"}, None),
        ({}, None),
        (None, None),
        ([5], None),
    ],
)
def test_a_wrong_report_of_tokens_never_makes_a_call_free(usage: Any, tokens: int | None) -> None:
    reading = read(raw(answer_of(usage=usage)))
    assert reading.vector == VECTOR
    assert (reading.usage and reading.usage.input_tokens) == tokens


def test_an_error_in_a_200_is_told_by_its_code() -> None:
    error = {"error": {"message": PROMPT, "type": "insufficient_quota"}}
    reading = read(raw(error))
    assert reading.failure is not None
    assert reading.failure.failure_class is F.QUOTA
    assert PROMPT not in repr(reading)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from(["data", "usage", "model", "embedding"]))
def test_reading_never_raises(value: Any, place: str) -> None:
    document = answer_of(value) if place == "embedding" else answer_of(**{place: value})
    reading = read(raw(document))
    assert (reading.vector is None) == (reading.failure is not None)


def test_a_vector_and_its_text_are_not_shown() -> None:
    reading = read(raw(answer_of()))
    assert "vector" not in repr(reading)
    model = chat("http://127.0.0.1:9/v1")
    assert KEY not in repr(model.embeddings)
    model.close()
