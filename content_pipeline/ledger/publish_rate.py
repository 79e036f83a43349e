"""Publish rate: admitting never-published pages to a site, and the line of those that wait.

What belongs here: counting what became public, on the database's clock, and letting one publish
begin at a time where a rate is set, so that it holds over all processes and machines. Nothing is
handed out that a crash could lose: what is public, and what is on its way out, is the count.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, text, update

from content_pipeline.core.publish_rate import Issued, PublishRate, free_now, turn_at
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.lines import waking
from content_pipeline.ledger.schema import SCHEMA, page_jobs, pages, sites


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """The new pages of a site, as they stand now."""

    issued: Issued
    now: datetime
    waiting: int
    """Drafts that are ready and wait for their turn."""


_ON_THEIR_WAY = f"('{PageJobState.PUBLISHING}', '{PageJobState.PUBLISH_UNCERTAIN}')"
# Nothing failed where a page waits for its turn, so its job has a message and no class.
_WAITS = (
    f"j.state = '{PageJobState.READY_TO_PUBLISH}' AND j.failure_class IS NULL "
    "AND j.failure_message IS NOT NULL"
)

# One on its way out may be public already, whenever it was sent: it counts until somebody knows.
_ISSUED = f"""
    WITH clock AS (SELECT clock_timestamp() AS now), outgoing AS (
        SELECT p.first_public_at AS at FROM {SCHEMA}.pages p, clock
        WHERE p.site = :site AND p.first_public_at >= date_trunc('day', clock.now, 'UTC')
        UNION ALL
        SELECT clock.now FROM {SCHEMA}.page_jobs j
        JOIN {SCHEMA}.pages p ON p.page_id = j.page_id, clock
        WHERE j.site = :site AND j.state IN {_ON_THEIR_WAY} AND p.first_public_at IS NULL
    )
    SELECT clock.now,
           (SELECT count(*) FROM outgoing) AS today,
           (SELECT count(*) FROM outgoing
            WHERE at >= date_trunc('hour', clock.now, 'UTC')) AS this_hour"""  # noqa: S608 - our own
_FREE = text(f"{_ISSUED} FROM clock")
_OUTGOING = text(
    f"""{_ISSUED},
           (SELECT count(*) FROM {SCHEMA}.page_jobs j
            WHERE j.site = :site AND {_WAITS} AND j.next_attempt_at > clock.now) AS waiting
    FROM clock
    """  # noqa: S608 - only our own constants are put in
)

# The end of the line, and how many have their turn in its hour and its day: as many as the rate
# allows, however long the line is.
_LAST_IN_LINE = text(
    f"""
    WITH line AS NOT MATERIALIZED (
        SELECT j.next_attempt_at AS at FROM {SCHEMA}.page_jobs j
        WHERE j.site = :site AND {_WAITS} AND j.next_attempt_at > :now
    ), last AS (
        SELECT j.next_attempt_at AS at FROM {SCHEMA}.page_jobs j
        WHERE j.site = :site AND {_WAITS} AND j.next_attempt_at > :now
          AND (j.revision IS NULL) = (SELECT false)  -- as a constant it would match no index
        ORDER BY j.next_attempt_at DESC LIMIT 1
    )
    SELECT last.at,
           (SELECT count(*) FROM line
            WHERE line.at >= date_trunc('day', last.at, 'UTC')) AS that_day,
           (SELECT count(*) FROM line
            WHERE line.at >= date_trunc('hour', last.at, 'UTC')) AS that_hour
    FROM last
    """  # noqa: S608 - only our own constants are put in
)


def outgoing(connection: Connection, site: str) -> Outgoing:
    """How many new pages of ``site`` are out, and how many wait."""
    row = connection.execute(_OUTGOING, {"site": site}).one()
    return Outgoing(
        issued=Issued(today=row.today, this_hour=row.this_hour), now=row.now, waiting=row.waiting
    )


def turn_of(connection: Connection, job: PageJob, rate: PublishRate | None) -> datetime | None:
    """None when ``job`` may be published now; else when its turn comes.

    In the transaction that commits the intent: until it ends, nobody else of the site is admitted.
    """
    if rate is None or _was_public(connection, job.page_id):
        return None
    key = func.hashtextextended(f"publish:{job.site}", 0)
    connection.execute(select(func.pg_advisory_xact_lock(key)))
    row = connection.execute(_FREE, {"site": job.site}).one()
    issued = Issued(today=row.today, this_hour=row.this_hour)
    if free_now(rate, issued):
        return None
    last = last_in_line(connection, job.site, row.now)
    if last is None:
        return turn_at(rate, issued, row.now, 0)
    at, promised = last
    if at.date() == row.now.date():
        this_hour = issued.this_hour if at.hour == row.now.hour else 0
        promised = Issued(
            today=promised.today + issued.today, this_hour=promised.this_hour + this_hour
        )
    return turn_at(rate, promised, at, 0)


def last_in_line(
    connection: Connection, site: str, now: datetime
) -> tuple[datetime, Issued] | None:
    """The turn of the last that waits, and how many have theirs in its day and its hour."""
    row = connection.execute(_LAST_IN_LINE, {"site": site, "now": now}).one_or_none()
    return None if row is None else (row.at, Issued(today=row.that_day, this_hour=row.that_hour))


def _was_public(connection: Connection, page_id: str) -> bool:
    at = connection.execute(
        select(pages.c.first_public_at).where(pages.c.page_id == page_id)
    ).scalar_one()
    return at is not None


def let_wait(connection: Connection, job: PageJob, rate: PublishRate, turn: datetime) -> None:
    """Have ``job`` wait for its ``turn``; it then has all the time that its site gives a page."""
    deadline_s = select(sites.c.page_deadline_s).where(sites.c.site == job.site).scalar_subquery()
    later = turn + func.make_interval(0, 0, 0, 0, 0, 0, deadline_s)
    connection.execute(
        update(page_jobs)
        .where(page_jobs.c.page_job_id == job.page_job_id, page_jobs.c.sequence == job.sequence)
        .values(
            next_attempt_at=turn,
            deadline_at=func.greatest(page_jobs.c.deadline_at, later),
            failure_message=f"waits for its turn: the site publishes at most {rate}",
        )
    )


_WAKE = waking(_WAITS)


def wake(
    connection: Connection,
    selection: Selection,
    rate: PublishRate | None,
    *,
    most: int | None = None,
) -> int:
    """Make due what waits and may be published now, e.g. because the rate was raised; how many.

    Only ``turn_of`` decides: should a page find no room after all, it waits again. ``most``: wake
    no more than so many, the first in line; None: as many as the rate allows.
    """
    if rate is not None:
        row = connection.execute(_FREE, {"site": selection.site}).one()
        free = free_now(rate, Issued(today=row.today, this_hour=row.this_hour))
        most = free if most is None else min(most, free)
        if not most:
            return 0
    topics = None if selection.topics is None else list(selection.topics)
    return connection.execute(
        _WAKE, {"site": selection.site, "topics": topics, "most": most}
    ).rowcount
