"""Rows of a table come back from the ledger as they were taken in, few at a time."""

import pytest

from content_pipeline.core.buckets import Buckets, TopicsOf
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.topics import RejectedRow, Topic
from content_pipeline.ledger import kept_rows
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.intake import Part
from content_pipeline_tests.ledger.plans import (
    as_on_a_large_site,
    indexes,
    listening,
    plan_of,
    read_whole,
    shown,
)
from content_pipeline_tests.ledger.wanting import take_in, topics_in, wanted
from content_pipeline_tests.operations.small_site import rows_of, settings_of

TOWNS = 9


def parts_of(ledger: Ledger, site: str, only: list[str] | TopicsOf, most: int = 100) -> list[Part]:
    with ledger.begin() as connection:
        return list(kept_rows.of_topics(connection, site, only, most))


def kept(parts: list[Part]) -> list[tuple[int, Topic]]:
    return sorted((pair for part in parts for pair in part.topics), key=lambda pair: pair[0])


def test_topics_come_back_just_as_they_were_read_from_the_table(
    ledger: Ledger, site_name: str
) -> None:
    rows = rows_of(TOWNS)
    wanted(ledger, site_name, rows)
    wanted(ledger, f"{site_name}_2", rows)
    read = topics_in(settings_of(site_name), rows)
    assert kept(parts_of(ledger, site_name, ["t0", "t8", "t99"])) == [read[0], read[8]]
    assert kept(parts_of(ledger, site_name, [])) == []


@pytest.mark.parametrize("most", [1, 2, 100])
def test_a_bucket_comes_back_in_slices_without_a_gap(
    most: int, ledger: Ledger, site_name: str
) -> None:
    rows = rows_of(TOWNS)
    wanted(ledger, site_name, rows)
    read = topics_in(settings_of(site_name), rows)
    buckets = Buckets(count=3)
    for names in ({buckets.name(1)}, set(buckets.names())):
        only = TopicsOf(buckets, frozenset(names))
        parts = parts_of(ledger, site_name, only, most)
        assert kept(parts) == [pair for pair in read if pair[1].key in only]
        assert all(len(part.topics) <= most for part in parts)


def test_of_a_changed_row_the_newest_input_comes_back(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(2)
    wanted(ledger, site_name, rows)
    changed = [rows[0] | {"river": "Inn"}, rows[1]]
    wanted(ledger, site_name, changed)
    assert kept(parts_of(ledger, site_name, ["t0", "t1"])) == topics_in(
        settings_of(site_name), changed
    )


def test_a_refused_row_comes_back_with_its_reason_and_a_retired_one_not_at_all(
    ledger: Ledger, site_name: str
) -> None:
    rows = rows_of(3)
    wanted(ledger, site_name, rows)
    claims = rows[1] | {"id": "t7"}
    bad = RejectedRow(row_number=4, key="t8", message="row 4 (t8): column 'canton' is empty")
    take_in(ledger, settings_of(site_name), [rows[0], rows[1], claims], rejected=[bad])
    (part,) = parts_of(ledger, site_name, ["t0", "t2", "t7", "t8"])
    assert [topic.key for _, topic in part.topics] == ["t0"]
    assert [(item.key, item.row_number, item.name) for item in part.refused] == [
        ("t7", 3, "Baden 1"),
        ("t8", 4, "t8"),
    ]
    classes = [item.failure.failure_class for item in part.refused]
    assert classes == [FailureClass.TERMINAL, FailureClass.INVALID_INPUT]
    assert part.refused[1].failure.message == bad.message


def test_a_bucket_of_a_large_site_is_read_by_indexes(ledger: Ledger, site_name: str) -> None:
    only = TopicsOf(Buckets(count=2), frozenset({"b0-of-2"}))
    with listening(ledger.engine) as said:
        parts_of(ledger, site_name, only)
    with ledger.begin() as connection:
        as_on_a_large_site(connection)
        (plan,) = [plan_of(connection, each) for each in said if "topics" in each.statement]
    used = {"topics_slot_idx", "page_jobs_topic_idx", "pages_pkey"}
    assert used <= indexes(plan), shown(plan)
    assert not read_whole(plan), shown(plan)
