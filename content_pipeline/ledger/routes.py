"""Routes: what every machine must heed before it calls a service, one row per account.

What belongs here: announced pauses, circuits that a person closes, and the number of calls that may
be out at once. A route is one account at one provider, or one CMS. Whoever claims pages asks here
first, so the rule holds across processes and machines.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Text, any_, bindparam, func, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, Insert
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.retries import LONGEST_WAIT_S
from content_pipeline.core.throttling import CallLimit
from content_pipeline.ledger.schema import SCHEMA, routes, seconds_from_now

CUT_EVERY_S = 1.0
"""Calls that were out together are rejected together: they count as one rejection."""


UNLIMITED = 1e6
"""Calls at once on a route whose number nobody limits: a CMS."""

NEVER_S = 1e9
"""Stands for "until a person acts": 30 years."""


def obstacle(connection: Connection, route: str) -> Failure | None:
    """Why ``route`` may not be called now: an open circuit, or a pause with what is left of it."""
    row = _read(connection, route)
    if row is None:
        return None
    if row.circuit_class is not None:
        return Failure(failure_class=FailureClass(row.circuit_class), message=row.circuit_message)
    if row.pause_s > 0:
        return Failure(
            failure_class=FailureClass.THROTTLED,
            message=row.pause_reason,
            retry_after_s=float(row.pause_s),
        )
    return None


def closed(connection: Connection, names: Collection[str]) -> frozenset[str]:
    """Those of ``names`` that may not be called now."""
    return frozenset(connection.execute(_CLOSED, {"names": list(names)}).scalars())


def wait_s(connection: Connection, route: str) -> float:
    """For how long ``route`` may not be called; NEVER_S when only a person can open it."""
    found = obstacle(connection, route)
    if found is None:
        return 0.0
    return NEVER_S if found.retry_after_s is None else found.retry_after_s


def _read(connection: Connection, route: str) -> Row[Any] | None:
    return connection.execute(_READ, {"of_route": route}).one_or_none()


_OF_ROUTE = routes.c.route == bindparam("of_route")
_PAUSE_S = func.coalesce(
    func.extract("epoch", routes.c.paused_until - func.clock_timestamp()), 0
).label("pause_s")
_READ = select(routes, _PAUSE_S).where(_OF_ROUTE)
_CLOSED = (
    select(routes.c.route)
    .where(routes.c.route == any_(bindparam("names", type_=ARRAY(Text))))
    .where(routes.c.circuit_class.is_not(None) | (routes.c.paused_until > func.clock_timestamp()))
)
_HOLD = select(routes).where(_OF_ROUTE).with_for_update()
_HOLD_IF_LIMITED = (
    select(routes).where(_OF_ROUTE, routes.c.call_limit < routes.c.most_calls).with_for_update()
)


def free_calls(connection: Connection, route: str, *, most_calls: int) -> int:
    """How many more calls may go out on ``route``; one claimer counts at a time."""
    row = _hold(connection, route)
    if row is None or row.most_calls != most_calls:
        connection.execute(
            upsert(routes)
            .values(route=route, call_limit=most_calls, most_calls=most_calls)
            .on_conflict_do_update(
                index_elements=[routes.c.route],
                set_={
                    "most_calls": most_calls,
                    "call_limit": func.least(routes.c.call_limit, most_calls),
                },
            )
        )
        row = _hold(connection, route)
        assert row is not None
    return max(0, int(row.call_limit) - in_flight(connection, route))


def _hold(connection: Connection, route: str) -> Row[Any] | None:
    return connection.execute(_HOLD, {"of_route": route}).one_or_none()


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


def succeeded(connection: Connection, route: str) -> None:
    """A call went through: the limit may climb. Costs nothing while it is at its most."""
    row = connection.execute(_HOLD_IF_LIMITED, {"of_route": route}).one_or_none()
    if row is not None:
        _set_limit(connection, route, _limit(row).after_success())


def rejected(connection: Connection, route: str, failure: Failure) -> None:
    """A call was told to slow down: everybody waits as announced, and fewer go out at once.

    Its page has been set back already.
    """
    row = connection.execute(
        select(routes, (routes.c.cut_at > seconds_from_now(-CUT_EVERY_S)).label("just_cut"))
        .where(routes.c.route == route)
        .with_for_update()
    ).one_or_none()
    if row is None:
        return
    if not row.just_cut:
        # The rejected call was out as well. Without it a limit of 2 was cut to 1 by every rejection
        # and hardly ever left it: 0.8 calls in flight where 16 were allowed and 9 % were rejected.
        out = in_flight(connection, route) + 1
        limit = _limit(row).after_rejection(out)
        _set_limit(connection, route, limit, cut_at=func.clock_timestamp())
    pause(connection, route, failure)


def pause(connection: Connection, route: str, failure: Failure) -> None:
    """Nobody calls ``route`` before the wait that the service announced is over."""
    if not failure.retry_after_s:
        return
    until = seconds_from_now(min(failure.retry_after_s, LONGEST_WAIT_S))
    statement = _new_route(route, paused_until=until, pause_reason=failure.message)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[routes.c.route],
            set_={
                "paused_until": func.greatest(
                    routes.c.paused_until, statement.excluded.paused_until
                ),
                "pause_reason": failure.message,
                "updated_at": func.clock_timestamp(),
            },
        )
    )


def open_circuit(connection: Connection, route: str, failure: Failure) -> None:
    """Nobody calls ``route`` until a person has put the account in order."""
    circuit = {
        "circuit_class": failure.failure_class,
        "circuit_message": failure.message,
        "circuit_opened_at": func.clock_timestamp(),
    }
    connection.execute(
        _new_route(route, **circuit).on_conflict_do_update(
            index_elements=[routes.c.route],
            set_=circuit | {"updated_at": func.clock_timestamp()},
        )
    )


def _new_route(route: str, **values: Any) -> Insert:
    """A route may not be known yet: a CMS is met when it first fails."""
    return upsert(routes).values(route=route, call_limit=UNLIMITED, most_calls=UNLIMITED, **values)


def close_circuit(connection: Connection, route: str) -> bool:
    """A person says that ``route`` is in order again; False when nothing was wrong with it."""
    closed = connection.execute(
        update(routes)
        .where(routes.c.route == route)
        .where(routes.c.circuit_class.is_not(None) | routes.c.paused_until.is_not(None))
        .values(
            circuit_class=None,
            circuit_message=None,
            circuit_opened_at=None,
            paused_until=None,
            pause_reason=None,
            updated_at=func.clock_timestamp(),
        )
    )
    return closed.rowcount == 1


def _limit(row: Row[Any]) -> CallLimit:
    return CallLimit(limit=row.call_limit, most=row.most_calls, cut_from=row.cut_from)


def _set_limit(
    connection: Connection, route: str, limit: CallLimit, *, cut_at: Any = routes.c.cut_at
) -> None:
    connection.execute(
        update(routes)
        .where(routes.c.route == route)
        .values(
            call_limit=limit.limit,
            cut_from=limit.cut_from,
            cut_at=cut_at,
            updated_at=func.clock_timestamp(),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteReport:
    """A route as people see it."""

    route: str
    call_limit: int
    most_calls: int
    paused_until: datetime | None
    reason: str | None
    circuit_opened_at: datetime | None

    @property
    def is_closed(self) -> bool:
        """Whether it keeps pages waiting."""
        return self.paused_until is not None or self.circuit_opened_at is not None


def report(connection: Connection, route: str) -> RouteReport | None:
    """How ``route`` stands; None when nobody has used it yet."""
    row = connection.execute(
        select(routes, (routes.c.paused_until > func.clock_timestamp()).label("is_paused")).where(
            routes.c.route == route
        )
    ).one_or_none()
    if row is None:
        return None
    reason = row.pause_reason if row.is_paused else None
    if row.circuit_class is not None:
        reason = f"{row.circuit_class}: {row.circuit_message}"
    return RouteReport(
        route=route,
        call_limit=int(row.call_limit),
        most_calls=int(row.most_calls),
        paused_until=row.paused_until if row.is_paused else None,
        reason=reason,
        circuit_opened_at=row.circuit_opened_at,
    )
