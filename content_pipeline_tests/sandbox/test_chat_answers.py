import json
from typing import Any

import pytest

from content_pipeline.core.article import parse_article
from content_pipeline.sandbox.chat_answers import REFUSAL, Answer, completion_document, compose
from content_pipeline.sandbox.chat_requests import ApiError, count_tokens, parse_request
from content_pipeline.sandbox.faults import FaultKind
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.sandbox.asking import ICELAND, body_of, response_format

OTHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "mayors": {"type": "array", "items": {}}},
    "required": ["city", "mayors"],
    "additionalProperties": False,
}


def asked(**more: Any) -> Any:
    return parse_request(json.dumps(body_of(**more)).encode(), ProviderSettings())


def answer(fault: FaultKind | None = None, seed: int = 0, **more: Any) -> Answer:
    return compose(asked(**more), seed, fault)


def text(fault: FaultKind | None = None, seed: int = 0, **more: Any) -> str:
    content = answer(fault, seed, **more).content
    assert content is not None
    return content


def test_an_article_is_written_where_one_is_asked_for() -> None:
    article = parse_article(text(facts=ICELAND))
    assert "Reykjavík" in article.plain_text()


def test_the_seed_and_the_facts_decide_the_text() -> None:
    assert text() == text()
    assert len({text(), text(seed=1), text(facts=ICELAND)}) == 3


def test_any_json_is_an_article_and_no_format_is_plain_text() -> None:
    parse_article(text(response_format={"type": "json_object"}))
    plain = text(response_format=None)
    assert "Switzerland" in plain
    assert not plain.startswith("{")


def test_another_schema_gets_an_instance_of_its_own() -> None:
    made = json.loads(text(response_format=response_format(OTHER)))
    assert made == {"city": "sandbox", "mayors": ["sandbox"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "^\\d+$"}}},
        {"type": "object", "properties": ["a"]},
        {"type": "object", "properties": {"a": 5}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": "4"}}},
    ],
)
def test_an_impossible_schema_is_the_callers_fault(schema: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        answer(response_format=response_format(schema, strict=False))
    assert caught.value.status == 400
    assert caught.value.envelope["error"]["code"] == "invalid_json_schema"


def test_output_is_billed_by_its_text() -> None:
    made = answer()
    assert made.completion_tokens == count_tokens(text())
    assert made.reasoning_tokens == 0
    assert made.finish_reason == "stop"


@pytest.mark.parametrize("model", ["o3", "gpt-5.2", "gpt-5-mini"])
def test_a_reasoning_model_bills_its_thoughts_as_output(model: str) -> None:
    made = answer(model=model)
    assert 64 <= made.reasoning_tokens <= 512
    assert made.completion_tokens == made.reasoning_tokens + count_tokens(made.content or "")


@pytest.mark.parametrize("limit", [1, 10, 100])
def test_a_small_limit_cuts_the_text_and_bills_the_limit(limit: int) -> None:
    made = answer(max_completion_tokens=limit)
    assert made.finish_reason == "length"
    assert made.completion_tokens == limit
    assert text().startswith(made.content or "?")


def test_a_limit_that_is_just_large_enough_cuts_nothing() -> None:
    needed = answer().completion_tokens
    assert answer(max_tokens=needed).finish_reason == "stop"
    assert answer(max_tokens=needed - 1).finish_reason == "length"


def test_reasoning_can_use_up_the_whole_limit() -> None:
    made = answer(model="o3", max_completion_tokens=50)
    assert (made.content, made.finish_reason) == ("", "length")
    assert (made.reasoning_tokens, made.completion_tokens) == (50, 50)


def test_a_cut_never_splits_a_character() -> None:
    facts = {"Name": "Ж" * 40, "Motto": "Ж" * 60}
    whole = text(facts=facts)
    for limit in range(10, 60):
        assert whole.startswith(text(facts=facts, max_completion_tokens=limit))


@pytest.mark.parametrize(
    ("fault", "finish_reason", "is_json"),
    [
        (FaultKind.CONTENT_FILTER, "content_filter", False),
        (FaultKind.LENGTH, "length", False),
        (FaultKind.BROKEN_JSON, "stop", False),
        (FaultKind.HANG, "stop", True),
        (FaultKind.NULL_USAGE, "stop", True),
        (None, "stop", True),
    ],
)
def test_a_failing_of_the_model_is_part_of_its_answer(
    fault: FaultKind | None, finish_reason: str, is_json: bool
) -> None:
    made = answer(fault)
    assert made.finish_reason == finish_reason
    assert made.content
    assert made.content.endswith("}") is is_json
    assert made.completion_tokens == count_tokens(made.content)


def test_a_refusal_has_no_text_and_is_billed() -> None:
    made = answer(FaultKind.REFUSAL)
    assert (made.content, made.refusal, made.finish_reason) == (None, REFUSAL, "stop")
    assert made.completion_tokens == count_tokens(REFUSAL)


def test_an_empty_answer_is_empty_and_costs_no_output() -> None:
    made = answer(FaultKind.EMPTY_CONTENT)
    assert (made.content, made.completion_tokens) == ("", 0)


def test_the_documents_usage_adds_up() -> None:
    request = asked(model="gpt-5.2", messages=[{"role": "user", "content": "word " * 3000}])
    made = compose(request, 0, None)
    document = completion_document(request, made, "chatcmpl-1", 1700000000)
    usage = document["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == request.cached_tokens > 0
    assert usage["completion_tokens_details"]["reasoning_tokens"] == made.reasoning_tokens > 0
    assert "metadata" not in document
