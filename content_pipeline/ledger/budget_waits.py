"""Budget waits: page jobs whose next call a cap did not allow, and waking those it allows now.

What belongs here: how much each of them needs, and letting as many be due as the day has room for.
A cap that was raised, or reservations that came to less, so help at once instead of at midnight;
while nothing fits, nothing is touched. What a call reserves in the end is ``spend``'s.
"""

from decimal import Decimal

from sqlalchemy import Connection, bindparam, text, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import spend
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import SCHEMA, page_jobs
from content_pipeline.ledger.spend import Caps


def note(connection: Connection, page_job_id: str, usd: Decimal) -> None:
    """Remember what the call that a cap did not allow could cost; for the move that follows."""
    connection.execute(
        update(page_jobs).where(page_jobs.c.page_job_id == page_job_id).values(waits_for_usd=usd)
    )


# In the order of claiming, as far as the room goes, which those that are due already have first. A
# job that another transaction holds is moving anyway. Should a page find less room than there was,
# it waits again.
_WAITS = f"state = '{PageJobState.FAILED_RETRYABLE}' AND failure_class = '{FailureClass.BUDGET}'"
_WAKE = text(
    f"""
    WITH line AS (
        SELECT page_job_id FROM {SCHEMA}.page_jobs
        WHERE site = :site AND {_WAITS}
          AND (CAST(:topics AS text[]) IS NULL OR topic_key = ANY(CAST(:topics AS text[])))
        ORDER BY priority DESC, next_attempt_at, page_job_id LIMIT :most
    ), waiting AS (
        SELECT page_job_id, waits_for_usd, priority, next_attempt_at,
               next_attempt_at > clock_timestamp() AS still_waits
        FROM {SCHEMA}.page_jobs
        WHERE page_job_id IN (SELECT page_job_id FROM line) AND {_WAITS}
          AND waits_for_usd <= :room_usd
        ORDER BY page_job_id FOR UPDATE SKIP LOCKED
    ), lined_up AS (
        SELECT page_job_id, still_waits,
               sum(waits_for_usd) OVER (
                   ORDER BY still_waits, priority DESC, next_attempt_at, page_job_id) AS needed_usd
        FROM waiting
    )
    UPDATE {SCHEMA}.page_jobs j SET next_attempt_at = clock_timestamp() FROM lined_up l
    WHERE j.page_job_id = l.page_job_id AND l.still_waits AND l.needed_usd <= :room_usd
    """  # noqa: S608 - only our own constants are put in
).bindparams(
    bindparam("topics", type_=ARRAY(Text)),
    bindparam("room_usd", type_=page_jobs.c.waits_for_usd.type),
)


def wake(
    connection: Connection, selection: Selection, caps: Caps, *, most: int | None = None
) -> int:
    """Make due what waits for a budget and ``caps`` have room for today; how many jobs that are.

    ``most``: look at no more than so many, the first in line; None: at all of them.
    """
    room_usd = spend.room_usd(connection, selection.site, caps)
    topics = None if selection.topics is None else list(selection.topics)
    values = {"site": selection.site, "topics": topics, "room_usd": room_usd, "most": most}
    return connection.execute(_WAKE, values).rowcount
