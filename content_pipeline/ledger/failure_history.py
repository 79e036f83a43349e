"""Failure history: what failed in the last days, and what trying again brought.

What belongs here: reading a bounded time by the indexes of failed attempts and of outcomes, so that
its cost grows with the failures and not with the pages. What needs a person now is
``failed_pages``'s.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from sqlalchemy import Connection, text

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.cost_history import Window
from content_pipeline.ledger.schema import SCHEMA, AttemptKind

REPAIRED = "taken up again"
"""Of a page job that failed and has gone on since: its class of then is on record no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPages:
    """Page jobs that stopped for a person on one day, for one reason."""

    day: date
    state: PageJobState
    """``failed_terminal`` or ``dead_lettered``."""
    reason: str
    """The class of the failure, or that the page job was taken up again."""
    pages: int


def failed_by_day(connection: Connection, site: str, seen: Window) -> list[FailedPages]:
    """The pages that stopped for a person, by day (UTC), state and reason.

    One that was repaired and failed again is counted each time.
    """
    rows = connection.execute(
        _FAILED_BY_DAY, {"site": site, "begins_at": seen.begins_at, "repaired": REPAIRED}
    )
    return [
        FailedPages(
            day=row.day, state=PageJobState(row.to_state), reason=row.reason, pages=row.pages
        )
        for row in rows
    ]


# The states stand in the text: behind a parameter the planner may not use a partial index.
_STOPPED = "t.to_state IN ('failed_terminal', 'dead_lettered')"

_FAILED_BY_DAY = text(
    f"""
    SELECT (t.at AT TIME ZONE 'utc')::date AS day, t.to_state,
           CASE WHEN j.sequence = t.sequence THEN j.failure_class ELSE :repaired END AS reason,
           count(*) AS pages
    FROM {SCHEMA}.transitions t
    JOIN {SCHEMA}.page_jobs j ON j.page_job_id = t.page_job_id
    WHERE {_STOPPED} AND t.at >= :begins_at AND j.site = :site
    GROUP BY day, t.to_state, reason
    ORDER BY day, t.to_state, reason
    """  # noqa: S608 - only our own constants are put in
)


def failed_lately(connection: Connection, site: str, days: int) -> tuple[int, ...]:
    """Pages that stopped for a person in each of the last ``days`` times 24 hours, newest first."""
    rows = connection.execute(_FAILED_LATELY, {"site": site, "days": days})
    counts = {row.days_ago: row.pages for row in rows}
    return tuple(counts.get(days_ago, 0) for days_ago in range(days))


_FAILED_LATELY = text(
    f"""
    SELECT floor(extract(epoch FROM now() - t.at) / 86400)::int AS days_ago, count(*) AS pages
    FROM {SCHEMA}.transitions t
    JOIN {SCHEMA}.page_jobs j ON j.page_job_id = t.page_job_id
    WHERE {_STOPPED} AND t.at > now() - make_interval(days => :days) AND t.at <= now()
      AND j.site = :site
    GROUP BY days_ago
    """  # noqa: S608 - only our own constants are put in
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The next tries after failures of one class, and what came of them."""

    kind: AttemptKind
    failure_class: FailureClass
    """Of the try before."""
    number: int
    """Of the try: 2 for the first retry. It starts anew with each step and after a success."""
    tries: int
    succeeded: int
    usd: Decimal
    """What these tries cost, uncertain ones at their worst case; 0 for publishing."""


def retries(connection: Connection, site: str, seen: Window) -> list[Retries]:
    """What trying again brought after the failures of the window; tries that are out are left out.

    A lost call whose answer was found by asking is no failure, and so no retry.
    """
    rows = connection.execute(_RETRIES, {"site": site, "begins_at": seen.begins_at})
    return [
        Retries(
            kind=AttemptKind(row.kind),
            failure_class=FailureClass(row.failure_class),
            number=row.number,
            tries=row.tries,
            succeeded=row.succeeded,
            usd=row.usd,
        )
        for row in rows
    ]


_RETRIES = text(
    f"""
    SELECT f.kind, f.failure_class, n.number - coalesce(done.number, 0) AS number,
           count(*) AS tries,
           count(*) FILTER (WHERE n.state = 'succeeded') AS succeeded,
           coalesce(sum(coalesce(s.settled_usd, s.reserved_usd)), 0) AS usd
    FROM {SCHEMA}.attempts f
    JOIN {SCHEMA}.page_jobs j ON j.page_job_id = f.page_job_id
    JOIN {SCHEMA}.attempts n
      ON n.page_job_id = f.page_job_id AND n.kind = f.kind AND n.number = f.number + 1
     AND n.step = f.step AND n.state <> 'open'
    LEFT JOIN LATERAL (
        SELECT max(a.number) AS number FROM {SCHEMA}.attempts a
        WHERE a.page_job_id = f.page_job_id AND a.kind = f.kind AND a.number < f.number
          AND (a.state = 'succeeded' OR a.step <> f.step)
    ) done ON true
    LEFT JOIN {SCHEMA}.spend s ON s.attempt_id = n.attempt_id
    WHERE f.state IN ('failed', 'uncertain') AND f.finished_at >= :begins_at AND j.site = :site
    GROUP BY 1, 2, 3
    ORDER BY 1, 2, 3
    """  # noqa: S608 - only our own constants are put in
)
