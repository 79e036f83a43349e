"""Which bucket a topic belongs to: for ever the same one, and about as many in each."""

from collections import Counter

import pytest
from pydantic import ValidationError

from content_pipeline.core.buckets import SLOTS, Buckets, TopicsOf, slot_of
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.site import SiteSettings
from content_pipeline_tests.operations.small_site import settings_of

COUNTS = (1, 2, 3, 7, 10, 100, 999, 1_000, 9_999)


def test_a_topic_stays_in_its_bucket_for_ever() -> None:
    # The ledger keeps these numbers: another hash would send every page elsewhere.
    assert slot_of("t01") == int("48ebf35d", 16)
    assert {key: Buckets(count=1_000).name_of(key) for key in ("t01", "CH", "a.b-c_d")} == {
        "t01": "b0284-of-1000",
        "CH": "b0408-of-1000",
        "a.b-c_d": "b0085-of-1000",
    }


@pytest.mark.parametrize(
    ("count", "name"), [(1, "b0-of-1"), (10, "b03-of-10"), (1_000, "b0003-of-1000")]
)
def test_a_name_tells_number_and_count(count: int, name: str) -> None:
    buckets = Buckets(count=count)
    assert name in list(buckets.names())
    assert len(set(buckets.names())) == count
    assert sorted(buckets.names()) == list(buckets.names()), "the UI's order is that of numbers"


@pytest.mark.parametrize("count", COUNTS)
def test_the_buckets_divide_all_slots_without_gap_or_overlap(count: int) -> None:
    buckets = Buckets(count=count)
    expected = 0
    for name in buckets.names():
        slots = buckets.slots(name)
        assert slots.first == expected
        assert slots.last >= slots.first
        expected = slots.last + 1
    assert expected == SLOTS


@pytest.mark.parametrize("count", COUNTS)
def test_a_topic_lies_in_the_slots_of_its_bucket(count: int) -> None:
    buckets = Buckets(count=count)
    for number in range(500):
        slots = buckets.slots(buckets.name_of(f"t{number}"))
        assert slots.first <= slot_of(f"t{number}") <= slots.last


def test_buckets_are_about_equally_full() -> None:
    filled = Counter(Buckets(count=100).name_of(f"t{number}") for number in range(100_000))
    assert len(filled) == 100
    assert 800 < min(filled.values()) <= max(filled.values()) < 1_200


@pytest.mark.parametrize(
    "name",
    ["b0003-of-100", "b03-of-10", "b100-of-100", "b3-of-100", "t01", "b-of-100", "", "b٣-of-100"],
)
def test_a_name_of_another_number_of_buckets_is_refused_with_what_to_do(name: str) -> None:
    with pytest.raises(ConfigurationError, match="request the buckets of now"):
        Buckets(count=100).slots(name)


def test_the_topics_of_buckets_are_a_set_that_lists_nobody() -> None:
    buckets = Buckets(count=4)
    keys = [f"t{number}" for number in range(40)]
    some = frozenset(list(buckets.names())[:2])
    chosen = TopicsOf(buckets, some)
    assert {key for key in keys if key in chosen} == {
        key for key in keys if buckets.name_of(key) in some
    }
    assert 7 not in chosen
    assert "t1" not in TopicsOf(buckets, frozenset())


def settings(**changes: object) -> SiteSettings:
    return SiteSettings.model_validate(
        settings_of("towns").model_dump(exclude_unset=True) | changes
    )


def test_a_site_has_a_partition_per_page_unless_it_says_otherwise() -> None:
    assert settings().in_buckets is None
    assert settings(partition_by="page").in_buckets is None
    assert settings(partition_by="bucket", buckets=10_000).in_buckets == Buckets(count=10_000)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"partition_by": "bucket"}, "go together"),
        ({"buckets": 100}, "go together"),
        ({"partition_by": "page", "buckets": 100}, "go together"),
        ({"partition_by": "bucket", "buckets": 0}, "greater than or equal to 1"),
        ({"partition_by": "bucket", "buckets": 50_001}, "less than or equal to 50000"),
        ({"partition_by": "country", "buckets": 9}, "'page' or 'bucket'"),
    ],
)
def test_a_wrong_way_to_divide_a_site_is_refused(
    changes: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValidationError, match=complaint):
        settings(**changes)
