"""The topics of a bucket are found by their hash, slice by slice, and none twice."""

from itertools import chain

import pytest
from sqlalchemy import text

from content_pipeline.core.buckets import SLOTS, Buckets, Slots, slot_of
from content_pipeline.core.states import ALL_STAGES, PageJobState, Stage
from content_pipeline.ledger import buckets
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import topics
from content_pipeline_tests.ledger.plans import (
    as_on_a_large_site,
    indexes,
    listening,
    plan_of,
    read_whole,
    shown,
)
from content_pipeline_tests.ledger.wanting import (
    job_in,
    leased,
    let_go,
    rows_where,
    take_in,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of, settings_of

S = PageJobState
ALL = Slots(first=0, last=SLOTS - 1)


def keys_of(ledger: Ledger, site: str, slots: Slots = ALL, most: int = 1_000) -> list[str]:
    return list(chain.from_iterable(buckets.pages(ledger, site, slots, most)))


def unfinished_of(
    ledger: Ledger, site: str, *each: Slots, stages: frozenset[Stage] = ALL_STAGES
) -> list[str]:
    return list(chain.from_iterable(buckets.unfinished(ledger, site, each or [ALL], stages)))


def test_the_ledger_computes_the_hash_of_the_core(ledger: Ledger, site_name: str) -> None:
    odd = ["A.b-c_D", "0", "x" * 100, "..."]
    rows = [row | {"id": key} for row, key in zip(rows_of(4), odd, strict=True)]
    wanted(ledger, site_name, rows)
    kept = {row["topic_key"]: row["slot"] for row in rows_where(ledger, topics, site=site_name)}
    assert kept == {key: slot_of(key) for key in odd}


@pytest.mark.parametrize("count", [1, 3, 10])
def test_every_topic_is_in_one_bucket_whatever_their_number(
    count: int, ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(30))
    divided = Buckets(count=count)
    found = {name: keys_of(ledger, site_name, divided.slots(name)) for name in divided.names()}
    assert sorted(chain.from_iterable(found.values())) == sorted(f"t{n}" for n in range(30))
    assert all(divided.name_of(key) == name for name, keys in found.items() for key in keys)


@pytest.mark.parametrize("most", [1, 2, 5, 10, 11])
def test_no_slice_is_longer_than_asked_for_and_none_repeats(
    most: int, ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(10))
    pages = list(buckets.pages(ledger, site_name, ALL, most))
    assert [len(part) for part in pages] == [most] * (10 // most) + [10 % most] * bool(10 % most)
    assert sorted(chain.from_iterable(pages)) == sorted(f"t{n}" for n in range(10))
    parts = list(buckets.unfinished(ledger, site_name, [ALL], ALL_STAGES, most))
    assert parts == pages


def test_small_buckets_share_a_slice(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(20))
    divided = Buckets(count=10)
    each = [divided.slots(name) for name in divided.names()]
    parts = list(buckets.unfinished(ledger, site_name, each, ALL_STAGES, 8))
    assert [len(part) for part in parts] == [8, 8, 4]
    assert len(set(chain.from_iterable(parts))) == 20


def test_another_site_has_the_same_hashes_and_other_topics(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(2))
    wanted(ledger, f"{site_name}_2", rows_of(5))
    assert sorted(keys_of(ledger, site_name)) == ["t0", "t1"]
    assert sorted(unfinished_of(ledger, site_name)) == ["t0", "t1"]
    assert keys_of(ledger, "nobody") == unfinished_of(ledger, "nobody") == []


@pytest.mark.parametrize(
    ("state", "stages", "found"),
    [
        (S.QUEUED, ALL_STAGES, True),
        (S.QUEUED, frozenset({Stage.ARTIFACT}), False),
        (S.GENERATED, frozenset({Stage.PAGE}), True),
        (S.GENERATED, frozenset({Stage.DRAFT}), False),
        (S.READY_TO_PUBLISH, frozenset({Stage.ARTIFACT}), True),
        (S.FAILED_RETRYABLE, ALL_STAGES, True),
        (S.PUBLISH_UNCERTAIN, ALL_STAGES, True),
        (S.WITHDRAWING, ALL_STAGES, True),
        (S.PUBLISHED, ALL_STAGES, False),
        (S.FAILED_TERMINAL, ALL_STAGES, False),
        (S.CANCELLED, ALL_STAGES, False),
    ],
)
def test_unfinished_is_what_the_stages_can_lead_on(
    state: S, stages: frozenset[Stage], found: bool, ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    _, lease = leased(ledger, site_name) if state is S.QUEUED else job_in(ledger, site_name, state)
    let_go(ledger, lease)
    assert unfinished_of(ledger, site_name, stages=stages) == ["t0"] * found
    assert keys_of(ledger, site_name) == ["t0"]


def test_a_retired_topic_counts_as_long_as_its_page_is_live(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(3))
    take_in(ledger, settings_of(site_name), rows_of(1))
    assert keys_of(ledger, site_name) == ["t0"], "t1 and t2 never were on the site"
    with ledger.begin() as connection:
        connection.execute(
            text(
                "UPDATE content_pipeline.pages SET published_revision = 1, last_revision = 1, "
                "remote_fingerprint = 'f' WHERE site = :site AND topic_key = 't2'"
            ),
            {"site": site_name},
        )
    assert sorted(keys_of(ledger, site_name)) == ["t0", "t2"]


def test_a_bucket_of_a_large_site_is_read_by_its_index(ledger: Ledger, site_name: str) -> None:
    with listening(ledger.engine) as said:
        keys_of(ledger, site_name)
        unfinished_of(ledger, site_name)
    with ledger.begin() as connection:
        as_on_a_large_site(connection)
        plans = [plan_of(connection, each) for each in said if "topics" in each.statement]
    assert len(plans) == 2
    for plan in plans:
        assert "topics_slot_idx" in indexes(plan), shown(plan)
        assert not read_whole(plan), shown(plan)
