"""The line of drafts: new pages that are not paid for before the publish rate has a turn for them.

What belongs here: counting the drafts that wait to become public or are being made, letting a first
call begin while the rate takes one more, and the line of those that wait for that. A draft that
cannot be published for days would be money spent on a text that its topic may outdate by then. When
a finished draft goes out is ``publish_rate``'s.
"""

from sqlalchemy import Connection, func, select, text

from content_pipeline.core.publish_rate import Issued, PublishRate, drafts_wanted
from content_pipeline.core.states import WORKABLE, PageJobState
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.lines import waking
from content_pipeline.ledger.schema import SCHEMA

HELD_AT_ONCE = 5_000
"""Jobs that one look sends to the line: a second or so, with no other new page begun meanwhile."""

_WORKABLE = ", ".join(f"'{state}'" for state in sorted(WORKABLE))
_ON_THEIR_WAY = f"'{PageJobState.PUBLISHING}', '{PageJobState.PUBLISH_UNCERTAIN}'"
_MADE = ", ".join(
    f"'{state}'"
    for state in (
        PageJobState.RESERVED,
        PageJobState.GENERATING,
        PageJobState.GENERATION_UNCERTAIN,
        PageJobState.GENERATED,
        PageJobState.VALIDATING,
        PageJobState.READY_TO_PUBLISH,
        PageJobState.FAILED_RETRYABLE,
    )
)
_IS_BEGUN = f"""
    EXISTS (SELECT FROM {SCHEMA}.spend s
            WHERE s.page_job_id = j.page_job_id AND s.state <> 'released')"""
# Nothing failed where a page waits for its turn, so its job has a message and no class.
_WAITS = (
    f"j.state = '{PageJobState.QUEUED}' AND j.failure_class IS NULL "
    "AND j.failure_message IS NOT NULL"
)

_ASKED = text(
    f"""
    SELECT p.first_public_at IS NULL AND NOT ({_IS_BEGUN}) AS is_new
    FROM {SCHEMA}.page_jobs j JOIN {SCHEMA}.pages p ON p.page_id = j.page_id
    WHERE j.page_job_id = :page_job_id
    """  # noqa: S608 - only our own constants are put in
)
# In one statement, so that a draft on its way out is counted once. A page that waits for money has
# none yet; one between two calls of its chain is queued for a moment, held by whoever walks it.
_STANDING = text(
    f"""
    WITH clock AS (SELECT clock_timestamp() AS now), public AS (
        SELECT count(*) AS today,
               count(*) FILTER (
                   WHERE p.first_public_at >= date_trunc('hour', clock.now, 'UTC')) AS this_hour
        FROM {SCHEMA}.pages p, clock
        WHERE p.site = :site AND p.first_public_at >= date_trunc('day', clock.now, 'UTC')
    ), unfinished AS (
        SELECT count(*) FILTER (WHERE j.state IN ({_ON_THEIR_WAY})) AS on_their_way,
               count(*) FILTER (WHERE j.state IN ({_MADE}) AND (
                   j.revision IS NOT NULL OR j.failure_class IS DISTINCT FROM 'budget')) AS made
        FROM {SCHEMA}.page_jobs j JOIN {SCHEMA}.pages p ON p.page_id = j.page_id
        WHERE j.site = :site AND j.state IN ({_WORKABLE})
          AND j.state IN ({_ON_THEIR_WAY}, {_MADE}) AND p.first_public_at IS NULL
    ), between_calls AS (
        SELECT count(*) AS made FROM {SCHEMA}.leases l
        JOIN {SCHEMA}.page_jobs j ON j.page_id = substr(l.resource, 6)
        JOIN {SCHEMA}.pages p ON p.page_id = j.page_id
        WHERE l.resource LIKE 'page:%' AND j.site = :site AND j.state = '{PageJobState.QUEUED}'
          AND p.first_public_at IS NULL AND {_IS_BEGUN}
    )
    SELECT clock.now, public.today + unfinished.on_their_way AS today,
           public.this_hour + unfinished.on_their_way AS this_hour,
           unfinished.made + between_calls.made AS made
    FROM clock, public, unfinished, between_calls
    """  # noqa: S608 - only our own constants are put in
)

# The place in the line says on which day the rate has a turn for the page. One that another worker
# holds asks for itself.
_HOLD = text(
    f"""
    WITH line AS (
        SELECT j.page_job_id, j.priority, j.next_attempt_at FROM {SCHEMA}.page_jobs j
        JOIN {SCHEMA}.pages p ON p.page_id = j.page_id
        WHERE j.site = :site AND j.state IN ({_WORKABLE}) AND j.state = '{PageJobState.QUEUED}'
          AND j.next_attempt_at <= clock_timestamp() AND p.first_public_at IS NULL
          AND NOT {_IS_BEGUN}
          AND (j.page_job_id = :page_job_id OR NOT EXISTS (
                  SELECT FROM {SCHEMA}.leases l WHERE l.resource = 'page:' || j.page_id))
        ORDER BY j.priority DESC, j.next_attempt_at, j.page_job_id
        LIMIT :most FOR UPDATE OF j SKIP LOCKED
    ), before AS (
        SELECT count(*) AS held FROM {SCHEMA}.page_jobs j
        WHERE j.site = :site AND {_WAITS} AND j.next_attempt_at > clock_timestamp()
    ), turns AS (
        SELECT page_job_id, date_trunc('day', clock_timestamp(), 'UTC') + make_interval(days =>
            1 + ((before.held - 1 + row_number() OVER (
                ORDER BY priority DESC, next_attempt_at, page_job_id)) / :per_day)::int) AS turn
        FROM line, before
    )
    UPDATE {SCHEMA}.page_jobs j
    SET next_attempt_at = turn, failure_class = NULL, failure_message = :message,
        deadline_at = greatest(
            j.deadline_at, turn + make_interval(secs => s.page_deadline_s))
    FROM turns, {SCHEMA}.sites s
    WHERE j.page_job_id = turns.page_job_id AND s.site = j.site
    """  # noqa: S608 - only our own constants are put in
)


def hold_back(connection: Connection, job: PageJob, rate: PublishRate | None) -> bool:
    """Whether ``job`` must wait for its first paid call; it then does, and with it all behind it.

    Only a page that never was public and that nothing was paid for has to. In the transaction that
    reserves the call's worst case: until it ends, nobody else of the site begins a new page.
    """
    if rate is None:
        return False
    asked = {"page_job_id": job.page_job_id}
    if not connection.execute(_ASKED, asked).one().is_new:
        return False
    key = func.hashtextextended(f"draft:{job.site}", 0)
    connection.execute(select(func.pg_advisory_xact_lock(key)))
    if _room(connection, job.site, rate) > 0:
        return False
    values = {
        "site": job.site,
        "per_day": rate.per_day,
        "most": HELD_AT_ONCE,
        "message": (
            f"waits for its turn: the site publishes at most {rate}, and no draft is paid for "
            f"before {_paid_for(rate)}"
        ),
    }
    connection.execute(_HOLD, asked | values)
    return True


_WAITING = text(
    f"""
    SELECT count(*) FROM {SCHEMA}.page_jobs j
    WHERE j.site = :site AND {_WAITS} AND j.next_attempt_at > clock_timestamp()
    """  # noqa: S608 - only our own constants are put in
)


def waiting(connection: Connection, site: str) -> int:
    """New pages of ``site`` whose draft waits for its turn."""
    count: int = connection.execute(_WAITING, {"site": site}).scalar_one()
    return count


def _room(connection: Connection, site: str, rate: PublishRate) -> int:
    """How many more drafts of new pages may be begun now."""
    row = connection.execute(_STANDING, {"site": site}).one()
    issued = Issued(today=row.today, this_hour=row.this_hour)
    return drafts_wanted(rate, issued, row.now) - int(row.made)


def _paid_for(rate: PublishRate) -> str:
    if not rate.drafts_ahead_days:
        return "the day on which it can go out"
    days = "day" if rate.drafts_ahead_days == 1 else "days"
    return f"{rate.drafts_ahead_days} {days} ahead of that (schedule.drafts_ahead_days)"


_WAKE = waking(_WAITS)


def wake(
    connection: Connection,
    selection: Selection,
    rate: PublishRate | None,
    *,
    most: int | None = None,
) -> int:
    """Make due what may be begun now, e.g. because the rate was raised or drafts failed; how many.

    Only ``hold_back`` decides: should a page find no room after all, it waits again. ``most``: wake
    no more than so many, the first in line; None: as many as there is room for.
    """
    if rate is not None:
        room = max(0, _room(connection, selection.site, rate))
        most = room if most is None else min(most, room)
        if not most:
            return 0
    topics = None if selection.topics is None else list(selection.topics)
    values = {"site": selection.site, "topics": topics, "most": most}
    return connection.execute(_WAKE, values).rowcount
