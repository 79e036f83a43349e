"""Noted topics: a site's topics in the order they were taken in, for who reads on from one.

What belongs here: reading. ``intake`` draws the numbers.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from content_pipeline.ledger.schema import TopicStatus, topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Some topics of a site, in the order in which they were taken in."""

    topic_keys: tuple[str, ...]
    last: int
    """The number of the last one of them; the number that was asked for without any."""


def noted_after(connection: Connection, site: str, number: int, most: int) -> Noted:
    """The next ``most`` topics that were taken in, or wanted otherwise, after ``number``.

    Nothing is skipped by who reads on from ``last``: an intake draws its numbers under the site's
    lock and holds it until it has committed, so no smaller number appears later. Topics that have
    left the table are passed over; one that comes back has a new number.
    """
    rows = connection.execute(
        select(topics.c.topic_key, topics.c.status, topics.c.noted)
        .where(topics.c.site == site, topics.c.noted > number)
        .order_by(topics.c.noted)
        .limit(most)
    ).all()
    return Noted(
        topic_keys=tuple(row.topic_key for row in rows if row.status != TopicStatus.RETIRED),
        last=rows[-1].noted if rows else number,
    )


def last_noted(connection: Connection, site: str) -> int:
    """The number of the topic that was taken in last; 0 without any."""
    last: int | None = connection.execute(
        select(func.max(topics.c.noted)).where(topics.c.site == site)
    ).scalar_one()
    return last or 0
