"""Leases: who may work on a page now.

What belongs here: claiming what is due, keeping it while at work, letting go. A worker that dies
simply stops renewing; its pages are claimed by the next worker after the lease has run out. Time
is the database's alone, so machines need not agree on a clock.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from content_pipeline.core.states import (
    ALL_STAGES,
    WORKABLE,
    PageJobState,
    Stage,
    states_of,
)
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.schema import SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which page jobs are meant."""

    site: str
    topics: tuple[str, ...] | None = None
    """Only these; None means any of the site."""
    stages: frozenset[Stage] = ALL_STAGES
    states: frozenset[PageJobState] | None = None
    """Only jobs in these, of those that the stages are about; they are taken on from there."""

    def parameters(self) -> dict[str, object]:
        """The values that the queries bind."""
        return {
            "site": self.site,
            "topics": None if self.topics is None else list(self.topics),
            "states": sorted(self.meant),
        }

    @property
    def meant(self) -> frozenset[PageJobState]:
        """The states of the jobs that are meant."""
        states = states_of(self.stages)
        return states if self.states is None else states & self.states


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One page job that this worker now holds."""

    page_job_id: str
    topic_key: str
    lease: Lease


class Service(StrEnum):
    """What the next step of a page job calls."""

    CALL = "call"
    """The provider, for a new paid call."""
    ASK = "ask"
    """The provider, about a call whose answer was lost."""
    CMS = "cms"
    NONE = "none"


_SERVICES = {
    PageJobState.QUEUED: Service.CALL,
    PageJobState.RESERVED: Service.CALL,
    PageJobState.GENERATING: Service.ASK,
    PageJobState.GENERATION_UNCERTAIN: Service.ASK,
    PageJobState.GENERATED: Service.NONE,
    PageJobState.VALIDATING: Service.NONE,
    PageJobState.READY_TO_PUBLISH: Service.CMS,
    PageJobState.PUBLISHING: Service.CMS,
    PageJobState.PUBLISH_UNCERTAIN: Service.CMS,
    PageJobState.WITHDRAWING: Service.CMS,
}
"""By state; ``failed_retryable`` calls the provider without a draft, and with one the CMS."""

_CASES = " ".join(
    f"WHEN j.state = '{state}' THEN '{service}'" for state, service in _SERVICES.items()
)
_SERVICE = f"CASE {_CASES} WHEN j.revision IS NULL THEN '{Service.CALL}' ELSE '{Service.CMS}' END"

_WORKABLE = ", ".join(f"'{state}'" for state in sorted(WORKABLE))
# Stands beside the parameter so that the planner may use the partial index of workable jobs.

# Nothing here waits for a lease: a fenced transaction holds its lease and then wants its job, and a
# claim that held the job while it waited for the lease made a deadlock of the two. So leases that
# ran out are locked first, those in use by a fenced transaction are left alone, and jobs follow.
# Two jobs of one page collide on the lease, whose row admits one holder. The time is that of the
# statement, which stands still: no index says what is due by a clock that moves.
_CLAIM = text(
    f"""
    WITH run_out AS (
        SELECT resource FROM {SCHEMA}.leases WHERE expires_at <= clock_timestamp()
        FOR UPDATE SKIP LOCKED
    ), due AS (
        SELECT j.page_job_id, j.topic_key, j.page_id
        FROM {SCHEMA}.page_jobs j
        WHERE j.site = :site AND j.state IN ({_WORKABLE}) AND j.state = ANY(:states)
          AND j.next_attempt_at <= statement_timestamp()
          AND (CAST(:topics AS text[]) IS NULL OR j.topic_key = ANY(CAST(:topics AS text[])))
          AND (j.state <> '{PageJobState.FAILED_RETRYABLE}'
               OR CASE WHEN j.revision IS NULL THEN :retries_calls ELSE :retries_publishes END)
          AND (NOT EXISTS (SELECT FROM {SCHEMA}.leases l WHERE l.resource = 'page:' || j.page_id)
               OR 'page:' || j.page_id IN (SELECT resource FROM run_out))
        ORDER BY j.priority DESC, j.next_attempt_at, j.page_job_id
        LIMIT :most FOR UPDATE OF j SKIP LOCKED
    ), one_per_page AS (
        SELECT DISTINCT ON (page_id) page_job_id, topic_key, page_id FROM due ORDER BY page_id
    ), taken AS (
        INSERT INTO {SCHEMA}.leases AS l (resource, token, worker, expires_at)
        SELECT 'page:' || page_id, nextval('{SCHEMA}.lease_tokens'), :worker,
               clock_timestamp() + make_interval(secs => :lease_s)
        FROM one_per_page
        ON CONFLICT (resource) DO UPDATE
        SET token = excluded.token, worker = excluded.worker, expires_at = excluded.expires_at,
            acquired_at = clock_timestamp()
        WHERE l.expires_at <= clock_timestamp()
        RETURNING resource, token
    )
    SELECT o.page_job_id, o.topic_key, t.resource, t.token
    FROM one_per_page o JOIN taken t ON t.resource = 'page:' || o.page_id
    """  # noqa: S608 - only our own constants are put in
).bindparams(
    bindparam("topics", type_=ARRAY(Text)),
    bindparam("states", type_=ARRAY(Text)),
)


def claim_due(
    connection: Connection,
    selection: Selection,
    *,
    services: Collection[Service] = tuple(Service),
    most: int,
    worker: str,
    lease_s: float,
) -> list[Claim]:
    """Up to ``most`` selected page jobs that are due now, each with its page's lease.

    ``services``: only jobs whose next step calls one of these.
    """
    retries = {
        "retries_calls": Service.CALL in services,
        "retries_publishes": Service.CMS in services,
    }
    # Told by states: the planner knows how many jobs there are of each, and of no expression.
    called = {state for state, service in _SERVICES.items() if service in services}
    if any(retries.values()):
        called.add(PageJobState.FAILED_RETRYABLE)
    taken = {
        "states": sorted(selection.meant & called),
        "most": most,
        "worker": worker,
        "lease_s": lease_s,
    }
    rows = connection.execute(_CLAIM, selection.parameters() | retries | taken)
    return [
        Claim(
            page_job_id=row.page_job_id,
            topic_key=row.topic_key,
            lease=Lease(resource=row.resource, token=row.token, worker=worker),
        )
        for row in rows
    ]


# Many leases are always locked in the order of their tokens: a beat and a release that both meant
# the same ones would otherwise wait for each other.
_RENEW = text(
    f"""
    WITH held AS (
        SELECT resource FROM {SCHEMA}.leases
        WHERE token = ANY(:tokens) ORDER BY token FOR NO KEY UPDATE
    )
    UPDATE {SCHEMA}.leases SET expires_at = clock_timestamp() + make_interval(secs => :lease_s)
    WHERE resource IN (SELECT resource FROM held)
      AND token = ANY(:tokens) AND expires_at > clock_timestamp()
      AND greatest(acquired_at, (
              SELECT max(j.updated_at) FROM {SCHEMA}.page_jobs j
              WHERE j.page_id = substr(leases.resource, 6) AND j.state IN ({_WORKABLE})
          )) > clock_timestamp() - make_interval(secs => :longest_hold_s)
    RETURNING token
    """  # noqa: S608 - only our own constants are put in
)


def renew(
    connection: Connection, held: Iterable[Lease], lease_s: float, *, longest_hold_s: float
) -> frozenset[int]:
    """Keep ``held`` for another ``lease_s`` seconds; the tokens that were kept are returned.

    A page that has made no move for ``longest_hold_s`` seconds is kept no longer: whoever walks it
    hangs, however well its heartbeat does, and another worker should have it.
    """
    values = {
        "tokens": [lease.token for lease in held],
        "lease_s": lease_s,
        "longest_hold_s": longest_hold_s,
    }
    return frozenset(connection.execute(_RENEW, values).scalars())


def release(connection: Connection, *held: Lease) -> None:
    """Let go. Harmless for a lease that has passed to another worker."""
    connection.execute(_RELEASE, {"tokens": [lease.token for lease in held]})


# A token is given out once, so it says whose the lease is.
_RELEASE = text(
    f"""
    WITH held AS (
        SELECT resource, token FROM {SCHEMA}.leases
        WHERE token = ANY(:tokens) ORDER BY token FOR UPDATE
    )
    DELETE FROM {SCHEMA}.leases l USING held h
    WHERE l.resource = h.resource AND l.token = h.token
    """  # noqa: S608 - only our own constants are put in
)


COUNTED_TO = 1_000
"""Unfinished page jobs are counted up to this: counting 10,000 took most of a sensor's tick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """When the unfinished page jobs of a selection can go on."""

    unfinished: int
    """At most ``COUNTED_TO``, which then means that many or more."""
    wait_s: float | None
    """Seconds until the first of them is due or free; 0 when one is now; None without any."""

    @property
    def count(self) -> str:
        """How many are unfinished, for people."""
        return f"{COUNTED_TO:,}+" if self.unfinished >= COUNTED_TO else str(self.unfinished)


_SELECTED = f"""
        j.site = :site AND j.state IN ({_WORKABLE}) AND j.state = ANY(:states)
        AND (CAST(:topics AS text[]) IS NULL OR j.topic_key = ANY(CAST(:topics AS text[])))"""

# Of a whole site, jobs of one state without or with a draft need the same service, so the first of
# them that nobody holds speaks for all: one look into an index, past the few that are held.
_FIRST_OF_SITE = f"""
    SELECT first.state, first.revision, first.at
    FROM unnest(CAST(:states AS text[])) AS s(state)
    CROSS JOIN (VALUES (true), (false)) AS d(undrafted)
    CROSS JOIN LATERAL (
        SELECT j.state, j.revision, j.next_attempt_at AS at
        FROM {SCHEMA}.page_jobs j
        WHERE j.site = :site AND j.state IN ({_WORKABLE}) AND j.state = s.state
          AND (j.revision IS NULL) = d.undrafted
          AND NOT EXISTS (SELECT FROM {SCHEMA}.leases l WHERE l.resource = 'page:' || j.page_id)
        ORDER BY j.next_attempt_at LIMIT 1
    ) first
    UNION ALL
    SELECT j.state, j.revision, greatest(j.next_attempt_at, l.expires_at)
    FROM {SCHEMA}.leases l JOIN {SCHEMA}.page_jobs j ON j.page_id = substr(l.resource, 6)
    WHERE l.resource LIKE 'page:%' AND {_SELECTED}"""  # noqa: S608 - only our own constants
_EACH_OF_TOPICS = f"""
    SELECT j.state, j.revision, greatest(j.next_attempt_at, l.expires_at)
    FROM {SCHEMA}.page_jobs j LEFT JOIN {SCHEMA}.leases l ON l.resource = 'page:' || j.page_id
    WHERE {_SELECTED}"""  # noqa: S608 - as above


def _outlook_of(candidates: str) -> TextClause:
    """``candidates``: jobs, the first to go on among them, and when they are due and free."""
    return text(
        f"""
        WITH candidates(state, revision, at) AS ({candidates})
        SELECT (SELECT count(*) FROM (
                    SELECT FROM {SCHEMA}.page_jobs j WHERE {_SELECTED} LIMIT :counted_to
                ) counted) AS unfinished,
               min(greatest(
                   j.at,
                   CASE WHEN {_SERVICE} IN ('call', 'ask') THEN
                            clock_timestamp() + make_interval(secs => :model_wait_s)
                        WHEN {_SERVICE} = 'cms' THEN
                            clock_timestamp() + make_interval(secs => :cms_wait_s)
                        ELSE j.at END)) AS at,
               clock_timestamp() AS now
        FROM candidates j
        """  # noqa: S608 - only our own constants are put in
    ).bindparams(bindparam("topics", type_=ARRAY(Text)), bindparam("states", type_=ARRAY(Text)))


_OUTLOOK_OF_SITE = _outlook_of(_FIRST_OF_SITE)
_OUTLOOK_OF_TOPICS = _outlook_of(_EACH_OF_TOPICS)


def outlook(
    connection: Connection,
    selection: Selection,
    *,
    model_wait_s: float = 0,
    cms_wait_s: float = 0,
) -> Outlook:
    """When the selection's unfinished jobs can be claimed.

    ``model_wait_s``, ``cms_wait_s``: for how long these services may not be called.
    """
    values = {"model_wait_s": model_wait_s, "cms_wait_s": cms_wait_s, "counted_to": COUNTED_TO}
    statement = _OUTLOOK_OF_SITE if selection.topics is None else _OUTLOOK_OF_TOPICS
    row = connection.execute(statement, selection.parameters() | values).one()
    wait_s = None if row.at is None else max(0.0, (row.at - row.now).total_seconds())
    return Outlook(unfinished=row.unfinished, wait_s=wait_s)
