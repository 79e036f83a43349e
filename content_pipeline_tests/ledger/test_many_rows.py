"""Thousands of rows go to the database in one parameter, and arrive as they were."""

from typing import Any

import pytest
from sqlalchemy import func
from sqlalchemy.exc import DataError

from content_pipeline.ledger import many_rows
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.many_rows import batches, inserting
from content_pipeline.ledger.schema import TopicStatus, rejected_rows, sites, topics
from content_pipeline_tests.ledger.wanting import rows_where, wanted
from content_pipeline_tests.operations.small_site import rows_of

TEXTS = [
    "plain",
    "",
    "\"quoted\" and 'so'",
    "back\\slash",
    "{a,b}",
    "null",
    "ﬁ 😀 \u2028",
    "a\nb\tc",
]


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    wanted(ledger, site_name, rows_of(1))
    return site_name


def topic(site: str, key: str, **more: Any) -> dict[str, Any]:
    fixed = {"site": site, "topic_key": key, "name": key, "input_hash": "h", "row_number": 1}
    return fixed | {"status": TopicStatus.ACTIVE, "message": None} | more


def test_any_text_arrives_as_it_was(ledger: Ledger, site: str) -> None:
    rows = [
        {"site": site, "row_number": number, "message": message}
        for number, message in enumerate(TEXTS)
    ]
    with ledger.begin() as connection:
        connection.execute(inserting(rejected_rows, rows))
    found = rows_where(ledger, rejected_rows, site=site)
    assert {row["row_number"]: row["message"] for row in found} == dict(enumerate(TEXTS))


def test_numbers_members_of_enumerations_and_nothing_arrive_in_the_order_of_the_rows(
    ledger: Ledger, site: str
) -> None:
    rows = [topic(site, f"k{number}", row_number=number) for number in range(50, 0, -1)]
    with ledger.begin() as connection:
        connection.execute(inserting(topics, rows))
    found = sorted(
        (row for row in rows_where(ledger, topics, site=site) if row["topic_key"] != "t0"),
        key=lambda row: row["noted"],
    )
    assert [row["row_number"] for row in found] == list(range(50, 0, -1))
    assert {(row["status"], row["message"]) for row in found} == {("active", None)}


def test_one_expression_may_stand_for_all_rows(ledger: Ledger, site: str) -> None:
    names = [f"{site}_a", f"{site}_b"]
    rows = [{"site": name, "title": name, "base_url": "b"} for name in names]
    with ledger.begin() as connection:
        connection.execute(inserting(sites, rows, owner=func.upper("team")))
    owners = [rows_where(ledger, sites, site=name)[0]["owner"] for name in names]
    assert owners == ["TEAM", "TEAM"]


def test_what_no_text_of_the_database_can_hold_is_refused_by_it(ledger: Ledger, site: str) -> None:
    with pytest.raises(DataError), ledger.begin() as connection:
        connection.execute(inserting(topics, [topic(site, "k", name="a\0b")]))


def test_batches_are_whole_and_none_is_larger_than_a_statement_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(many_rows, "BATCH", 3)
    rows = [{"number": number} for number in range(7)]
    assert [len(batch) for batch in batches(rows)] == [3, 3, 1]
    assert [row for batch in batches(rows) for row in batch] == rows
    assert list(batches([])) == []
