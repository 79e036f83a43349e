"""Routes: what every machine must heed before it calls a service, one row per account.

What belongs here: announced pauses, and circuits that a person closes. A route is one account at
one provider, or one CMS. Whoever claims pages asks here first, and once more before each call, so
the rule holds across processes and machines. How many calls may be out is in ``call_limits``.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Text, any_, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY, Insert
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.retries import LONGEST_WAIT_S
from content_pipeline.ledger.schema import routes, seconds_from_now

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
    return upsert(routes).values(route=route, **values)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteReport:
    """A route as people see it."""

    route: str
    paused_until: datetime | None
    reason: str | None
    circuit_opened_at: datetime | None

    @property
    def is_closed(self) -> bool:
        """Whether it keeps pages waiting."""
        return self.paused_until is not None or self.circuit_opened_at is not None


def report(connection: Connection, route: str) -> RouteReport | None:
    """How ``route`` stands; None when nothing was ever wrong."""
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
        paused_until=row.paused_until if row.is_paused else None,
        reason=reason,
        circuit_opened_at=row.circuit_opened_at,
    )
