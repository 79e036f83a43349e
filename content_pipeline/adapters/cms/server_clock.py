"""The other side's clock, as far as its answers tell it, and reads that no later write can equal.

A version of whole seconds is no version while its second lasts: a page that is written twice
within one second keeps the same (measured with Ghost: a stale write in the same second is
accepted). A read that was asked for after that second can be told from all that is written later.

What belongs here: knowing what time it is there at least, and asking again until a read is old
enough.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TypeVar

SECOND = timedelta(seconds=1)

TRIES = 12
"""A second passes within three; the rest is for a server whose clock is set back meanwhile."""

AHEAD = timedelta(seconds=5)
"""A write dated later than this was dated by hand, and one made now gets another second."""

MARGIN_S = 0.02
"""Slept beyond our own second's end: clocks kept by NTP differ by milliseconds."""

Found = TypeVar("Found")


class ServerClock:
    """What is known of the time of one server; safe for many threads."""

    def __init__(self, *, clock: Callable[[], datetime], pause: Callable[[float], None]) -> None:
        """``clock`` gives our own time; ``pause`` waits for so many seconds."""
        self._clock = clock
        self._pause = pause
        self._lock = threading.Lock()
        self._at_least: datetime | None = None

    @property
    def at_least(self) -> datetime | None:
        """The time there was this or later; None before it said so."""
        return self._at_least

    def note(self, date: str | None) -> None:
        """Take in the ``Date`` of an answer; what cannot be read tells nothing."""
        try:
            told = parsedate_to_datetime(date or "").astimezone(UTC)
        except (ValueError, TypeError):
            return
        with self._lock:
            if self._at_least is None or told > self._at_least:
                self._at_least = told

    def settled(
        self, ask: Callable[[], Found], written_at: Callable[[Found], datetime | None]
    ) -> Found:
        """What ``ask`` finds once the second of the last write, ``written_at``, had passed.

        A server that tells no time is asked once. Raises what ``ask`` raises.
        """
        for _ in range(TRIES):
            before = self._at_least
            found = ask()
            written, now = written_at(found), self._at_least
            if written is None or now is None or written > now + AHEAD:
                return found
            if before is not None and before >= written + SECOND:
                return found
            if now < written + SECOND:
                self._pause(1 - self._clock().microsecond / 1e6 + MARGIN_S)
        return found
