"""Write-offs: the end of calls of which nobody will ever say whether they were billed.

What belongs here: counting such a call as spent, at the worst case that was reserved for it, once
it is older than the site waits for evidence. Money is never counted lower by this: the sum moves
from "may have been billed" to "spent". Evidence that comes later still settles the call.
"""

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection, text

from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.schema import SCHEMA, SpendState


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOff:
    """Calls that were counted as spent because nobody could say."""

    calls: int
    usd: Decimal


# A page that is still being asked about is not over; its health check tells how long it takes.
_WRITE_OFF = text(
    f"""
    UPDATE {SCHEMA}.spend s
    SET state = '{SpendState.WRITTEN_OFF}', settled_usd = s.reserved_usd,
        updated_at = clock_timestamp()
    FROM {SCHEMA}.page_jobs j
    WHERE s.site = :site AND s.state = '{SpendState.UNCERTAIN}'
      AND s.day < (clock_timestamp() AT TIME ZONE 'utc')::date - CAST(:after_days AS int)
      AND j.page_job_id = s.page_job_id
      AND j.state NOT IN ('{PageJobState.GENERATING}', '{PageJobState.GENERATION_UNCERTAIN}')
    """  # noqa: S608 - only our own constants are put in
)


def write_off(connection: Connection, site: str, *, after_days: int) -> int:
    """Count as spent what was uncertain for more than ``after_days`` whole UTC days; how many."""
    return connection.execute(_WRITE_OFF, {"site": site, "after_days": after_days}).rowcount


_OF_SITE = text(
    f"""
    SELECT count(*) AS calls, coalesce(sum(settled_usd), 0) AS usd
    FROM {SCHEMA}.spend WHERE site = :site AND state = '{SpendState.WRITTEN_OFF}'
    """  # noqa: S608 - only our own constants are put in
)


def of_site(connection: Connection, site: str) -> WrittenOff:
    """All that was ever written off for ``site``."""
    row = connection.execute(_OF_SITE, {"site": site}).one()
    return WrittenOff(calls=row.calls, usd=row.usd)
