"""Spend: the worst case reserved before a paid call, and what the call came to.

What belongs here: reservations and settlements, and the caps they are checked against. A cap holds
under any number of workers because the row of its scope admits one writer at a time. Locks are
taken in one order (lease, job, spend, the site's scope, the global one), and the busy scope rows
last and briefest.
"""

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection, and_, bindparam, func, select, text, update

from content_pipeline.core.errors import BudgetExhausted, CapTooSmall, PageBudgetExhausted
from content_pipeline.core.money import round_usd
from content_pipeline.core.site import Budgets
from content_pipeline.ledger.schema import (
    SCHEMA,
    AttemptKind,
    AttemptState,
    SpendState,
    attempts,
    budgets,
    spend,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Dollars that must not be passed, settled and reserved together."""

    page_usd: Decimal
    site_day_usd: Decimal
    global_day_usd: Decimal | None = None
    """For all sites of the ledger together; None: no such cap."""


def caps_of(budgets: Budgets, day_usd: Decimal | None) -> Caps:
    """A site's own caps, and the one that all sites share."""
    return Caps(
        page_usd=budgets.page_usd, site_day_usd=budgets.site_day_usd, global_day_usd=day_usd
    )


def reserve(
    connection: Connection,
    *,
    attempt_id: str,
    page_job_id: str,
    site: str,
    worst_case_usd: Decimal,
    caps: Caps,
) -> None:
    """Reserve the worst case of one call. Idempotent per attempt.

    A reservation that was given back, because its call was never made, is made anew. Raises
    BudgetExhausted when a later day may allow the call, PageBudgetExhausted or CapTooSmall when
    none will.
    """
    amount = round_usd(worst_case_usd)
    before = connection.execute(_BEFORE, {"to_reserve": attempt_id, "of_job": page_job_id}).one()
    if before.is_reserved:
        return
    if before.usd + amount > caps.page_usd:
        raise PageBudgetExhausted(
            f"the next call could cost ${amount:f} and ${before.usd:f} of this page's cap of "
            f"${caps.page_usd:f} are used; raise budgets.page_usd to allow it"
        )
    _refuse_hopeless(amount, caps)
    day = before.day
    site_scope = site_day_scope(site, day.isoformat())
    values = {
        "attempt_id": attempt_id,
        "site": site,
        "page_job_id": page_job_id,
        "day": day,
        "usd": amount,
        "site_scope": site_scope,
        "site_cap_usd": caps.site_day_usd,
        "global_scope": global_day_scope(day.isoformat()),
        "global_cap_usd": caps.global_day_usd,
    }
    admitted = connection.execute(_RESERVE, values).scalars().all()
    if site_scope not in admitted:
        raise BudgetExhausted(
            f"the next call could cost ${amount:f}, which would pass the site's cap of "
            f"${caps.site_day_usd:f} for {day} (UTC); raise budgets.site_day_usd or wait for the "
            "next day"
        )
    if len(admitted) == 1:
        raise BudgetExhausted(
            f"the next call could cost ${amount:f}, which would pass the cap of "
            f"${caps.global_day_usd:f} for all sites together on {day} (UTC); raise "
            "CONTENT_PIPELINE_DAY_USD or wait for the next day"
        )


def _refuse_hopeless(amount: Decimal, caps: Caps) -> None:
    """Raise CapTooSmall for a call above a whole day's cap.

    A global cap of 0 means that nothing is to be paid for the time being: pages wait under it.
    """
    if amount > caps.site_day_usd:
        whose, cap, name = "the site", caps.site_day_usd, "budgets.site_day_usd"
    elif caps.global_day_usd and amount > caps.global_day_usd:
        whose, cap, name = "all sites together", caps.global_day_usd, "CONTENT_PIPELINE_DAY_USD"
    else:
        return
    raise CapTooSmall(
        f"this one call could cost ${amount:f}, more than {name} allows {whose} on a whole day "
        f"(${cap:f}), so no day would ever allow it; raise {name}, or lower max_output_tokens"
    )


_BEFORE = select(
    func.coalesce(func.sum(func.coalesce(spend.c.settled_usd, spend.c.reserved_usd)), 0).label(
        "usd"
    ),
    func.bool_or(
        and_(spend.c.attempt_id == bindparam("to_reserve"), spend.c.state != SpendState.RELEASED)
    ).label("is_reserved"),
    text("(now() AT TIME ZONE 'utc')::date AS day"),
).where(spend.c.page_job_id == bindparam("of_job"))
# The rows of budgets are everybody's: both come last, the site's before the global one, and in one
# statement, so that they are held for one round trip and not for three.
_RESERVE = text(
    f"""
    WITH reserved AS (
        INSERT INTO {SCHEMA}.spend (attempt_id, site, page_job_id, day, state, reserved_usd)
        VALUES (:attempt_id, :site, :page_job_id, :day, '{SpendState.RESERVED}', :usd)
        ON CONFLICT (attempt_id) DO UPDATE
        SET day = excluded.day, state = excluded.state, reserved_usd = excluded.reserved_usd,
            settled_usd = NULL, updated_at = now()
        RETURNING reserved_usd AS usd
    ), scopes(place, scope, cap_usd) AS (
        VALUES (1, CAST(:site_scope AS text), CAST(:site_cap_usd AS numeric)),
               (2, CAST(:global_scope AS text), CAST(:global_cap_usd AS numeric))
    )
    INSERT INTO {SCHEMA}.budgets AS b (scope, committed_usd)
    SELECT s.scope, r.usd FROM scopes s, reserved r
    WHERE s.cap_usd IS NULL OR r.usd <= s.cap_usd
    ORDER BY s.place
    ON CONFLICT (scope) DO UPDATE SET committed_usd = b.committed_usd + excluded.committed_usd
    WHERE b.committed_usd + excluded.committed_usd <= coalesce(
        (SELECT s.cap_usd FROM scopes s WHERE s.scope = b.scope), 'infinity')
    RETURNING scope
    """  # noqa: S608 - only our own constants are put in
)


def site_day_scope(site: str, day: str) -> str:
    """The name of one site's budget for one UTC day."""
    return f"site:{site}:day:{day}"


def global_day_scope(day: str) -> str:
    """The name of the budget of all sites together for one UTC day.

    It is kept whether or not somebody caps it, so that a cap set later counts what came before.
    """
    return f"global:day:{day}"


def seconds_to_next_day(connection: Connection) -> float:
    """Seconds until a new UTC day, and with it a new day budget, begins."""
    left: float = connection.execute(
        text(
            "SELECT extract(epoch FROM date_trunc('day', now() AT TIME ZONE 'utc') "
            "+ interval '1 day' - (now() AT TIME ZONE 'utc'))::float"
        )
    ).scalar_one()
    return left


def room_usd(connection: Connection, site: str, caps: Caps) -> Decimal:
    """What may still be reserved for ``site`` today; not below 0.

    Only ``reserve`` decides: this is read beside calls that reserve and settle.
    """
    day: str = connection.execute(_TODAY).scalar_one()
    scopes = {site_day_scope(site, day): caps.site_day_usd}
    if caps.global_day_usd is not None:
        scopes[global_day_scope(day)] = caps.global_day_usd
    rows = connection.execute(select(budgets).where(budgets.c.scope.in_(scopes)))
    committed = {row.scope: row.committed_usd for row in rows}
    left: Decimal = min(cap - committed.get(scope, Decimal(0)) for scope, cap in scopes.items())
    return max(Decimal(0), left)


_TODAY = text("SELECT (now() AT TIME ZONE 'utc')::date::text")


def settle(connection: Connection, attempt_id: str, cost_usd: Decimal) -> None:
    """Book what the call really cost; the rest of its reservation is free again."""
    _close(connection, attempt_id, SpendState.SETTLED, round_usd(cost_usd))


def settle_at_worst_case(connection: Connection, attempt_id: str) -> None:
    """Book the whole reservation: the call was paid and nobody says how much."""
    reserved = connection.execute(
        select(spend.c.reserved_usd).where(spend.c.attempt_id == attempt_id)
    ).scalar_one()
    _close(connection, attempt_id, SpendState.SETTLED, reserved)


def release(connection: Connection, attempt_id: str) -> None:
    """Nothing was sent, so nothing was spent."""
    _close(connection, attempt_id, SpendState.RELEASED, Decimal(0))


def release_unsent(connection: Connection, page_job_id: str) -> None:
    """Give back what a page job reserved for a call that was never even intended."""
    unsent = (
        select(spend.c.attempt_id)
        .outerjoin(attempts, attempts.c.attempt_id == spend.c.attempt_id)
        .where(spend.c.page_job_id == page_job_id, spend.c.state == SpendState.RESERVED)
        .where(attempts.c.attempt_id.is_(None))
    )
    for attempt_id in connection.execute(unsent).scalars().all():
        release(connection, attempt_id)


def keep_as_uncertain(connection: Connection, attempt_id: str) -> None:
    """The call may have been billed: its worst case stays committed until somebody knows."""
    connection.execute(
        update(spend)
        .where(spend.c.attempt_id == attempt_id, spend.c.settled_usd.is_(None))
        .values(state=SpendState.UNCERTAIN, updated_at=func.now())
    )


def has_lost_call(connection: Connection, page_job_id: str) -> bool:
    """Whether the newest paid call of a page job may have been billed and nobody could say."""
    newest: str | None = connection.execute(
        select(attempts.c.state)
        .where(attempts.c.page_job_id == page_job_id, attempts.c.kind == AttemptKind.GENERATE)
        .order_by(attempts.c.number.desc())
        .limit(1)
    ).scalar_one_or_none()
    return newest == AttemptState.UNCERTAIN


def _close(connection: Connection, attempt_id: str, state: SpendState, cost_usd: Decimal) -> None:
    values = {"closing": attempt_id, "closed_as": state, "cost_usd": cost_usd}
    closed: int = connection.execute(_CLOSE, values).scalar_one()
    assert closed, f"attempt {attempt_id} has no reservation to close"


_CLOSE = text(
    f"""
    WITH before AS (
        SELECT attempt_id, coalesce(settled_usd, reserved_usd) AS usd
        FROM {SCHEMA}.spend WHERE attempt_id = :closing FOR UPDATE
    ), closed AS (
        UPDATE {SCHEMA}.spend s
        SET state = :closed_as, settled_usd = :cost_usd, updated_at = now()
        FROM before WHERE s.attempt_id = before.attempt_id
        RETURNING s.site, to_char(s.day, 'YYYY-MM-DD') AS day, before.usd - s.settled_usd AS usd
    ), freed AS (
        SELECT b.scope, c.usd FROM closed c JOIN {SCHEMA}.budgets b
        ON b.scope IN ('site:' || c.site || ':day:' || c.day, 'global:day:' || c.day)
        ORDER BY b.scope DESC FOR UPDATE OF b  -- the site's first, like a reservation
    ), credited AS (
        UPDATE {SCHEMA}.budgets b SET committed_usd = b.committed_usd - freed.usd
        FROM freed WHERE b.scope = freed.scope
    )
    SELECT count(*) FROM closed
    """  # noqa: S608 - only our own constants are put in
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendTotals:
    """Dollars of a site, all time."""

    settled_usd: Decimal
    reserved_usd: Decimal
    """Calls that are out right now."""
    uncertain_usd: Decimal
    """Worst case of calls that may have been billed: the possible double spend."""
    uncertain_calls: int


def totals(connection: Connection, site: str) -> SpendTotals:
    """What a site has spent and may have spent."""
    reserved = func.sum(spend.c.reserved_usd)
    row = connection.execute(
        select(
            func.coalesce(func.sum(spend.c.settled_usd), 0).label("settled"),
            func.coalesce(reserved.filter(spend.c.state == SpendState.RESERVED), 0).label(
                "reserved"
            ),
            func.coalesce(reserved.filter(spend.c.state == SpendState.UNCERTAIN), 0).label(
                "uncertain"
            ),
            func.count().filter(spend.c.state == SpendState.UNCERTAIN).label("calls"),
        ).where(spend.c.site == site)
    ).one()
    return SpendTotals(
        settled_usd=row.settled,
        reserved_usd=row.reserved,
        uncertain_usd=row.uncertain,
        uncertain_calls=row.calls,
    )
