"""What changed on a WordPress site since a time of its own clock.

What belongs here: the point in time from which changes are told, and the listing since then. Only
WordPress's own times count: ours, a proxy's, and a page dated by hand may all be off.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from content_pipeline.adapters.cms.wordpress_pages import PageForm, modified_at
from content_pipeline.adapters.cms.wordpress_rest import WordPressREST
from content_pipeline.core.cms import RecentChanges, RemotePage

OVERLAP = timedelta(seconds=60)
"""WordPress takes the time of a write before it waits for the database, for up to 50 s there."""

FUTURE = timedelta(minutes=5)
"""A page written later than this from now was dated by hand: it is no point to go on from."""

_DOING = "asking for recent changes"


def changes_since(
    rest: WordPressREST, form: PageForm, point: str | None, *, now: datetime
) -> RecentChanges:
    """Pages written since ``point``, and a minute before it. Raises CallFailed.

    ``now`` stands in for the server's time where it tells none.
    """
    newest, date = rest.newest(doing=_DOING)
    times = [rest.json.read(modified_at, found, doing=_DOING) for found in newest]
    latest = _latest(times, _server_time(date) or now)
    if point is None:
        return RecentChanges(pages=(), point=latest.isoformat())
    before = datetime.fromisoformat(point)
    pages = _written_since(rest, form, before - OVERLAP)
    return RecentChanges(pages=tuple(pages), point=max(latest, before).isoformat())


def _written_since(rest: WordPressREST, form: PageForm, moment: datetime) -> list[RemotePage]:
    since = {"modified_after": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}
    pages: list[RemotePage] = []
    number, more = 1, True
    while more:
        listed = rest.slice(number, fields=form.page_fields, doing=_DOING, params=since)
        pages += [rest.json.read(form.page, found, doing=_DOING) for found in listed.pages]
        number, more = number + 1, listed.more
    return pages


def _latest(times: Sequence[datetime], now: datetime) -> datetime:
    """The newest time that was not dated ahead by hand; without one, now."""
    past = [moment for moment in times if moment <= now + FUTURE]
    return max(past, default=now)


def _server_time(date: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(date or "").astimezone(UTC)
    except (ValueError, TypeError):
        return None
