from datetime import UTC, datetime, timedelta

from content_pipeline.adapters.cms.server_clock import TRIES, ServerClock

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def http_date(moment: datetime) -> str:
    return moment.strftime("%a, %d %b %Y %H:%M:%S GMT")


class Server:
    """A server whose clock stands still but for pauses, and a page on it."""

    def __init__(self, now: datetime, written: datetime | None, *, tells: bool = True) -> None:
        self.now = now
        self.written = written
        self.asked_at: list[datetime] = []
        self.paused_s: list[float] = []
        self._tells = tells
        self.clock = ServerClock(clock=lambda: self.now, pause=self._pause)

    def _pause(self, seconds: float) -> None:
        self.paused_s.append(seconds)
        self.now += timedelta(seconds=seconds)

    def ask(self) -> datetime | None:
        self.asked_at.append(self.now)
        self.clock.note(http_date(self.now) if self._tells else None)
        return self.written

    def settled(self) -> datetime | None:
        return self.clock.settled(self.ask, lambda found: found)


def test_a_page_written_long_ago_is_asked_for_once_when_the_time_there_is_known() -> None:
    server = Server(NOON, NOON - timedelta(hours=1))
    server.clock.note(http_date(NOON))
    assert server.settled() == server.written
    assert len(server.asked_at) == 1
    assert server.paused_s == []


def test_before_the_time_there_is_known_one_question_more_is_asked() -> None:
    server = Server(NOON, NOON - timedelta(hours=1))
    server.settled()
    assert len(server.asked_at) == 2
    assert server.paused_s == []


def test_a_page_written_in_this_second_is_asked_for_again_after_it() -> None:
    server = Server(NOON + timedelta(milliseconds=300), NOON)
    server.settled()
    assert server.asked_at[-1] >= NOON + timedelta(seconds=1)
    assert 0.7 < sum(server.paused_s) < 0.8


def test_the_answer_that_counts_was_asked_for_when_the_second_was_known_to_be_over() -> None:
    server = Server(NOON + timedelta(milliseconds=999), NOON)
    server.settled()
    told_before = server.asked_at[-2].replace(microsecond=0)
    assert told_before >= NOON + timedelta(seconds=1)


def test_a_page_that_is_written_again_meanwhile_is_waited_for_again() -> None:
    server = Server(NOON + timedelta(milliseconds=500), NOON)
    ask = server.ask

    def busy() -> datetime | None:
        found = ask()
        if len(server.asked_at) == 2:
            server.written = server.now.replace(microsecond=0)
        return found

    found = server.clock.settled(busy, lambda found: found)
    assert found == NOON + timedelta(seconds=1)
    assert server.asked_at[-1] >= NOON + timedelta(seconds=2)


def test_what_is_absent_is_not_waited_for() -> None:
    server = Server(NOON, None)
    assert server.settled() is None
    assert len(server.asked_at) == 1


def test_a_page_dated_ahead_by_hand_is_not_waited_for() -> None:
    server = Server(NOON, NOON + timedelta(days=1))
    server.settled()
    assert len(server.asked_at) == 1


def test_a_server_that_tells_no_time_is_asked_once() -> None:
    server = Server(NOON, NOON, tells=False)
    server.settled()
    assert len(server.asked_at) == 1


def test_a_server_whose_clock_stands_still_is_not_asked_for_ever() -> None:
    server = Server(NOON, NOON)
    server.clock = ServerClock(clock=lambda: NOON, pause=server.paused_s.append)
    assert server.settled() == NOON
    assert len(server.asked_at) == TRIES


def test_a_date_that_is_none_or_older_changes_nothing() -> None:
    clock = ServerClock(clock=lambda: NOON, pause=lambda _: None)
    for date in (None, "", "soon", "Mon, 99 Nov 2026"):
        clock.note(date)
    assert clock.at_least is None
    clock.note(http_date(NOON))
    clock.note(http_date(NOON - timedelta(minutes=5)))
    assert clock.at_least == NOON
