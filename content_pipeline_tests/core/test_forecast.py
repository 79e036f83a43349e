"""What a call will probably come to: from earlier calls, or from a stated assumption."""

from dataclasses import replace

import pytest

from content_pipeline.core.chain import Step, StepRole
from content_pipeline.core.forecast import (
    ASSUMED_LATENCY_S,
    Basis,
    StepHistory,
    expected_call,
)

STEP = Step(
    name="article",
    role=StepRole.CONTENT,
    template="",
    model="small",
    model_identity="small",
    schema_name="article",
    schema={},
    max_output_tokens=3_000,
    temperature=None,
)
VECTOR = replace(STEP, name="vector", role=StepRole.EMBEDDING)

PAST = StepHistory(
    step="article",
    model="small",
    calls=100,
    page_jobs=100,
    input_tokens=500,
    cached_tokens=100,
    output_tokens=800.4,
    prompt_bytes=2_000,
    latency_s=3,
)


def test_output_tokens_are_what_such_calls_wrote() -> None:
    expected = expected_call(STEP, 2_000, [PAST])
    assert expected.usage.output_tokens == 800
    assert (expected.calls, expected.latency_s, expected.basis) == (1, 3, Basis.HISTORY)


@pytest.mark.parametrize(("sent", "tokens"), [(2_000, 500), (4_000, 1_000), (1_000, 250)])
def test_input_tokens_are_counted_from_the_prompt_as_earlier_ones_were(
    sent: int, tokens: int
) -> None:
    usage = expected_call(STEP, sent, [PAST]).usage
    assert (usage.input_tokens, usage.cached_tokens) == (tokens, tokens // 5)


def test_a_prompt_that_is_not_known_yet_is_as_long_as_earlier_ones() -> None:
    assert expected_call(STEP, None, [PAST]).usage.input_tokens == 500


def test_calls_of_before_their_prompts_were_measured_still_tell_the_output() -> None:
    expected = expected_call(STEP, 4_000, [replace(PAST, prompt_bytes=None)])
    assert expected.usage.output_tokens == 800
    assert expected.usage.input_tokens == 1_064, "four bytes a token, and the messages' frame"


def test_pages_that_were_asked_for_twice_make_each_page_dearer() -> None:
    assert expected_call(STEP, 2_000, [replace(PAST, page_jobs=80)]).calls == 1.25


def test_the_same_model_comes_before_another_and_that_before_an_assumption() -> None:
    other = replace(PAST, model="large", calls=900, output_tokens=2_000)
    foreign = replace(PAST, step="outline")
    assert expected_call(STEP, 9, [other, PAST, foreign]).usage.output_tokens == 800
    by_other = expected_call(STEP, 9, [foreign, other])
    assert (by_other.usage.output_tokens, by_other.basis) == (2_000, Basis.OTHER_MODEL)
    assert expected_call(STEP, 9, [foreign]).basis is Basis.ASSUMPTION


def test_before_any_call_a_page_is_half_of_what_it_may_be() -> None:
    expected = expected_call(STEP, 4_000, [])
    assert (expected.usage.input_tokens, expected.usage.output_tokens) == (1_064, 1_500)
    assert (expected.basis, expected.latency_s) == (Basis.ASSUMPTION, ASSUMED_LATENCY_S)


def test_an_embedding_writes_nothing() -> None:
    assert expected_call(VECTOR, 4_000, []).usage.output_tokens == 0


def test_a_call_whose_time_nobody_measured_takes_the_assumed_time() -> None:
    assert expected_call(STEP, 9, [replace(PAST, latency_s=None)]).latency_s == ASSUMED_LATENCY_S
