"""What changed in a Ghost since a time of its own clock.

What belongs here: the point in time from which changes are told. Only the server's own time counts.
"""

from datetime import datetime, timedelta

from content_pipeline.adapters.cms.ghost_api import GhostAPI
from content_pipeline.adapters.cms.ghost_pages import GhostForm
from content_pipeline.core.cms import RecentChanges, RemotePage

OVERLAP = timedelta(seconds=60)
"""Ghost takes the time of a write before it waits for its database."""

_DOING = "asking for recent changes"


def changes_since(
    api: GhostAPI, form: GhostForm, point: str | None, *, now: datetime
) -> RecentChanges:
    """Pages written since ``point``, and a minute before it. Raises CallFailed.

    ``now`` stands in for the server's time where it tells none.
    """
    # The time before the listing: what is written while slices are read shows again next time.
    api.site()
    told = (api.server_clock.at_least or now).isoformat()
    if point is None:
        return RecentChanges(pages=(), point=told)
    pages: list[RemotePage] = []
    number = 1
    while True:
        listed = api.written_since(_before(point), number, doing=_DOING)
        pages += [api.json.read(form.page, found, doing=_DOING) for found in listed.pages]
        if not listed.more:
            return RecentChanges(pages=tuple(pages), point=max(told, point))
        number += 1


def _before(point: str) -> datetime:
    return datetime.fromisoformat(point) - OVERLAP
