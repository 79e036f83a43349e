"""Retirement: topics that are no longer in the table.

What belongs here: marking them, and having their pages taken off the site where the site wants
that. A topic that comes back is taken in like any other.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, any_, exists, func, select, update

from content_pipeline.core.errors import TopicTableError
from content_pipeline.core.site import TopicSource, WhenGone
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import resting
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.known_topics import texts
from content_pipeline.ledger.schema import TopicStatus, page_jobs, topics

FEW = 10
"""So many pages may always go at once, however small the site."""


def retire_absent(
    connection: Connection,
    site: str,
    source: TopicSource,
    present: Sequence[str],
    *,
    of: int,
    worker: str,
) -> tuple[str, ...]:
    """Retire all topics but ``present``; the keys of those that were not retired before.

    ``of``: how many there were before the intake. Raises TopicTableError when so many pages would
    go that the table is more likely cut short. The caller holds the site's intake lock.
    """
    gone = _not_among(connection, site, present)
    if not gone:
        return ()
    takes_off = source.when_gone is not WhenGone.KEEP
    few = FEW if present else 0  # an empty table was most likely not read or not written
    if takes_off and len(gone) > max(few, source.most_gone_share * of):
        raise TopicTableError(
            f"{len(gone):,} of {of:,} topics are no longer in the table, and their pages "
            "would be taken off the site; nothing was changed. If the table is complete, raise "
            f"topics.most_gone_share (now {source.most_gone_share:g}) for one run"
        )
    connection.execute(
        update(topics)
        .where(topics.c.site == site, topics.c.topic_key == any_(texts(gone)))
        .values(status=TopicStatus.RETIRED, message=None, updated_at=func.now())
    )
    if takes_off:
        # Locked, so that a publish which is proved in this moment is either seen here or sees the
        # topic retired itself: see ``is_to_go``.
        live = connection.execute(
            select(page_jobs.c.page_job_id)
            .where(page_jobs.c.site == site, page_jobs.c.topic_key == any_(texts(gone)))
            .where(page_jobs.c.state.in_(_ON_THE_SITE))
            .order_by(page_jobs.c.page_job_id)
            .with_for_update()
        ).scalars()
        for page_job_id in list(live):
            resting.take_off(connection, page_job_id, worker=worker)
    return tuple(gone)


def _not_among(connection: Connection, site: str, present: Sequence[str]) -> list[str]:
    """The topics that are not retired and not ``present``, by key.

    By the database: of 1,000,000 topics only those come here that are gone.
    """
    still = func.unnest(texts(present)).table_valued("key", name="still").render_derived()
    query = (
        select(topics.c.topic_key)
        .where(topics.c.site == site, topics.c.status != TopicStatus.RETIRED)
        .where(~exists().where(still.c.key == topics.c.topic_key))
        .order_by(topics.c.topic_key)
    )
    return list(connection.execute(query).scalars())


_ON_THE_SITE = (PageJobState.PUBLISHING, PageJobState.PUBLISH_UNCERTAIN, PageJobState.PUBLISHED)


def is_to_go(connection: Connection, job: PageJob, source: TopicSource) -> bool:
    """Whether a page that was just proved belongs to a topic that was retired meanwhile."""
    if source.when_gone is WhenGone.KEEP:
        return False
    status: str = connection.execute(
        select(topics.c.status).where(
            topics.c.site == job.site, topics.c.topic_key == job.topic_key
        )
    ).scalar_one()
    return status == TopicStatus.RETIRED


def count(connection: Connection, site: str) -> int:
    """How many topics of ``site`` are no longer in the table."""
    return _count(connection, topics.c.site == site, topics.c.status == TopicStatus.RETIRED)


def count_others(connection: Connection, site: str) -> int:
    """How many topics of ``site`` were in the table when it was last taken in."""
    return _count(connection, topics.c.site == site, topics.c.status != TopicStatus.RETIRED)


def _count(connection: Connection, *which: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(topics).where(*which)
    found: int = connection.execute(query).scalar_one()
    return found
