"""Buckets: the topics that a partition of a large site stands for, a slice at a time.

What belongs here: finding them by the hash that the ledger keeps with each topic. Nothing here
reads a whole site, and no slice holds more than it is asked for.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from content_pipeline.core.buckets import Slots
from content_pipeline.core.states import WORKABLE, Stage, states_of
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import SCHEMA

SLICE = 1_000
"""Topics that are read, or worked on, at once: their reports with all attempts are some 5 MB."""

_WORKABLE = ", ".join(f"'{state}'" for state in sorted(WORKABLE))

_AFTER = """
    t.site = :site AND t.slot BETWEEN :first AND :last
    AND (t.slot, t.topic_key) > (:slot, :topic_key)"""

# As on a site of pages: of topics that left the table only those whose page is still live.
_PAGES = text(
    f"""
    SELECT t.slot, t.topic_key FROM {SCHEMA}.topics t
    LEFT JOIN {SCHEMA}.pages p ON p.page_id = t.page_id
    WHERE {_AFTER} AND (t.status <> 'retired' OR p.published_revision IS NOT NULL)
    ORDER BY t.slot, t.topic_key LIMIT :most
    """  # noqa: S608 - only our own constants are put in
)

_UNFINISHED = text(
    f"""
    SELECT t.slot, t.topic_key FROM {SCHEMA}.topics t
    WHERE {_AFTER}
      AND EXISTS (SELECT FROM {SCHEMA}.page_jobs j
                  WHERE j.site = t.site AND j.topic_key = t.topic_key
                    AND j.state IN ({_WORKABLE}) AND j.state = ANY(:states))
    ORDER BY t.slot, t.topic_key LIMIT :most
    """  # noqa: S608 - only our own constants are put in
).bindparams(bindparam("states", type_=ARRAY(Text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a slice ended."""

    slot: int
    topic_key: str


def pages(ledger: Ledger, site: str, slots: Slots, most: int = SLICE) -> Iterator[list[str]]:
    """The topic keys of a bucket's pages, at most ``most`` at once."""
    place: _Place | None = _begin(slots)
    while place is not None:
        values = _values(site, slots, place, most)
        with ledger.begin() as connection:
            rows = connection.execute(_PAGES, values).all()
        place = _end(rows, most)
        if rows:
            yield [row.topic_key for row in rows]


def unfinished(
    ledger: Ledger, site: str, each: Collection[Slots], stages: frozenset[Stage], most: int = SLICE
) -> Iterator[list[str]]:
    """The topic keys of buckets that work on ``stages`` can lead on, at most ``most`` at once.

    Pages that wait are among them. Small buckets share a slice, so that their pages are worked on
    together.
    """
    states = sorted(states_of(stages))
    found: list[str] = []
    for slots in each:
        place: _Place | None = _begin(slots)
        while place is not None:
            room = most - len(found)
            values = _values(site, slots, place, room) | {"states": states}
            with ledger.begin() as connection:
                rows = connection.execute(_UNFINISHED, values).all()
            place = _end(rows, room)
            found += [row.topic_key for row in rows]
            if len(found) == most:
                yield found
                found = []
    if found:
        yield found


def _begin(slots: Slots) -> _Place:
    return _Place(slot=slots.first, topic_key="")


def _end(rows: Sequence[Row[Any]], most: int) -> _Place | None:
    """Where to go on; None when a slice was not full, so that nothing comes after it."""
    if len(rows) < most:
        return None
    return _Place(slot=rows[-1].slot, topic_key=rows[-1].topic_key)


def _values(site: str, slots: Slots, place: _Place, most: int) -> dict[str, object]:
    return {
        "site": site,
        "first": slots.first,
        "last": slots.last,
        "slot": place.slot,
        "topic_key": place.topic_key,
        "most": most,
    }
