"""Admitting new pages: what counts, who never waits, and who is woken when there is room."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import func, update

from content_pipeline.core.publish_rate import PublishRate
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import publish_rate
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import pages
from content_pipeline_tests.ledger.wanting import (
    current_job,
    job_in,
    let_go,
    move_once,
    moved,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState
TWO = PublishRate(per_day=2, paced=False)
PACED = PublishRate(per_day=48, paced=True)


def made_public(ledger: Ledger, site: str, topic: str, *, hours_ago: float = 0) -> None:
    """The topic's page becomes public, as a proof would record it."""
    with ledger.begin() as connection:
        at = func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, hours_ago * 3600)
        connection.execute(
            update(pages)
            .where(pages.c.site == site, pages.c.topic_key == topic)
            .values(first_public_at=at)
        )


def is_admitted(ledger: Ledger, site: str, topic: str, rate: PublishRate | None = TWO) -> bool:
    """Whether the topic's draft may go out; one that may not waits from then on."""
    job, lease = job_in(ledger, site, S.READY_TO_PUBLISH, topic)
    with ledger.fenced(lease) as connection:
        turn = publish_rate.turn_of(connection, job, rate)
        if turn is not None and rate is not None:
            publish_rate.let_wait(connection, job, rate, turn)
        else:
            move_once(connection, job, lease, S.PUBLISHING)
    let_go(ledger, lease)
    return turn is None


def waiting(ledger: Ledger, site: str) -> int:
    with ledger.begin() as connection:
        return publish_rate.outgoing(connection, site).waiting


def wake(ledger: Ledger, site: str, rate: PublishRate | None, *topics: str) -> int:
    with ledger.begin() as connection:
        return publish_rate.wake(connection, Selection(site=site, topics=topics or None), rate)


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    wanted(ledger, site_name, rows_of(6))
    return site_name


def test_as_many_as_the_rate_allows_begin_and_the_next_waits(ledger: Ledger, site: str) -> None:
    assert [is_admitted(ledger, site, f"t{number}") for number in range(4)] == [
        True,
        True,
        False,
        False,
    ]
    assert waiting(ledger, site) == 2
    assert current_job(ledger, site, "t2")["state"] == S.READY_TO_PUBLISH


def test_what_is_on_its_way_counts_whatever_day_it_was_sent(ledger: Ledger, site: str) -> None:
    job_in(ledger, site, S.PUBLISHING, "t0")
    job_in(ledger, site, S.PUBLISH_UNCERTAIN, "t1")
    assert not is_admitted(ledger, site, "t2")


def test_a_write_that_did_not_take_effect_gives_its_turn_back(ledger: Ledger, site: str) -> None:
    job, lease = job_in(ledger, site, S.PUBLISHING, "t0")
    job_in(ledger, site, S.PUBLISHING, "t1")
    assert not is_admitted(ledger, site, "t2")
    moved(ledger, job, lease, S.FAILED_RETRYABLE)
    assert is_admitted(ledger, site, "t3")


def test_what_became_public_yesterday_does_not_count_today(ledger: Ledger, site: str) -> None:
    made_public(ledger, site, "t0", hours_ago=24)
    made_public(ledger, site, "t1", hours_ago=24)
    assert is_admitted(ledger, site, "t2")
    made_public(ledger, site, "t1")
    assert not is_admitted(ledger, site, "t3")


def test_a_page_that_was_public_before_never_waits(ledger: Ledger, site: str) -> None:
    made_public(ledger, site, "t0", hours_ago=1_000)
    for topic in ("t1", "t2"):
        assert is_admitted(ledger, site, topic)
    assert not is_admitted(ledger, site, "t3")
    assert is_admitted(ledger, site, "t0")


def test_a_site_without_a_rate_lets_everything_out(ledger: Ledger, site: str) -> None:
    assert all(is_admitted(ledger, site, f"t{number}", None) for number in range(6))


def test_an_hour_has_its_share_when_the_rate_is_paced(ledger: Ledger, site: str) -> None:
    admitted = [is_admitted(ledger, site, f"t{number}", PACED) for number in range(4)]
    assert admitted == [True, True, False, False]
    with ledger.begin() as connection:
        now = publish_rate.outgoing(connection, site).now
    turns = [current_job(ledger, site, topic)["next_attempt_at"] for topic in ("t2", "t3")]
    assert turns[0] == turns[1], "both fit into the next hour"
    assert 0 < (turns[0] - now).total_seconds() <= 3600


def test_who_comes_later_has_a_turn_behind_those_that_wait(ledger: Ledger, site: str) -> None:
    for number in range(6):
        is_admitted(ledger, site, f"t{number}")
    turns = [current_job(ledger, site, f"t{number}")["next_attempt_at"] for number in range(2, 6)]
    assert turns[0] == turns[1]
    assert turns[2] == turns[3] == turns[0] + timedelta(days=1), "two fit into each day"


def test_a_turn_is_found_behind_a_line_of_an_earlier_rate(ledger: Ledger, site: str) -> None:
    three = PublishRate(per_day=3, paced=False)
    for number in range(5):
        is_admitted(ledger, site, f"t{number}", three if number < 4 else TWO)
    first, last = (current_job(ledger, site, topic)["next_attempt_at"] for topic in ("t3", "t4"))
    assert first == last, "tomorrow has room for one more, at either rate"


def test_the_line_is_woken_as_far_as_there_is_room(ledger: Ledger, site: str) -> None:
    for number in range(6):
        is_admitted(ledger, site, f"t{number}")
    assert waiting(ledger, site) == 4
    assert wake(ledger, site, TWO) == 0
    assert wake(ledger, site, PublishRate(per_day=3, paced=False)) == 1
    assert waiting(ledger, site) == 3
    assert wake(ledger, site, PublishRate(per_day=9, paced=False), "t5", "t0") == 1
    assert wake(ledger, site, None) == 2, "a rate that was taken away keeps nobody"
    assert waiting(ledger, site) == 0


def test_another_sites_line_is_its_own_affair(ledger: Ledger, site: str) -> None:
    for number in range(3):
        is_admitted(ledger, site, f"t{number}")
    wanted(ledger, f"{site}_b", rows_of(1))
    assert is_admitted(ledger, f"{site}_b", "t0")
    assert wake(ledger, f"{site}_b", None) == 0


def test_many_at_once_are_admitted_one_by_one(ledger: Ledger, site: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        topics = [f"t{number}" for number in range(6)]
        admitted = list(pool.map(lambda topic: is_admitted(ledger, site, topic), topics))
    assert sum(admitted) == 2
    states = sorted(str(current_job(ledger, site, topic)["state"]) for topic in topics)
    assert states == ["publishing"] * 2 + ["ready_to_publish"] * 4
