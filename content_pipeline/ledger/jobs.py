"""Page jobs: reading one, and moving it from state to state.

What belongs here: the compare-and-swap that is the only way a state changes, with its row in the
append-only log. Which move to make is decided in ``operations``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Float,
    Integer,
    Row,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    case,
    exists,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from content_pipeline.core.errors import LeaseLost
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.publishing import OFF_THE_SITE, Baseline
from content_pipeline.core.states import FINAL, MOVES, PageJobState
from content_pipeline.ledger import spend
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.schema import (
    AttemptKind,
    TopicStatus,
    attempts,
    page_jobs,
    pages,
    rejected_drafts,
    rollbacks,
    seconds_from_now,
    step_outputs,
    topics,
    transitions,
)
from content_pipeline.ledger.schema.vocabulary import one_of

_BEGINS_AN_EFFECT = frozenset({PageJobState.GENERATING, PageJobState.PUBLISHING})
_MAY_HAVE_STORED = (PageJobState.GENERATING, PageJobState.GENERATION_UNCERTAIN)
_MAY_BE_WRITTEN = (PageJobState.PUBLISHING, PageJobState.PUBLISH_UNCERTAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageJob:
    """One page job as it stands, with what a step needs to know about its page and topic."""

    page_job_id: str
    site: str
    topic_key: str
    page_id: str
    path: str
    state: PageJobState
    sequence: int
    epoch: int
    """Counts repairs: a person's retry starts with fresh tries."""
    input_hash: str
    input_columns: Mapping[str, str] = field(repr=False)
    generation_version: str
    nonce: str
    """Empty but for a deliberate regeneration, which must not reuse an earlier answer."""
    owner: str
    revision: int | None
    """The draft revision it produced or took over; None before generation."""
    failure_class: FailureClass | None
    is_due: bool
    """Whether its wait, if any, was over when it was read."""
    cancel_requested: bool
    is_current: bool
    """Whether its topic is in the table and wants this input, by a version not rolled back."""
    is_asked_again: bool
    """Whether a draft of it broke a rule and another was asked for, with the findings."""
    topic_is_retired: bool
    """Whether its topic is no longer in the table."""
    remote_id: str | None
    baseline: Baseline | None
    may_overwrite: str | None
    """The one standing of the page on the site that a person said to overwrite."""
    published_content_hash: str | None
    is_off_the_site: bool
    """Whether somebody was seen to have taken its page off the site, or moved it."""
    has_outputs: bool
    """Whether any step of its page may have an output."""
    calls: int
    """The number of its newest paid call; 0 before the first. Each begins with a move."""
    publishes: int
    """The number of its newest try to publish, likewise."""


def load(connection: Connection, page_job_id: str) -> PageJob:
    """The page job, which must exist and have a target."""
    return _from_row(connection.execute(_LOAD, {"wanted": [page_job_id]}).one())


def load_all(connection: Connection, page_job_ids: Collection[str]) -> dict[str, PageJob]:
    """Page job id → the page job, of those that exist and have a target."""
    rows = connection.execute(_LOAD, {"wanted": list(page_job_ids)})
    return {row.page_job_id: _from_row(row) for row in rows}


ROLLED_BACK = (
    exists()
    .where(rollbacks.c.site == page_jobs.c.site)
    .where(rollbacks.c.generation_version == page_jobs.c.generation_version)
)
"""Whether nothing is to be made by the page job's generation version."""


def _newest_number(kind: AttemptKind) -> ColumnElement[int]:
    of_job = (attempts.c.page_job_id == page_jobs.c.page_job_id, attempts.c.kind == kind)
    newest = select(func.max(attempts.c.number)).where(*of_job)
    return func.coalesce(newest.scalar_subquery(), 0)


_LOAD = (
    select(
        page_jobs,
        pages.c.path,
        pages.c.remote_id,
        pages.c.published_revision,
        pages.c.remote_fingerprint,
        pages.c.published_content_hash,
        pages.c.may_overwrite,
        pages.c.site_change,
        topics.c.current_job_id,
        topics.c.status.label("topic_status"),
        (page_jobs.c.next_attempt_at <= func.clock_timestamp()).label("is_due"),
        exists()
        .where(rejected_drafts.c.page_job_id == page_jobs.c.page_job_id)
        .where(rejected_drafts.c.is_asked_again)
        .label("is_asked_again"),
        ROLLED_BACK.label("is_rolled_back"),
        exists().where(step_outputs.c.page_id == page_jobs.c.page_id).label("has_outputs"),
        _newest_number(AttemptKind.GENERATE).label("calls"),
        _newest_number(AttemptKind.PUBLISH).label("publishes"),
    )
    .join(pages, pages.c.page_id == page_jobs.c.page_id)
    .join(
        topics,
        and_(topics.c.site == page_jobs.c.site, topics.c.topic_key == page_jobs.c.topic_key),
    )
    .where(page_jobs.c.page_job_id == any_(bindparam("wanted", type_=ARRAY(Text))))
)


def _from_row(row: Row[Any]) -> PageJob:
    shown, fingerprint = row.published_revision, row.remote_fingerprint
    return PageJob(
        page_job_id=row.page_job_id,
        site=row.site,
        topic_key=row.topic_key,
        page_id=row.page_id,
        path=row.path,
        state=PageJobState(row.state),
        sequence=row.sequence,
        epoch=row.epoch,
        input_hash=row.input_hash,
        input_columns=row.input_columns,
        generation_version=row.generation_version,
        nonce=row.nonce,
        owner=row.owner,
        revision=row.revision,
        failure_class=FailureClass(row.failure_class) if row.failure_class else None,
        is_due=row.is_due,
        cancel_requested=row.cancel_requested_at is not None,
        is_current=row.current_job_id == row.page_job_id
        and row.topic_status != TopicStatus.RETIRED
        and not row.is_rolled_back,
        topic_is_retired=row.topic_status == TopicStatus.RETIRED,
        is_asked_again=row.is_asked_again,
        remote_id=row.remote_id,
        baseline=None if shown is None else Baseline(revision=shown, fingerprint=fingerprint),
        may_overwrite=row.may_overwrite,
        published_content_hash=row.published_content_hash,
        is_off_the_site=row.site_change in OFF_THE_SITE,
        has_outputs=row.has_outputs,
        calls=row.calls,
        publishes=row.publishes,
    )


def move(
    connection: Connection,
    job: PageJob,
    to: PageJobState,
    *,
    lease: Lease,
    failure: Failure | None = None,
    wait_s: float = 0,
    revision: int | None = None,
) -> PageJob:
    """Move ``job`` from the state it was read in, in the caller's (fenced) transaction.

    ``failure`` is required for a state of failure and recorded with it; ``wait_s`` puts off the
    next attempt on the database's clock. A move that begins something paid or outward fails once
    a cancellation is on record, the topic wants another job or left the table, or the generation
    version was rolled back. Raises LeaseLost when the job is no longer where it was read or may not
    go on, and ValueError for a move that the table forbids.
    A job that goes back to ``queued`` has no draft any more. A cancellation is logged with its why.
    """
    why = MOVES.get((job.state, to))
    if why is None:
        raise ValueError(f"no move from {job.state} to {to} (page job {job.page_job_id})")
    moved = connection.execute(
        _MOVE_TO_EFFECT if to in _BEGINS_AN_EFFECT else _MOVE,
        {
            "moving": job.page_job_id,
            "source": job.state,
            "read_sequence": job.sequence,
            "target": to,
            "is_final": to in FINAL,
            "new_revision": revision,
            "new_failure_class": failure.failure_class if failure else None,
            "new_failure_message": failure.message if failure else None,
            "wait_s": wait_s,
            "why_moved": why,
            "mover": lease.worker,
            "held_token": lease.token,
        },
    ).one_or_none()
    if moved is None:
        raise LeaseLost(f"page job {job.page_job_id} is no longer {job.state}: somebody moved it")
    if job.state is PageJobState.RESERVED and to is not PageJobState.GENERATING:
        spend.release_unsent(connection, job.page_job_id)
    return replace(
        job,
        state=to,
        sequence=job.sequence + 1,
        revision=None if to is PageJobState.QUEUED else revision or job.revision,
        failure_class=failure.failure_class if failure else None,
        is_due=moved.is_due,
        cancel_requested=moved.cancel_requested,
        has_outputs=job.has_outputs or job.state in _MAY_HAVE_STORED,
        calls=job.calls + (to is PageJobState.GENERATING),
        publishes=job.publishes + (to is PageJobState.PUBLISHING),
        is_asked_again=job.is_asked_again
        or (job.state, to) == (PageJobState.VALIDATING, PageJobState.QUEUED),
    )


_WHO_CANCELLED = (
    "asked for by " + page_jobs.c.cancel_requested_by + ": " + page_jobs.c.cancel_reason
)
"""NULL when nobody is on record."""


def _move_statement(*, begins_an_effect: bool) -> Select[tuple[bool, bool]]:
    """The swap and its row in the log as one statement; no row when the job is elsewhere.

    Built once: a page moves seven times, and building took longer than executing.
    """
    source, target = bindparam("source", type_=Text), bindparam("target", type_=Text)
    swap = (
        update(page_jobs)
        .where(page_jobs.c.page_job_id == bindparam("moving"))
        .where(page_jobs.c.state == source, page_jobs.c.sequence == bindparam("read_sequence"))
        .values(
            state=target,
            sequence=page_jobs.c.sequence + 1,
            revision=case(
                (target == PageJobState.QUEUED, None),
                else_=func.coalesce(bindparam("new_revision", type_=Integer), page_jobs.c.revision),
            ),
            failure_class=bindparam("new_failure_class"),
            failure_message=bindparam("new_failure_message"),
            next_attempt_at=seconds_from_now(bindparam("wait_s", type_=Float)),
            updated_at=func.clock_timestamp(),
            finished_at=case((bindparam("is_final", type_=Boolean), func.clock_timestamp())),
        )
    )
    if begins_an_effect:
        still_wanted = select(topics.c.current_job_id).where(
            topics.c.site == page_jobs.c.site,
            topics.c.topic_key == page_jobs.c.topic_key,
            topics.c.status != TopicStatus.RETIRED,
        )
        swap = swap.where(
            page_jobs.c.cancel_requested_at.is_(None),
            page_jobs.c.page_job_id == still_wanted.scalar_subquery(),
            ~ROLLED_BACK,
        )
    moved = swap.returning(
        page_jobs.c.page_job_id,
        page_jobs.c.sequence,
        (page_jobs.c.next_attempt_at <= func.clock_timestamp()).label("is_due"),
        page_jobs.c.cancel_requested_at.is_not(None).label("cancel_requested"),
        case((target == PageJobState.CANCELLED, _WHO_CANCELLED)).label("who_cancelled"),
    ).cte("moved")
    logged = insert(transitions).from_select(
        ["page_job_id", "sequence", "from_state", "to_state", "why", "worker", "lease_token"],
        select(
            moved.c.page_job_id,
            moved.c.sequence,
            source,
            target,
            func.concat_ws("; ", bindparam("why_moved", type_=Text), moved.c.who_cancelled),
            bindparam("mover", type_=Text),
            bindparam("held_token", type_=transitions.c.lease_token.type),
        ),
    )
    return select(moved.c.is_due, moved.c.cancel_requested).add_cte(logged.cte("logged"))


_MOVE = _move_statement(begins_an_effect=False)
_MOVE_TO_EFFECT = _move_statement(begins_an_effect=True)


def unsettled_publish_s(connection: Connection, job: PageJob) -> float | None:
    """Seconds until the page's other job is looked at whose publish may yet take effect.

    None without one; never less than 0.
    """
    left = func.extract("epoch", func.max(page_jobs.c.next_attempt_at) - func.clock_timestamp())
    found = connection.execute(
        select(left)
        .where(page_jobs.c.page_id == job.page_id, page_jobs.c.page_job_id != job.page_job_id)
        .where(text(one_of("state", _MAY_BE_WRITTEN)))  # no parameters: for the partial index
    ).scalar_one()
    return None if found is None else max(0.0, float(found))


def postpone(
    connection: Connection, job: PageJob, wait_s: float, failure: Failure | None = None
) -> PageJob:
    """Leave ``job`` in its state and look at it again in ``wait_s`` seconds."""
    values: dict[str, Any] = {"next_attempt_at": seconds_from_now(wait_s)}
    if failure is not None:
        values |= {"failure_class": failure.failure_class, "failure_message": failure.message}
    connection.execute(
        update(page_jobs)
        .where(page_jobs.c.page_job_id == job.page_job_id)
        .where(page_jobs.c.sequence == job.sequence)
        .values(values)
    )
    return load(connection, job.page_job_id)
