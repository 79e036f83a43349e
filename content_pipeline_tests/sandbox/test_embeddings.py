"""The provider's embeddings as the real SDK sees them: alike texts alike, every call billed."""

import json
import math
from typing import Any

import httpx2
import openai
import pytest

from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.embeddings import LENGTHS
from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline.sandbox.vectors import vector_of
from content_pipeline_tests.sandbox.test_provider_faults import strike

SMALL = "text-embedding-3-small"
RIVER = "Aarau lies on the river Aare and has 21,000 people."
SAME_RIVER = "Aarau lies on the river Aare and has 21,500 people."
MOUNTAIN = "The highest summit of the canton is climbed from the south in two days."


def embed(sdk: openai.OpenAI, text: Any = RIVER, **more: Any) -> Any:
    attempt = {"X-Client-Request-Id": more.pop("attempt_id", "attempt-1")}
    return sdk.embeddings.create(
        **{"model": SMALL, "input": text, "extra_headers": attempt, **more}
    )


def vector(sdk: openai.OpenAI, text: str = RIVER, **more: Any) -> list[float]:
    numbers: list[float] = embed(sdk, text, **more).data[0].embedding
    return numbers


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_the_same_text_has_the_same_vector_and_alike_texts_alike_ones(
    sdk: openai.OpenAI,
) -> None:
    assert vector(sdk) == vector(sdk)
    near = cosine(vector(sdk), vector(sdk, SAME_RIVER))
    far = cosine(vector(sdk), vector(sdk, MOUNTAIN))
    assert 0.7 < near < 0.999
    assert far < 0.4


@pytest.mark.parametrize("model", sorted(LENGTHS))
def test_every_model_gives_vectors_of_its_length_and_of_length_one(
    sdk: openai.OpenAI, model: str
) -> None:
    numbers = vector(sdk, model=model)
    assert len(numbers) == LENGTHS[model]
    assert math.isclose(cosine(numbers, numbers), 1, rel_tol=1e-5)


def test_fewer_dimensions_are_the_beginning_of_the_whole_vector(sdk: openai.OpenAI) -> None:
    whole, short = vector(sdk), vector(sdk, dimensions=256)
    assert len(short) == 256
    size = math.sqrt(cosine(whole[:256], whole[:256]))
    assert all(math.isclose(a / size, b, abs_tol=1e-6) for a, b in zip(whole, short, strict=False))


def test_numbers_and_base64_say_the_same(sdk: openai.OpenAI) -> None:
    as_numbers = vector(sdk, encoding_format="float")
    assert [round(value, 6) for value in as_numbers] == [round(value, 6) for value in vector(sdk)]
    text = embed(sdk, encoding_format="base64").data[0].embedding
    assert isinstance(text, str)


def test_several_texts_have_their_vectors_in_order(sdk: openai.OpenAI) -> None:
    answer = embed(sdk, [RIVER, MOUNTAIN])
    assert [item.index for item in answer.data] == [0, 1]
    assert answer.data[1].embedding == vector(sdk, MOUNTAIN)


@pytest.mark.parametrize("text", ["…", "!?", " "])
def test_a_text_without_words_has_a_vector_too(text: str) -> None:
    numbers = vector_of(text, 8, 16)
    assert cosine(numbers, numbers) == 1


def test_a_call_is_billed_by_its_input_under_its_attempt(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    answer = embed(sdk)
    truth = box.truth()
    (generation,) = truth["generations"]
    assert generation["prompt_tokens"] == answer.usage.prompt_tokens == answer.usage.total_tokens
    assert 0 < generation["prompt_tokens"] <= len(RIVER.encode())
    assert (generation["completion_tokens"], generation["stored"]) == (0, False)
    assert (generation["attempt_id"], generation["model"]) == ("attempt-1", SMALL)
    assert truth["requests_by_operation"] == {"embed": 1}
    assert truth["creates_by_attempt_id"] == {"attempt-1": 1}


def test_nothing_is_kept_for_look_ups(box: SandboxClient, sdk: openai.OpenAI) -> None:
    embed(sdk)
    assert list(sdk.chat.completions.list(metadata={"attempt_id": "attempt-1"})) == []
    assert list(sdk.chat.completions.list()) == []


REFUSED: list[tuple[dict[str, Any], type[openai.APIStatusError], str]] = [
    ({"model": "gpt-4.1-mini"}, openai.NotFoundError, "does not exist"),
    ({"model": ""}, openai.BadRequestError, "model"),
    ({"text": ""}, openai.BadRequestError, "empty"),
    ({"text": []}, openai.BadRequestError, "1 to 2048"),
    ({"text": ["a"] * 2049}, openai.BadRequestError, "1 to 2048"),
    ({"text": [1, 2]}, openai.BadRequestError, "not tokens"),
    ({"text": "word " * 8000}, openai.BadRequestError, "maximum context length is 8192"),
    ({"dimensions": 0}, openai.BadRequestError, "1 to 1536"),
    ({"dimensions": 1537}, openai.BadRequestError, "1 to 1536"),
    ({"dimensions": 8, "model": "text-embedding-ada-002"}, openai.BadRequestError, "dimensions"),
    ({"encoding_format": "int8"}, openai.BadRequestError, "encoding_format"),
]


@pytest.mark.parametrize(("asked", "error", "words"), REFUSED)
def test_a_wrong_request_is_refused_and_not_billed(
    box: SandboxClient,
    sdk: openai.OpenAI,
    asked: dict[str, Any],
    error: type[openai.APIStatusError],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        embed(sdk, **asked)
    truth = box.truth()
    assert truth["generations"] == []
    assert truth["requests_by_operation"] == {"embed": 1}


def test_the_only_models_are_the_only_ones_here_too(box: SandboxClient, sdk: openai.OpenAI) -> None:
    settings = box.health()["settings"]
    box.set_settings(ProviderSettings(**{**settings, "models": ["gpt-4.1-mini"]}))
    with pytest.raises(openai.NotFoundError):
        embed(sdk)


def test_a_call_without_a_key_is_refused(box: SandboxClient) -> None:
    answer = httpx2.post(f"{box.base_url}/embeddings", json={"model": SMALL, "input": RIVER})
    assert answer.status_code == 401


RAISING: list[tuple[str, dict[str, Any], type[Exception], int]] = [
    ("status", {"status": 500}, openai.InternalServerError, 0),
    ("status", {"status": 429}, openai.RateLimitError, 0),
    ("status", {"status": 500, "billed": True}, openai.InternalServerError, 1),
    ("drop_before", {}, openai.APIConnectionError, 0),
    ("drop_after", {}, openai.APIConnectionError, 1),
    ("hang", {"seconds": 0.05}, openai.APIConnectionError, 1),
    ("cut_body", {}, openai.APIConnectionError, 1),
    ("empty", {}, json.JSONDecodeError, 1),
    ("no_choices", {}, ValueError, 1),
    ("html", {"status": 502}, openai.InternalServerError, 0),
]


@pytest.mark.parametrize(("kind", "fault", "error", "generations"), RAISING)
def test_a_fault_raises_in_the_sdk_and_bills_what_it_says(
    box: SandboxClient,
    sdk: openai.OpenAI,
    kind: str,
    fault: dict[str, Any],
    error: type[Exception],
    generations: int,
) -> None:
    strike(box, kind, match={"operation": "embed"}, **fault)
    with pytest.raises(error):
        embed(sdk)
    truth = box.truth()
    assert len(truth["generations"]) == generations
    assert truth["faults"] == {kind: 1}
    embed(sdk)
    assert len(box.truth()["generations"]) == generations + 1


def test_spoilt_vectors_look_like_this(box: SandboxClient, sdk: openai.OpenAI) -> None:
    match = {"operation": "embed"}
    strike(box, "broken_json", match=match)
    assert math.isnan(vector(sdk)[0])
    strike(box, "length", match=match)
    assert len(vector(sdk)) == 768
    strike(box, "empty_content", match=match)
    assert vector(sdk) == []
    strike(box, "null_usage", match=match)
    assert embed(sdk).usage is None
    assert len(box.truth()["generations"]) == 4


def test_faults_of_completions_leave_embeddings_alone_and_the_other_way_round(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    strike(box, "drop_after")
    assert len(vector(sdk)) == 1536
    strike(box, "drop_after", match={"operation": "embed", "prompt_contains": "summit"})
    assert len(vector(sdk)) == 1536
    with pytest.raises(openai.APIConnectionError):
        vector(sdk, MOUNTAIN)


@pytest.mark.parametrize("kind", ["refusal", "content_filter"])
def test_a_vector_neither_refuses_nor_is_filtered(kind: str) -> None:
    rule = {"fault": {"kind": kind}, "match": {"operation": "embed"}}
    with pytest.raises(ValueError, match="a failing of text"):
        FaultPlan.model_validate({"rules": [rule]})
