"""Resting: moving jobs that no worker holds because of what is, or shall be, on the site.

What belongs here: ours is wanted back on the site, a page is to be taken off it, a failed revision
gives way to what is there. Nothing is generated. Jobs that a person repairs or a table wants again
are woken by ``jobs.move_resting``.
"""

from sqlalchemy import ColumnElement, Connection, exists, func, insert, update

from content_pipeline.core.states import FINAL, MOVES, WORKABLE, PageJobState
from content_pipeline.ledger.schema import TopicStatus, page_jobs, topics, transitions


def want_back(connection: Connection, page_job_id: str, *, worker: str, cause: str) -> bool:
    """Have the published job's revision looked at, and published again where it is not in place.

    False when the job is not published (any more), not what its topic wants, or another job of the
    page is on its way, which will look at the site as well.
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
        wanted & ~busy,
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
