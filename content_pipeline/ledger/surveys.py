"""Surveys: how far the search for changes on a site has come.

What belongs here: one row per site that every machine shares, so that a sweep begun by one goes on
wherever the next look happens.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.ledger.schema import surveys


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Where to go on."""

    point: str | None
    """For the changes since; None when nobody has looked yet."""
    next_slice: str | None
    sweep_began_at: datetime | None
    """When the sweep that is under way began; None between two sweeps."""
    swept_at: datetime | None
    """When the last sweep that was completed began."""


def load(connection: Connection, site: str) -> Survey:
    """The site's survey, held for this transaction: one process looks at a time."""
    connection.execute(upsert(surveys).values(site=site).on_conflict_do_nothing())
    row = connection.execute(select(surveys).where(surveys.c.site == site).with_for_update()).one()
    return Survey(
        point=row.point,
        next_slice=row.next_slice,
        sweep_began_at=row.sweep_began_at,
        swept_at=row.swept_at,
    )


def begin_sweep(connection: Connection, site: str) -> None:
    """A sweep over everything begins now, unless one is under way."""
    connection.execute(
        update(surveys)
        .where(surveys.c.site == site, surveys.c.sweep_began_at.is_(None))
        .values(sweep_began_at=func.clock_timestamp(), next_slice=None)
    )


def advance(connection: Connection, site: str, *, next_slice: str) -> None:
    """One slice of the sweep is done."""
    connection.execute(update(surveys).where(surveys.c.site == site).values(next_slice=next_slice))


def end_sweep(connection: Connection, site: str) -> None:
    """Everything was looked at."""
    connection.execute(
        update(surveys)
        .where(surveys.c.site == site)
        .values(swept_at=surveys.c.sweep_began_at, sweep_began_at=None, next_slice=None)
    )


def note_point(connection: Connection, site: str, point: str) -> None:
    """Changes up to ``point`` were looked at."""
    connection.execute(update(surveys).where(surveys.c.site == site).values(point=point))
