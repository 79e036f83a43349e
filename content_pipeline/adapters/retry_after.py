"""How long the other side asks to wait, out of a header such as ``Retry-After``.

What belongs here: reading the two forms of the value. Which headers a service uses is its adapter's
to know.
"""

import math
from datetime import datetime
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_S = 86_400.0
"""No wait beyond a day is believed: the longest real limit is per day, 10**30 has been seen."""


def announced_wait_s(value: str | None, now: datetime, *, unit_s: float = 1.0) -> float | None:
    """Seconds to wait, at most a day; None when ``value`` says nothing usable.

    ``value`` is a number of ``unit_s`` or a date. Zero, negative, past, infinite and unreadable
    ones are nothing usable: the caller's own backoff is longer than any of them.
    """
    seconds = _number(value, unit_s=unit_s)
    if seconds is None:
        seconds = _until(value, now)
    if seconds is None or seconds <= 0:
        return None
    return min(seconds, MAX_RETRY_AFTER_S)


def _number(value: str | None, *, unit_s: float) -> float | None:
    try:
        seconds = float(value or "") * unit_s
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None


def _until(value: str | None, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(value or "")
        return (moment - now).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None  # TypeError: a date without zone cannot be compared
