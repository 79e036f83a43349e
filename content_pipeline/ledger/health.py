"""Health: what of a site waits, is uncertain, failed or was changed on the site, now.

What belongs here: the few rows of now, each found by an index, however many pages the site has.
What the numbers mean is ``core.health``'s; the past is ``failure_history``'s.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Connection, text

from content_pipeline.core.causes import Cause, cause_of
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import WORKABLE, PageJobState
from content_pipeline.ledger.schema import SCHEMA
from content_pipeline.ledger.schema.vocabulary import one_of

COUNTED_TO = 10_000
"""Due pages are counted up to this: beyond it, the exact number helps nobody and takes longer."""

LOOKED_AT = 5_000
"""The newest failed pages, whose causes are told apart by their messages."""

SHOWN = 5
"""Of the oldest due pages: enough to see what they have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DuePage:
    """A page that could be worked on and is not."""

    topic_key: str
    state: PageJobState
    due_since: datetime
    waits_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The pages that are due and held by no worker."""

    due: int
    """At most ``COUNTED_TO``, which then means that many or more; those at work are in it."""
    oldest: tuple[DuePage, ...]
    """The oldest first, at most ``SHOWN``."""

    @property
    def age_s(self) -> float:
        """How long the oldest one has waited; 0 without any."""
        return self.oldest[0].waits_s if self.oldest else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UncertainPages:
    """Page jobs whose paid call, or write to the site, may have taken effect, being asked about."""

    state: PageJobState
    pages: int
    oldest_topic: str
    oldest_s: float
    """Since the oldest of these calls was begun."""
    usd: Decimal
    """The worst case of the calls among them that may have been billed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleDoubleSpend:
    """Calls that may have been billed without a usable answer, at their worst case.

    Until they are written off: see ``write_offs``.
    """

    calls: int
    usd: Decimal
    oldest_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedNow:
    """Pages that need a person now, of one cause."""

    cause: Cause
    pages: int
    newest_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflicts:
    """Pages that were changed on the site by somebody else, of one kind."""

    change: SiteChange
    pages: int
    oldest_at: datetime


# Everywhere below the states stand in the text: behind a parameter the planner may not use a
# partial index. The order of the due is theirs within one priority; so the few priorities in use
# are found first, each by one look into the index, and pages that wait for later are never read.
_LEVELS = f"""
    WITH RECURSIVE levels(priority) AS (
        (SELECT priority FROM {SCHEMA}.page_jobs
         WHERE site = :site AND {one_of("state", WORKABLE)} ORDER BY priority DESC LIMIT 1)
        UNION ALL
        SELECT (SELECT j.priority FROM {SCHEMA}.page_jobs j
                WHERE j.site = :site AND {one_of("j.state", WORKABLE)}
                  AND j.priority < levels.priority
                ORDER BY j.priority DESC LIMIT 1)
        FROM levels WHERE levels.priority IS NOT NULL
    )"""  # noqa: S608 - only our own constants are put in

_DUE = f"""
        FROM {SCHEMA}.page_jobs j
        WHERE j.site = :site AND {one_of("j.state", WORKABLE)} AND j.priority = levels.priority
          AND j.next_attempt_at <= now()"""

_COUNT = text(
    f"""{_LEVELS}
    SELECT count(*) FROM (
        SELECT FROM levels CROSS JOIN LATERAL (SELECT {_DUE} LIMIT :most) due LIMIT :most
    ) counted"""  # noqa: S608 - only our own constants are put in
)

_OLDEST = text(
    f"""{_LEVELS}
    SELECT due.topic_key, due.state, due.next_attempt_at,
           extract(epoch FROM now() - due.next_attempt_at)::float AS waits_s
    FROM levels CROSS JOIN LATERAL (
        SELECT j.topic_key, j.state, j.next_attempt_at {_DUE}
          AND NOT EXISTS (SELECT FROM {SCHEMA}.leases l
                          WHERE l.resource = 'page:' || j.page_id AND l.expires_at > now())
        ORDER BY j.next_attempt_at, j.page_job_id LIMIT :most
    ) due
    ORDER BY due.next_attempt_at, due.topic_key LIMIT :most"""  # noqa: S608 - as above
)


def queue(connection: Connection, site: str) -> Queue:
    """What is due of a site and waits for a worker."""
    due: int = connection.execute(_COUNT, {"site": site, "most": COUNTED_TO}).scalar_one()
    rows = connection.execute(_OLDEST, {"site": site, "most": SHOWN})
    return Queue(
        due=due,
        oldest=tuple(
            DuePage(
                topic_key=row.topic_key,
                state=PageJobState(row.state),
                due_since=row.next_attempt_at,
                waits_s=row.waits_s,
            )
            for row in rows
        ),
    )


def uncertain_pages(connection: Connection, site: str) -> list[UncertainPages]:
    """The page jobs that are being asked about: for generation and for publishing, if any."""
    return [
        UncertainPages(
            state=PageJobState(row.state),
            pages=row.pages,
            oldest_topic=row.oldest_topic,
            oldest_s=row.oldest_s,
            usd=row.usd,
        )
        for row in connection.execute(_UNCERTAIN, {"site": site})
    ]


_UNCERTAIN = text(
    f"""
    SELECT j.state, count(*) AS pages,
           (array_agg(j.topic_key ORDER BY call.started_at))[1] AS oldest_topic,
           extract(epoch FROM now() - min(call.started_at))::float AS oldest_s,
           coalesce(sum(call.usd), 0) AS usd
    FROM {SCHEMA}.page_jobs j
    CROSS JOIN LATERAL (
        SELECT a.started_at,
               coalesce(s.reserved_usd, 0) AS usd
        FROM {SCHEMA}.attempts a
        LEFT JOIN {SCHEMA}.spend s ON s.attempt_id = a.attempt_id AND s.settled_usd IS NULL
        WHERE a.page_job_id = j.page_job_id
          AND a.kind = CASE j.state WHEN 'publish_uncertain' THEN 'publish' ELSE 'generate' END
        ORDER BY a.number DESC LIMIT 1
    ) call
    WHERE j.site = :site AND j.state IN ('generation_uncertain', 'publish_uncertain')
    GROUP BY j.state
    ORDER BY j.state
    """  # noqa: S608 - only our own constants are put in
)


def possible_double_spend(connection: Connection, site: str) -> PossibleDoubleSpend:
    """What may have been paid for nothing; the part that is still asked about is in it."""
    row = connection.execute(_DOUBLE_SPEND, {"site": site}).one()
    return PossibleDoubleSpend(calls=row.calls, usd=row.usd, oldest_at=row.oldest_at)


_DOUBLE_SPEND = text(
    f"""
    SELECT count(*) AS calls, coalesce(sum(reserved_usd), 0) AS usd, min(created_at) AS oldest_at
    FROM {SCHEMA}.spend WHERE site = :site AND state = 'uncertain'
    """  # noqa: S608 - only our own constants are put in
)


def failed_now(connection: Connection, site: str) -> list[FailedNow]:
    """The pages that need a person, by cause, the largest group first.

    Of more than ``LOOKED_AT`` only the newest are looked at.
    """
    counts: dict[Cause, int] = {}
    newest: dict[Cause, datetime] = {}
    for row in connection.execute(_FAILED_NOW, {"site": site, "most": LOOKED_AT}):
        cause = cause_of(FailureClass(row.failure_class), row.failure_message)
        counts[cause] = counts.get(cause, 0) + row.pages
        newest[cause] = max(newest.get(cause, row.newest_at), row.newest_at)
    found = [
        FailedNow(cause=cause, pages=counts[cause], newest_at=newest[cause]) for cause in counts
    ]
    return sorted(found, key=lambda group: (-group.pages, group.cause.fingerprint))


_FAILED_NOW = text(
    f"""
    SELECT failure_class, failure_message, count(*) AS pages, max(finished_at) AS newest_at
    FROM (SELECT j.failure_class, j.failure_message, j.finished_at
          FROM {SCHEMA}.page_jobs j
          JOIN {SCHEMA}.topics t ON t.site = j.site AND t.topic_key = j.topic_key
           AND t.current_job_id = j.page_job_id
          WHERE j.site = :site AND j.state IN ('failed_terminal', 'dead_lettered')
          ORDER BY j.finished_at DESC LIMIT :most) newest
    GROUP BY failure_class, failure_message
    """  # noqa: S608 - only our own constants are put in
)


def conflicts(connection: Connection, site: str) -> list[Conflicts]:
    """Pages that stand differently on the site than we left them, by kind."""
    return [
        Conflicts(change=SiteChange(row.site_change), pages=row.pages, oldest_at=row.oldest_at)
        for row in connection.execute(_CONFLICTS, {"site": site})
    ]


_CONFLICTS = text(
    f"""
    SELECT site_change, count(*) AS pages, min(site_change_found_at) AS oldest_at
    FROM {SCHEMA}.pages WHERE site = :site AND site_change IS NOT NULL
    GROUP BY site_change ORDER BY site_change
    """  # noqa: S608 - only our own constants are put in
)
