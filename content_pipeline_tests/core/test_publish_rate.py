"""How many new pages may go out, and when the turn of one that waits comes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from content_pipeline.core.publish_rate import (
    Issued,
    PublishRate,
    drafts_wanted,
    free_now,
    free_today,
    turn_at,
)

NOON = datetime(2026, 3, 1, 12, 20, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def rate(per_day: int, *, paced: bool = False) -> PublishRate:
    return PublishRate(per_day=per_day, paced=paced)


def issued(today: int, this_hour: int = 0) -> Issued:
    return Issued(today=today, this_hour=this_hour)


@pytest.mark.parametrize(
    ("allowed", "out", "now", "today"),
    [
        (rate(10), issued(0), 10, 10),
        (rate(10), issued(7, 7), 3, 3),
        (rate(10), issued(10, 0), 0, 0),
        (rate(10), issued(12, 0), 0, 0),
        # paced: 3 an hour, and 11 hours are left after this one
        (rate(72, paced=True), issued(0), 3, 36),
        (rate(72, paced=True), issued(2, 2), 1, 34),
        (rate(72, paced=True), issued(3, 3), 0, 33),
        (rate(72, paced=True), issued(71, 1), 1, 1),
        # fewer than one an hour: one, until the day's are out
        (rate(5, paced=True), issued(0), 1, 5),
        (rate(5, paced=True), issued(4, 1), 0, 1),
        (rate(5, paced=True), issued(5, 0), 0, 0),
    ],
)
def test_how_many_may_go_out(allowed: PublishRate, out: Issued, now: int, today: int) -> None:
    assert free_now(allowed, out) == now
    assert free_today(allowed, out, NOON) == today


@pytest.mark.parametrize(
    ("allowed", "out", "ahead_days", "wanted"),
    [
        (rate(10), issued(0), 0, 10),
        (rate(10), issued(7, 7), 0, 3),
        (rate(10), issued(12), 0, 0),
        (rate(10), issued(7, 7), 2, 23),
        (rate(72, paced=True), issued(3, 3), 0, 33),
        (rate(72, paced=True), issued(3, 3), 1, 105),
    ],
)
def test_as_many_drafts_are_wanted_as_the_rate_soon_takes(
    allowed: PublishRate, out: Issued, ahead_days: int, wanted: int
) -> None:
    ahead = replace(allowed, drafts_ahead_days=ahead_days)
    assert drafts_wanted(ahead, out, NOON) == wanted


@pytest.mark.parametrize(
    ("allowed", "out", "ahead", "turn"),
    [
        (rate(10), issued(0), 9, "2026-03-01 12:20:30"),
        (rate(10), issued(0), 10, "2026-03-02 00:00:00"),
        (rate(10), issued(10), 0, "2026-03-02 00:00:00"),
        (rate(10), issued(10), 9, "2026-03-02 00:00:00"),
        (rate(10), issued(10), 10, "2026-03-03 00:00:00"),
        (rate(10), issued(8), 12, "2026-03-03 00:00:00"),
        (rate(10), issued(10), 10_000, "2028-11-26 00:00:00"),
        (rate(72, paced=True), issued(3, 3), 0, "2026-03-01 13:00:00"),
        (rate(72, paced=True), issued(3, 3), 3, "2026-03-01 14:00:00"),
        (rate(72, paced=True), issued(3, 3), 33, "2026-03-02 00:00:00"),
        (rate(72, paced=True), issued(71, 3), 1, "2026-03-02 00:00:00"),
        (rate(5, paced=True), issued(4, 1), 1, "2026-03-02 00:00:00"),
        (rate(5, paced=True), issued(4, 1), 2, "2026-03-02 01:00:00"),
        (rate(5, paced=True), issued(5, 1), 5, "2026-03-03 00:00:00"),
    ],
)
def test_when_a_pages_turn_comes(allowed: PublishRate, out: Issued, ahead: int, turn: str) -> None:
    assert turn_at(allowed, out, NOON, ahead) == datetime.fromisoformat(f"{turn}+00:00")


@pytest.mark.parametrize("allowed", [rate(7), rate(7, paced=True), rate(100, paced=True)])
@pytest.mark.parametrize("out", [issued(0), issued(3, 1), issued(7, 7)])
def test_no_day_and_no_hour_gets_more_than_its_number(allowed: PublishRate, out: Issued) -> None:
    turns = [turn_at(allowed, out, NOON, ahead) for ahead in range(300)]
    assert turns == sorted(turns)
    for day in {turn.date() for turn in turns}:
        before = out.today if day == NOON.date() else 0
        assert before + sum(turn.date() == day for turn in turns) <= allowed.per_day
    hours = {turn.replace(minute=0, second=0) for turn in turns}
    for hour in hours if allowed.paced else ():
        begun = sum(turn.replace(minute=0, second=0) == hour for turn in turns)
        is_this_one = hour == NOON.replace(minute=0, second=0)
        assert begun + (out.this_hour if is_this_one else 0) <= allowed.per_hour


@pytest.mark.parametrize("allowed", [rate(7), rate(7, paced=True), rate(100, paced=True)])
def test_the_line_goes_out_as_soon_as_it_may(allowed: PublishRate) -> None:
    last = turn_at(allowed, issued(allowed.per_day), NOON, 5 * allowed.per_day - 1)
    midnight = NOON.replace(hour=0, minute=0, second=0)
    assert midnight + 5 * DAY <= last < midnight + 6 * DAY


def test_the_rate_in_words() -> None:
    assert str(rate(1_000)) == "1,000 new pages a day"
    assert str(rate(50, paced=True)) == "50 new pages a day, 3 an hour"
