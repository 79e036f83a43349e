"""The publish rate of a site: how many never-published pages may become public, and when.

What belongs here: pure arithmetic on counts and hours, all UTC. A page that was public before is
not counted and never waits. Counting what is out, for all machines at once, is the ledger's.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

HOURS = 24
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishRate:
    """At most so many new pages."""

    per_day: int
    paced: bool
    """Spread over the hours of the day."""
    drafts_ahead_days: int = 0
    """For so many days after today drafts of new pages are paid for already."""

    @property
    def per_hour(self) -> int:
        """New pages in one hour of the clock."""
        return -(-self.per_day // HOURS) if self.paced else self.per_day

    def __str__(self) -> str:
        """In words, for people."""
        paced = f", {self.per_hour:,} an hour" if self.paced else ""
        noun = "page" if self.per_day == 1 else "pages"
        return f"{self.per_day:,} new {noun} a day{paced}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """New pages of a site that are public, or may be any moment."""

    today: int
    this_hour: int


def free_now(rate: PublishRate, issued: Issued) -> int:
    """How many more new pages may become public in this hour."""
    return max(0, min(rate.per_day - issued.today, rate.per_hour - issued.this_hour))


def free_today(rate: PublishRate, issued: Issued, now: datetime) -> int:
    """How many more new pages may become public before the UTC day ends."""
    left = max(0, rate.per_day - issued.today)
    if not rate.paced:
        return left
    later = (HOURS - 1 - now.hour) * rate.per_hour
    return min(left, free_now(rate, issued) + later)


def drafts_wanted(rate: PublishRate, issued: Issued, now: datetime) -> int:
    """How many drafts of new pages may have been begun and not be out: what the rate soon takes."""
    return free_today(rate, issued, now) + rate.drafts_ahead_days * rate.per_day


def turn_at(rate: PublishRate, issued: Issued, now: datetime, ahead: int) -> datetime:
    """Begin of the hour in which a new page may become public that has ``ahead`` before it.

    ``now`` itself when that is at once.
    """
    room = free_now(rate, issued)
    if ahead < room:
        return now
    ahead -= room
    hour = now.replace(minute=0, second=0, microsecond=0)
    left_today = max(0, rate.per_day - issued.today) - room
    while True:
        hour += _HOUR
        if hour.hour == 0:
            left_today = rate.per_day
            days, ahead = divmod(ahead, rate.per_day)
            hour += days * HOURS * _HOUR
        room = min(rate.per_hour, left_today)
        if ahead < room:
            return hour
        ahead -= room
        left_today -= room
