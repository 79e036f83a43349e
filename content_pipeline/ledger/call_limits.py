"""Call limits: how many calls may be out at once on an account, over all processes and machines.

What belongs here: counting the calls that are out, and keeping what ``core.throttling`` learned.
The row of an account is locked while somebody claims calls on it, so that two never take the same
free call. It is a row apart from ``routes``: a worker that is stopped in the middle of a claim must
not keep an announced wait from being committed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.core.states import WORKABLE
from content_pipeline.core.throttling import CallLimit, Outcome
from content_pipeline.ledger.schema import SCHEMA, call_limits
from content_pipeline.ledger.schema.vocabulary import one_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The calls of one account as its only claimer sees them, until its transaction ends."""

    out: int
    """Calls that are out."""
    free: int
    """How many more may go out."""


_OF_ROUTE = call_limits.c.route == bindparam("of_route")
_AGE_S = func.extract("epoch", func.clock_timestamp() - call_limits.c.updated_at).label("age_s")
_READ = select(call_limits, _AGE_S).where(_OF_ROUTE)
_HOLD = _READ.with_for_update()
_SET = update(call_limits).where(_OF_ROUTE).values(updated_at=func.clock_timestamp())


def capacity(
    connection: Connection, route: str, *, most_calls: int, outcomes: Sequence[Outcome] = ()
) -> Capacity:
    """How many calls are free on ``route``; one claimer counts at a time.

    ``most_calls`` binds this claimer alone: sites that share an account may allow different
    numbers. ``outcomes``: what became of calls since the last claim.
    """
    limit = learn(connection, route, outcomes)
    out = in_flight(connection, route)
    return Capacity(out=out, free=max(0, min(limit.limit, most_calls) - out))


def learn(connection: Connection, route: str, outcomes: Sequence[Outcome]) -> CallLimit:
    """What is known of ``route`` with ``outcomes``; its row is held until the transaction ends."""
    row = _held(connection, route)
    if row is None:
        connection.execute(upsert(call_limits).values(route=route).on_conflict_do_nothing())
        row = _held(connection, route)
        assert row is not None
    limit = _limit(row).after(outcomes, passed_s=max(0.0, float(row.age_s)))
    if outcomes:
        learned = {"limit": limit.limit, "calls": limit.calls, "rejections": limit.rejections}
        connection.execute(_SET, {"of_route": route} | learned)
    return limit


# From the few leases to their page jobs: the other way round each claim read all page jobs of the
# ledger, 0.7 s with 1,000,000 of them. All workable states are named for their index's sake.
_IN_FLIGHT = text(
    f"""
    SELECT count(*) FROM {SCHEMA}.leases l
    JOIN {SCHEMA}.page_jobs j ON j.page_id = substr(l.resource, 6) AND l.resource LIKE 'page:%'
    JOIN {SCHEMA}.sites s ON s.site = j.site
    WHERE l.expires_at > clock_timestamp() AND s.model_route = :route
      AND {one_of("j.state", WORKABLE)}
      AND (j.state IN ('queued', 'reserved', 'generating')
           OR (j.state = 'failed_retryable' AND j.revision IS NULL))
      AND j.next_attempt_at <= clock_timestamp()
    """  # noqa: S608 - only our own constants are put in
)


def in_flight(connection: Connection, route: str) -> int:
    """Pages whose worker makes a call on ``route`` now, or is about to."""
    count: int = connection.execute(_IN_FLIGHT, {"route": route}).scalar_one()
    return count


def read(connection: Connection, route: str) -> CallLimit | None:
    """What is known of ``route``; None before its first call."""
    row = connection.execute(_READ, {"of_route": route}).one_or_none()
    return None if row is None else _limit(row)


def _held(connection: Connection, route: str) -> Row[Any] | None:
    return connection.execute(_HOLD, {"of_route": route}).one_or_none()


def _limit(row: Row[Any]) -> CallLimit:
    return CallLimit(limit=row.limit, calls=tuple(row.calls), rejections=tuple(row.rejections))
