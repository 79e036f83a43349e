"""Page jobs for tests of the ledger: wanted through the real intake, moved by the real moves.

What belongs here: short ways to a job in a given state. Nothing is written past the ledger's own
functions, so no test begins in a state that cannot come to be.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, select

from content_pipeline.core.article import Article, Section
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.site import SiteSettings
from content_pipeline.core.states import FINAL, PageJobState
from content_pipeline.core.topics import RejectedRow, Topic, parse_row
from content_pipeline.ledger import attempts, drafts, intake, jobs, leases, spend
from content_pipeline.ledger.database import Lease, Ledger
from content_pipeline.ledger.intake import Intake, Part
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import AttemptKind, page_jobs, topics
from content_pipeline.ledger.spend import Caps
from content_pipeline.ledger.wishes import Request
from content_pipeline_tests.operations.small_site import FACTS, settings_of

AMPLE = Caps(page_usd=Decimal(1_000), site_day_usd=Decimal(1_000_000))
"""Caps that nothing in a test reaches."""

FAILED = Failure(failure_class=FailureClass.TRANSIENT, message="it failed")

ARTICLE = Article(
    title="Chur",
    meta_description="The oldest town of the country.",
    introduction="Chur lies in the Rhine valley.",
    sections=[Section(heading="People", body_markdown="About 38,000 people live there.")],
)

S = PageJobState

WAY = (S.QUEUED, S.RESERVED, S.GENERATING, S.GENERATED, S.VALIDATING, S.READY_TO_PUBLISH)
"""The states before anything outward happens; longer ways are put together from it."""

WAYS: Mapping[PageJobState, tuple[PageJobState, ...]] = {
    **{state: WAY[: position + 1] for position, state in enumerate(WAY)},
    S.PUBLISHING: (*WAY, S.PUBLISHING),
    S.PUBLISHED: (*WAY, S.PUBLISHING, S.PUBLISHED),
    S.WITHDRAWING: (*WAY, S.PUBLISHING, S.PUBLISHED, S.WITHDRAWING),
    S.WITHDRAWN: (*WAY, S.PUBLISHING, S.PUBLISHED, S.WITHDRAWING, S.WITHDRAWN),
    S.FAILED_RETRYABLE: (S.QUEUED, S.FAILED_RETRYABLE),
    S.GENERATION_UNCERTAIN: (*WAY[:3], S.GENERATION_UNCERTAIN),
    S.PUBLISH_UNCERTAIN: (*WAY, S.PUBLISHING, S.PUBLISH_UNCERTAIN),
    S.FAILED_TERMINAL: (S.QUEUED, S.FAILED_TERMINAL),
    S.DEAD_LETTERED: (S.QUEUED, S.DEAD_LETTERED),
    S.CANCELLED: (S.QUEUED, S.CANCELLED),
    S.SUPERSEDED: (S.QUEUED, S.SUPERSEDED),
}
"""One way to every state."""

NEEDS_FAILURE = frozenset(
    {
        S.FAILED_RETRYABLE,
        S.FAILED_TERMINAL,
        S.DEAD_LETTERED,
        S.GENERATION_UNCERTAIN,
        S.PUBLISH_UNCERTAIN,
    }
)


def topics_in(site: SiteSettings, rows: Iterable[Mapping[str, str]]) -> list[tuple[int, Topic]]:
    """The topics in ``rows``, all of which must be usable."""
    found = []
    for number, row in enumerate(rows, start=1):
        topic = parse_row(number, row, site=site, columns=frozenset(FACTS))
        assert isinstance(topic, Topic), topic
        found.append((number, topic))
    return found


def take_in(
    ledger: Ledger,
    site: SiteSettings,
    rows: Iterable[Mapping[str, str]],
    *,
    version: str = "v1",
    rejected: Sequence[RejectedRow] = (),
) -> Intake:
    """One intake of ``rows`` in a transaction of its own."""
    request = Request(
        site=site, generation_version=version, model_route="scripted", requested_by="test"
    )
    with ledger.begin() as connection:
        part = Part(topics=topics_in(site, rows), rejected=rejected)
        return intake.take_in(connection, request, [part])


def wanted(ledger: Ledger, name: str, rows: Iterable[Mapping[str, str]]) -> None:
    """Take ``rows`` into a site called ``name`` with the usual settings."""
    take_in(ledger, settings_of(name), rows)


def current_job(ledger: Ledger, site: str, topic: str = "t0") -> RowMapping:
    """The row of the topic's current page job."""
    found = rows_where(ledger, topics, site=site, topic_key=topic)
    (row,) = rows_where(ledger, page_jobs, page_job_id=found[0]["current_job_id"])
    return row


def rows_where(ledger: Ledger, table: Table, **equal: object) -> list[RowMapping]:
    """The rows of ``table`` whose columns hold what is given; those of a log in its order."""
    with ledger.begin() as connection:
        query = select(table).where(*(table.c[name] == value for name, value in equal.items()))
        if "sequence" in table.c:
            query = query.order_by(table.c.sequence)
        return list(connection.execute(query).mappings())


def leased(
    ledger: Ledger,
    site: str,
    topic: str = "t0",
    *,
    worker: str = "worker",
    lease_s: float = 30,
) -> tuple[PageJob, Lease]:
    """The topic's due page job with its lease."""
    selection = Selection(site=site, topics=(topic,))
    with ledger.begin() as connection:
        (claim,) = leases.claim_due(connection, selection, most=1, worker=worker, lease_s=lease_s)
        return jobs.load(connection, claim.page_job_id), claim.lease


def moved(ledger: Ledger, job: PageJob, lease: Lease, *states: PageJobState) -> PageJob:
    """Move ``job`` through ``states``, storing a draft where one must exist."""
    for state in states:
        with ledger.fenced(lease) as connection:
            job = move_once(connection, job, lease, state)
    return job


def move_once(
    connection: Connection, job: PageJob, lease: Lease, to: PageJobState, **more: Any
) -> PageJob:
    """One move with what the state needs: a stored draft, a failure."""
    if to is S.GENERATED and job.revision is None:
        more["revision"] = drafts.store(
            connection, job, attempt_id="attempt", article=ARTICLE, output_hash="hash"
        )
    if to in NEEDS_FAILURE:
        more.setdefault("failure", FAILED)
    return jobs.move(connection, job, to, lease=lease, **more)


def job_in(
    ledger: Ledger, site: str, state: PageJobState, topic: str = "t0"
) -> tuple[PageJob, Lease]:
    """A leased page job of a freshly wanted topic, brought to ``state``."""
    job, lease = leased(ledger, site, topic)
    return moved(ledger, job, lease, *WAYS[state][1:]), lease


def let_go(ledger: Ledger, lease: Lease) -> None:
    with ledger.begin() as connection:
        leases.release(connection, lease)


def reserved(ledger: Ledger, job: PageJob, number: int, usd: str, caps: Caps = AMPLE) -> str:
    """Reserve ``usd`` for the ``number``-th attempt; its id."""
    identifier = attempts.attempt_id(job.page_job_id, AttemptKind.GENERATE, number)
    with ledger.begin() as connection:
        spend.reserve(
            connection,
            attempt_id=identifier,
            page_job_id=job.page_job_id,
            site=job.site,
            worst_case_usd=Decimal(usd),
            caps=caps,
        )
    return identifier


def assert_final_alike(row: RowMapping) -> None:
    """A job is finished exactly when its state is final."""
    assert (row["finished_at"] is not None) == (PageJobState(row["state"]) in FINAL)
