"""Causes: messages that differ in values alone are one cause, all others are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.core.causes import LONGEST_CAUSE, PREFIX, WHAT_TO_DO, cause_of, folded
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.topics import TOPIC_KEY

INVALID = FailureClass.INVALID_PAGE


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (
            "states_fact: the page does not state Population: '10,037'",
            "states_fact: the page does not state Population",
        ),
        (
            'states_fact: the page does not state Name: "St. John\'s"; words: 40 is outside 60 to '
            "3000; and 3 more",
            "states_fact: the page does not state Name: …; words: # is outside # to #; and # more",
        ),
        (
            "row 12 (t-11): column 'price' is empty, and the page must state it",
            "row …: column 'price' is empty, and the page must state it",
        ),
        (
            "topics 'a' and \"b'c\" both claim /x/y/; it belongs to 'a'. Give 'b' another name",
            "topics … and … both claim …; it belongs to …. Give … another name",
        ),
        (
            "/chur/ was not written: the file changed meanwhile",
            "… was not written: the file changed meanwhile",
        ),
        (
            "the next call could cost $0.00645550 and $0.1 of this page's cap of $0.10 are used",
            "the next call could cost $# and $# of this page's cap of $# are used",
        ),
        (
            "HTTP 400: Unknown parameter: 'foo' (request req_8f3a01, chatcmpl-9Xy7abcd)",
            "HTTP #: Unknown parameter: … (request #, chatcmpl-#)",
        ),
        (
            "attempt 550e8400-e29b-41d4-dead-446655440000 is gone",
            "attempt # is gone",
        ),
        (
            "the answer is not of the asked schema (sections.0.heading: minLength)",
            "the answer is not of the asked schema (sections.#.heading: minLength)",
        ),
        ("see https://docs.example/a?b=1 for more", "see … for more"),
        ("it isn't the site's fault", "it isn't the site's fault"),
        ("2026-11-30 12:30:01 is too late", "#-#-# # is too late"),
    ],
)
def test_a_message_is_folded_to_what_its_pages_share(message: str, cause: str) -> None:
    assert folded(message) == cause


def test_a_place_in_our_own_code_is_the_cause_itself() -> None:
    first = folded("KeyError at /srv/site/content_pipeline/operations/validate.py:31")
    assert first.endswith("validate.py:31")
    assert first != folded("KeyError at /srv/site/content_pipeline/operations/publish.py:31")
    assert first != folded("KeyError at /srv/site/content_pipeline/operations/validate.py:32")


def test_columns_are_causes_of_their_own() -> None:
    price, name = (f"row 3 (t3): column {column!r} is empty" for column in ("price", "name"))
    assert cause_of(INVALID, price) != cause_of(INVALID, name)
    assert cause_of(INVALID, price) == cause_of(INVALID, price.replace("3", "77"))


def test_classes_are_causes_of_their_own() -> None:
    assert cause_of(INVALID, "it failed") != cause_of(FailureClass.TRANSIENT, "it failed")


def test_an_essay_is_cut() -> None:
    assert len(folded("word " * 1_000)) == LONGEST_CAUSE


VALUES = st.one_of(
    st.integers(0, 10**9).map(str),
    st.decimals(0, 10**6, places=4, allow_nan=False).map(str),
    st.text().map(repr),
    st.uuids().map(str),
    st.sampled_from(["/chur/", "/a-b/c/", "https://towns.example/x?y=1"]),
)


@given(first=VALUES, second=VALUES)
def test_any_values_fold_to_one_cause_each_of_its_kind(first: str, second: str) -> None:
    kinds = {folded(f"the cap of {value} is passed") for value in (first, second)}
    assert kinds <= {f"the cap of {mark} is passed" for mark in ("#", "…")}


@given(st.text(max_size=300))
def test_folding_is_total_and_settles(message: str) -> None:
    once = folded(message)
    assert len(once) <= LONGEST_CAUSE
    assert cause_of(INVALID, message) == cause_of(INVALID, message)


def test_a_fingerprint_is_no_topic_id_and_no_path() -> None:
    fingerprint = cause_of(INVALID, "it failed").fingerprint
    assert fingerprint.startswith(PREFIX)
    assert not TOPIC_KEY.fullmatch(fingerprint)
    assert not fingerprint.startswith("/")


@pytest.mark.parametrize("failure_class", FailureClass)
def test_every_class_says_what_a_person_can_do(failure_class: FailureClass) -> None:
    assert len(WHAT_TO_DO[failure_class].split()) >= 5
