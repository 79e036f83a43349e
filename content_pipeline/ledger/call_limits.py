"""Call limits: how many calls may be out at once on an account, over all processes and machines.

What belongs here: counting the calls that are out, and keeping what ``core.throttling`` learned.
The row of an account is locked while somebody claims calls on it, so that two never take the same
free call. It is a row apart from ``routes``: a worker that is stopped in the middle of a claim must
not keep an announced wait from being committed.
"""

from dataclasses import dataclass, fields

from sqlalchemy import Connection, bindparam, func, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.core.throttling import CallLimit
from content_pipeline.ledger.schema import SCHEMA, call_limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The calls of one account as its only claimer sees them, until its transaction ends."""

    route: str
    limit: CallLimit
    free: int
    """How many more calls may go out."""


_COLUMNS = [call_limits.c[each.name] for each in fields(CallLimit)]
_OF_ROUTE = call_limits.c.route == bindparam("of_route")
_READ = select(*_COLUMNS).where(_OF_ROUTE)
_HOLD = _READ.with_for_update()
_SET = update(call_limits).where(_OF_ROUTE).values(updated_at=func.clock_timestamp())


def capacity(connection: Connection, route: str, *, most_calls: int) -> Capacity:
    """How many calls are free on ``route``; one claimer counts at a time."""
    limit = _hold(connection, route)
    if limit is None:
        new = upsert(call_limits).values(route=route, limit=most_calls, most=most_calls)
        connection.execute(new.on_conflict_do_nothing())
        limit = _hold(connection, route)
        assert limit is not None
    limit = limit.up_to(most_calls)
    free = max(0, limit.limit - in_flight(connection, route))
    return Capacity(route=route, limit=limit, free=free)


def begin(connection: Connection, found: Capacity, calls: int) -> None:
    """Write down that ``calls`` of the free calls were claimed."""
    if calls:
        limit = found.limit.after_calls(calls, unused=found.free - calls)
        _set(connection, found.route, limit)


def rejected(connection: Connection, route: str) -> None:
    """A call was told to slow down; its page has been set back already.

    Last in its transaction: the row is everybody's.
    """
    limit = _hold(connection, route)
    if limit is not None:
        # The rejected call was out as well, and its page is counted no more.
        _set(connection, route, limit.after_rejection(in_flight(connection, route) + 1))


_IN_FLIGHT = text(
    f"""
    SELECT count(*) FROM {SCHEMA}.leases l
    JOIN {SCHEMA}.page_jobs j ON l.resource = 'page:' || j.page_id
    JOIN {SCHEMA}.sites s ON s.site = j.site
    WHERE l.expires_at > clock_timestamp() AND s.model_route = :route
      AND (j.state IN ('queued', 'reserved', 'generating')
           OR (j.state = 'failed_retryable' AND j.revision IS NULL))
      AND j.next_attempt_at <= clock_timestamp()
    """  # noqa: S608 - only our own constant is put in
)


def in_flight(connection: Connection, route: str) -> int:
    """Pages whose worker makes a call on ``route`` now, or is about to."""
    count: int = connection.execute(_IN_FLIGHT, {"route": route}).scalar_one()
    return count


def read(connection: Connection, route: str) -> CallLimit | None:
    """What is known of ``route``; None before its first call."""
    row = connection.execute(_READ, {"of_route": route}).mappings().one_or_none()
    return None if row is None else CallLimit(**row)


def _hold(connection: Connection, route: str) -> CallLimit | None:
    row = connection.execute(_HOLD, {"of_route": route}).mappings().one_or_none()
    return None if row is None else CallLimit(**row)


def _set(connection: Connection, route: str, limit: CallLimit) -> None:
    values = {each.name: getattr(limit, each.name) for each in fields(limit)}
    connection.execute(_SET, {"of_route": route} | values)
