"""A usage report is believed or dropped whole: a wrong one must never make a paid call free."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content_pipeline.adapters.llm.usage import reported_usage
from content_pipeline.core.money import Usage

GOOD = {"prompt_tokens": 900, "completion_tokens": 300, "total_tokens": 1200}


def usage(**changes: Any) -> Usage | None:
    return reported_usage({"usage": {**GOOD, **changes}})


def test_all_counts_and_the_tier_that_served_are_read() -> None:
    report = {
        **GOOD,
        "prompt_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 50},
        "completion_tokens_details": {"reasoning_tokens": 100},
    }
    assert reported_usage({"usage": report, "service_tier": "flex"}) == Usage(
        input_tokens=900,
        output_tokens=300,
        cached_tokens=800,
        cache_write_tokens=50,
        reasoning_tokens=100,
        service_tier="flex",
    )


RESPONSE = {"input_tokens": 900, "output_tokens": 300, "total_tokens": 1200}


def test_a_response_names_the_same_counts_otherwise() -> None:
    report = {
        **RESPONSE,
        "input_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 50},
        "output_tokens_details": {"reasoning_tokens": 100},
    }
    document = {"object": "response", "usage": report, "service_tier": "priority"}
    assert reported_usage(document) == Usage(
        input_tokens=900,
        output_tokens=300,
        cached_tokens=800,
        cache_write_tokens=50,
        reasoning_tokens=100,
        service_tier="priority",
    )


@pytest.mark.parametrize(
    "document",
    [
        {"object": "response", "usage": GOOD},
        {"object": "chat.completion", "usage": RESPONSE},
        {"object": "response", "usage": {**RESPONSE, "output_tokens": 0}},
        {"object": "response", "usage": None},
    ],
)
def test_counts_under_the_names_of_the_other_api_are_no_report(document: dict[str, Any]) -> None:
    assert reported_usage(document) is None


def test_details_may_be_missing() -> None:
    assert usage() == Usage(input_tokens=900, output_tokens=300)
    assert usage(prompt_tokens_details=None, completion_tokens_details="x") == usage()


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": 0},
        {"completion_tokens": 0},
        {"prompt_tokens": None},
        {"completion_tokens": None},
        {"prompt_tokens": -1},
        {"completion_tokens": -300},
        {"prompt_tokens": "900"},
        {"prompt_tokens": 900.0},
        {"prompt_tokens": True},
        {"prompt_tokens": 10**12},
        {"prompt_tokens_details": {"cached_tokens": 901}},
    ],
)
def test_an_impossible_report_is_no_report(changes: dict[str, Any]) -> None:
    assert usage(**changes) is None


@pytest.mark.parametrize("document", [{}, {"usage": None}, {"usage": []}, {"usage": {}}])
def test_no_report_is_no_report(document: dict[str, Any]) -> None:
    assert reported_usage(document) is None


def test_reasoning_left_out_of_the_output_is_charged_from_the_total() -> None:
    found = usage(total_tokens=1700)
    assert found is not None
    assert found.output_tokens == 800


def test_a_total_smaller_than_its_parts_changes_nothing() -> None:
    found = usage(total_tokens=5)
    assert found is not None
    assert found.output_tokens == 300


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from([*GOOD, "prompt_tokens_details"]), st.integers() | st.text())
)
def test_a_believed_report_always_costs_something(report: dict[str, Any]) -> None:
    found = reported_usage({"usage": report})
    assert found is None or (found.input_tokens > 0 and found.output_tokens > 0)
