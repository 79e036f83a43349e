"""What changed on a WordPress site since a time of its own clock.

What belongs here: the point in time from which changes are told, and the listing since then. Only
WordPress's own times count: ours, a proxy's, and a page dated by hand may all be off.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from content_pipeline.adapters.cms.wordpress_pages import (
    GLANCE_FIELDS,
    Json,
    PageForm,
    modified_at,
)
from content_pipeline.adapters.cms.wordpress_rest import WordPressREST
from content_pipeline.core.cms import RecentChanges, RemotePage
from content_pipeline.core.identity import digest

OVERLAP = timedelta(seconds=60)
"""WordPress takes the time of a write before it waits for the database, for up to 50 s there."""

FUTURE = timedelta(minutes=5)
"""A page written later than this from now was dated by hand: it is no point to go on from."""

_DOING = "asking for recent changes"


def changes_since(
    rest: WordPressREST, form: PageForm, point: str | None, *, now: datetime
) -> RecentChanges:
    """Pages written since ``point``, and a minute before it. Raises CallFailed.

    A point is a time and what the hundred pages written last within that minute looked like: as
    long as they look the same, one request tells that there is nothing new. ``now`` stands in for
    the server's time where it tells none.
    """
    if point is None:
        newest, date = rest.newest(fields="modified_gmt", doing=_DOING)
        latest = _latest(_times(rest, newest), _server_time(date) or now)
        return RecentChanges(pages=(), point=latest.isoformat())
    time, _, looked_like = point.partition(" ")
    before = datetime.fromisoformat(time)
    since = _since(before)
    newest, date = rest.newest(fields=GLANCE_FIELDS, doing=_DOING, params=since)
    times = _times(rest, newest)
    if looked_like == _looks(newest, times, before):
        return RecentChanges(pages=(), point=point)
    latest = max(_latest(times, _server_time(date) or now, default=before), before)
    pages = _written_since(rest, form, since)
    return RecentChanges(
        pages=tuple(pages), point=f"{latest.isoformat()} {_looks(newest, times, latest)}"
    )


def _since(moment: datetime) -> dict[str, str]:
    return {"modified_after": (moment - OVERLAP).strftime("%Y-%m-%dT%H:%M:%SZ")}


def _times(rest: WordPressREST, pages: Sequence[Json]) -> list[datetime]:
    return [rest.read(modified_at, found, doing=_DOING) for found in pages]


def _looks(pages: Sequence[Json], times: Sequence[datetime], moment: datetime) -> str:
    """What those of ``pages`` look like that will be listed again when asked from ``moment``."""
    again = [page for page, time in zip(pages, times, strict=True) if time > moment - OVERLAP]
    return digest(*sorted(again, key=lambda page: str(page.get("id"))))


def _written_since(rest: WordPressREST, form: PageForm, since: dict[str, str]) -> list[RemotePage]:
    pages: list[RemotePage] = []
    number, more = 1, True
    while more:
        listed = rest.slice(number, fields=form.page_fields, doing=_DOING, params=since)
        pages += [rest.read(form.page, found, doing=_DOING) for found in listed.pages]
        number, more = number + 1, listed.more
    return pages


def _latest(
    times: Sequence[datetime], now: datetime, *, default: datetime | None = None
) -> datetime:
    """The newest time that was not dated ahead by hand; without one, ``default``, or else now."""
    past = [moment for moment in times if moment <= now + FUTURE]
    return max(past, default=default or now)


def _server_time(date: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(date or "").astimezone(UTC)
    except (ValueError, TypeError):
        return None
