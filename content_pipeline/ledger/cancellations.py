"""Cancellations: a person's wish that a page job ends without being published.

What belongs here: putting the wish on record and asking for it. The rule between wish and success
is one row: the wish is refused once a publish has begun, and no publish begins (``jobs.move``) once
a wish is on record. So exactly one of the two wins, whoever is quicker.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, case, func, select, update

from content_pipeline.core.states import CANCELLABLE, MOVES, PageJobState
from content_pipeline.ledger.schema import page_jobs

_ENDS_AT_ONCE = frozenset(
    state for state in CANCELLABLE if (state, PageJobState.CANCELLED) in MOVES
)
"""No call is out in these: a job that waits in one is due once somebody wants it cancelled."""


def request(connection: Connection, page_job_id: str, *, by: str, reason: str) -> bool:
    """Put the wish on record; False when it comes too late or stands there already."""
    waiting = page_jobs.c.state.in_(_ENDS_AT_ONCE)
    recorded = connection.execute(
        update(page_jobs)
        .where(page_jobs.c.page_job_id == page_job_id, page_jobs.c.state.in_(CANCELLABLE))
        .where(page_jobs.c.cancel_requested_at.is_(None))
        .values(
            cancel_requested_at=func.clock_timestamp(),
            cancel_requested_by=by,
            cancel_reason=reason,
            next_attempt_at=case(
                (waiting, func.clock_timestamp()), else_=page_jobs.c.next_attempt_at
            ),
        )
    )
    return recorded.rowcount == 1


def is_requested(connection: Connection, page_job_id: str) -> bool:
    """Whether the wish is on record; no other comes before this transaction ends."""
    return (
        connection.execute(
            select(page_jobs.c.cancel_requested_at)
            .where(page_jobs.c.page_job_id == page_job_id)
            .with_for_update()
        ).scalar_one()
        is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelWish:
    """Who wants a page job cancelled, since when, and why."""

    at: datetime
    by: str
    reason: str


def on_record(connection: Connection, page_job_id: str) -> CancelWish | None:
    """The wish to cancel a page job, if there is one."""
    row = connection.execute(
        select(
            page_jobs.c.cancel_requested_at,
            page_jobs.c.cancel_requested_by,
            page_jobs.c.cancel_reason,
        ).where(page_jobs.c.page_job_id == page_job_id)
    ).one()
    if row.cancel_requested_at is None:
        return None
    return CancelWish(
        at=row.cancel_requested_at,
        by=row.cancel_requested_by or "nobody named",
        reason=row.cancel_reason or "none given",
    )
