"""Resting: moving jobs that no worker holds, because a person, a table or the site wants it.

What belongs here: waking what was set aside or is wanted again, having ours put back on the site or
taken off it, and giving way to what is there. Moves that a worker makes are ``jobs``'s.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, exists, func, insert, select, update

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import FINAL, MOVES, WORKABLE, PageJobState
from content_pipeline.ledger import deadlines, revisions, spend
from content_pipeline.ledger.jobs import ROLLED_BACK
from content_pipeline.ledger.schema import TopicStatus, page_jobs, topics, transitions

WANTED_AGAIN = (PageJobState.SUPERSEDED, PageJobState.WITHDRAWN)
"""What rests in one of these is taken up when its topic wants it (again)."""

_LOST_CALL = Failure(
    failure_class=FailureClass.UNCERTAIN,
    message="an earlier paid call may have completed; the provider is asked before another is paid",
)


def move_resting(
    connection: Connection,
    page_job_id: str,
    *,
    sources: Sequence[PageJobState],
    worker: str,
    cause: str | None = None,
    next_epoch: bool = False,
) -> PageJobState | None:
    """Wake a job that rests in one of ``sources``: at its draft when it has one, else queued.

    A job whose newest paid call was lost is woken where that call is asked about, before another
    one is paid. For jobs that no worker can hold (final states). ``cause``: what a person gave.
    ``next_epoch`` gives it fresh tries. A job whose draft is not the newest revision of its page
    gets a new revision with the same content: revisions only ever grow. Returns the new state, or
    None when the job is in none of ``sources`` (any more).
    """
    row = connection.execute(
        select(page_jobs)
        .where(page_jobs.c.page_job_id == page_job_id, page_jobs.c.state.in_(sources))
        .where(page_jobs.c.page_id.is_not(None))
        .with_for_update()
    ).one_or_none()
    if row is None:
        return None
    source, to, revision = PageJobState(row.state), PageJobState.QUEUED, None
    failure: Failure | None = None
    if _came_from(connection, page_job_id, row.sequence) is PageJobState.WITHDRAWING and (
        (source, PageJobState.WITHDRAWING) in MOVES
    ):
        to, revision = PageJobState.WITHDRAWING, row.revision
    elif row.revision is not None:
        to = PageJobState.GENERATED
        revision = revisions.renew(connection, row.page_id, row.revision)
    elif spend.has_lost_call(connection, page_job_id):
        to, failure = PageJobState.GENERATION_UNCERTAIN, _LOST_CALL
    connection.execute(
        update(page_jobs)
        .where(page_jobs.c.page_job_id == page_job_id)
        .values(
            state=to,
            sequence=row.sequence + 1,
            epoch=row.epoch + int(next_epoch),
            revision=revision,
            failure_class=failure.failure_class if failure else None,
            failure_message=failure.message if failure else None,
            cancel_requested_at=None,
            cancel_requested_by=None,
            cancel_reason=None,
            finished_at=None,
            next_attempt_at=func.clock_timestamp(),
            deadline_at=deadlines.from_now(page_jobs.c.site),
            updated_at=func.clock_timestamp(),
        )
    )
    connection.execute(
        insert(transitions).values(
            page_job_id=page_job_id,
            sequence=row.sequence + 1,
            from_state=source,
            to_state=to,
            why=cause or MOVES[source, to],
            worker=worker,
        )
    )
    return to


def _came_from(connection: Connection, page_job_id: str, sequence: int) -> PageJobState | None:
    """The state that the job's move number ``sequence`` left."""
    state: str | None = connection.execute(
        select(transitions.c.from_state).where(
            transitions.c.page_job_id == page_job_id, transitions.c.sequence == sequence
        )
    ).scalar_one()
    return None if state is None else PageJobState(state)


def take_up_wanted(
    connection: Connection, page_job_ids: Collection[str], *, worker: str
) -> list[str]:
    """Wake those of the superseded or withdrawn jobs that their topics want now; their ids."""
    if not page_job_ids:
        return []
    wanted = connection.execute(
        select(topics.c.current_job_id)
        .where(topics.c.current_job_id.in_(page_job_ids), topics.c.status == TopicStatus.ACTIVE)
        .order_by(topics.c.current_job_id)
    ).scalars()
    return [
        page_job_id
        for page_job_id in list(wanted)
        if move_resting(connection, page_job_id, sources=WANTED_AGAIN, worker=worker)
    ]


def want_back(connection: Connection, page_job_id: str, *, worker: str, cause: str) -> bool:
    """Have the published job's revision looked at, and published again where it is not in place.

    False when the job is not published (any more), not what its topic wants, made by a version that
    was rolled back, or another job of the page is on its way, which will look at the site as well.
    """
    other = page_jobs.alias("other")
    wanted = (
        exists()
        .where(topics.c.current_job_id == page_jobs.c.page_job_id)
        .where(topics.c.site == page_jobs.c.site, topics.c.status == TopicStatus.ACTIVE)
    )
    busy = exists().where(other.c.page_id == page_jobs.c.page_id, other.c.state.in_(WORKABLE))
    return _set_in_motion(
        connection,
        page_job_id,
        PageJobState.PUBLISHED,
        PageJobState.READY_TO_PUBLISH,
        worker,
        cause,
        wanted & ~busy & ~ROLLED_BACK,
    )


def take_off(connection: Connection, page_job_id: str, *, worker: str) -> bool:
    """Have the published job's page taken off the site; False when it is not published."""
    why = MOVES[PageJobState.PUBLISHED, PageJobState.WITHDRAWING]
    return _set_in_motion(
        connection, page_job_id, PageJobState.PUBLISHED, PageJobState.WITHDRAWING, worker, why
    )


def set_down(connection: Connection, page_job_id: str, *, worker: str, cause: str) -> bool:
    """A failed job is not published: a person keeps what is on the site."""
    return _set_in_motion(
        connection,
        page_job_id,
        PageJobState.FAILED_TERMINAL,
        PageJobState.SUPERSEDED,
        worker,
        cause,
    )


def _set_in_motion(
    connection: Connection,
    page_job_id: str,
    source: PageJobState,
    to: PageJobState,
    worker: str,
    why: str,
    *conditions: ColumnElement[bool],
) -> bool:
    sequence = connection.execute(
        update(page_jobs)
        .where(page_jobs.c.page_job_id == page_job_id)
        .where(page_jobs.c.state == source, *conditions)
        .values(
            state=to,
            sequence=page_jobs.c.sequence + 1,
            epoch=page_jobs.c.epoch + 1,
            finished_at=func.clock_timestamp() if to in FINAL else None,
            failure_class=None,
            failure_message=None,
            next_attempt_at=func.clock_timestamp(),
            updated_at=func.clock_timestamp(),
        )
        .returning(page_jobs.c.sequence)
    ).scalar_one_or_none()
    if sequence is None:
        return False
    deadlines.renew(connection, [page_job_id])
    connection.execute(
        insert(transitions).values(
            page_job_id=page_job_id,
            sequence=sequence,
            from_state=source,
            to_state=to,
            why=why,
            worker=worker,
        )
    )
    return True
