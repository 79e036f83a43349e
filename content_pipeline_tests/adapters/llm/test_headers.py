"""Waiting times survive anything a header can hold; identifiers are told from text."""

from datetime import timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content_pipeline.adapters.llm.headers import (
    kept_headers,
    request_id,
    retry_after_s,
    safe_token,
)
from content_pipeline.adapters.retry_after import MAX_RETRY_AFTER_S
from content_pipeline_tests.adapters.llm.samples import NOW

WAITS = [
    ("1", 1.0),
    ("0.5", 0.5),
    ("61", 61.0),
    ("121", 121.0),
    ("86400", 86_400.0),
    ("86401", MAX_RETRY_AFTER_S),
    (str(10**30), MAX_RETRY_AFTER_S),
    (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
    (format_datetime(NOW + timedelta(days=400), usegmt=True), MAX_RETRY_AFTER_S),
    ("0", None),
    ("-5", None),
    ("-0", None),
    ("nan", None),
    ("inf", None),
    ("-inf", None),
    ("1e400", None),
    ("", None),
    ("soon", None),
    ("1 2", None),
    ("10s", None),
    ("Sun, 99 Nov 2026 12:00:00 GMT", None),
    ("Sun, 29 Nov 2026 12:00:00", None),
    ("Sun, 29 Nov 99999 12:00:00 GMT", None),
    (format_datetime(NOW - timedelta(seconds=1), usegmt=True), None),
    (format_datetime(NOW, usegmt=True), None),
]


@pytest.mark.parametrize(("value", "seconds"), WAITS)
def test_retry_after_is_read_or_ignored(value: str, seconds: float | None) -> None:
    assert retry_after_s({"Retry-After": value}, NOW) == seconds


def test_milliseconds_win_over_seconds() -> None:
    assert retry_after_s({"retry-after-ms": "1500", "retry-after": "9"}, NOW) == 1.5


def test_unreadable_milliseconds_leave_the_seconds() -> None:
    assert retry_after_s({"retry-after-ms": "soon", "retry-after": "9"}, NOW) == 9.0


def test_no_header_means_no_wait_announced() -> None:
    assert retry_after_s({}, NOW) is None


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_value_makes_a_wait_negative_endless_or_an_error(seconds: str, millis: str) -> None:
    wait = retry_after_s({"retry-after": seconds, "retry-after-ms": millis}, NOW)
    assert wait is None or 0 < wait <= MAX_RETRY_AFTER_S


@pytest.mark.parametrize(
    "name", ["set-cookie", "Authorization", "openai-organization", "x-anything", "cookie"]
)
def test_a_header_not_known_to_be_harmless_is_not_kept(name: str) -> None:
    assert kept_headers({name: "secret"}) == {}


def test_a_very_long_value_is_cut() -> None:
    assert len(kept_headers({"Date": "d" * 5000})["date"]) == 256


def test_the_request_id_of_either_provider_is_found() -> None:
    assert request_id({"X-Request-ID": "req_1", "apim-request-id": "a-1"}) == "req_1"
    assert request_id({"apim-request-id": "a-1"}) == "a-1"
    assert request_id({"x-request-id": "not an id"}) is None


@pytest.mark.parametrize("value", ["gpt-5.2", "openai/gpt-5.2:free", "chatcmpl-A1", "stop", 400, 0])
def test_an_identifier_is_passed_on(value: str | int) -> None:
    assert safe_token(value) == str(value)


@pytest.mark.parametrize(
    "value", [None, "", "two words", "sk-proj-1", 1.5, True, [], "a\n", "é", "-a"]
)
def test_anything_else_is_not(value: object) -> None:
    assert safe_token(value) is None
