"""Regenerations: page jobs that a person wants made anew although their input is unchanged.

What belongs here: the new page job, whose nonce sets it apart, and which page job an unchanged
input stands for since. The nonce is a count, not a random number: asking twice at once is one wish.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, and_, any_, func, insert, literal, select, update

from content_pipeline.core import identity
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import deadlines
from content_pipeline.ledger.known_topics import texts
from content_pipeline.ledger.schema import (
    TopicStatus,
    draft_revisions,
    page_jobs,
    seconds_from_now,
    topics,
    transitions,
)

DAY_S = 86_400

_COPIED = (
    "site",
    "topic_key",
    "page_id",
    "input_hash",
    "input_columns",
    "generation_version",
    "owner",
    "priority",
)


def begin_anew(connection: Connection, page_job_id: str, *, why: str, requested_by: str) -> str:
    """Want what ``page_job_id`` stands for once more, as a page job of its own; its id.

    The caller holds the site's intake lock and knows that the job rests and has a target.
    """
    old = connection.execute(select(page_jobs).where(page_jobs.c.page_job_id == page_job_id)).one()
    earlier: int = connection.execute(
        select(func.count())
        .select_from(page_jobs)
        .where(page_jobs.c.site == old.site, page_jobs.c.topic_key == old.topic_key)
        .where(page_jobs.c.input_hash == old.input_hash, page_jobs.c.nonce != "")
        .where(page_jobs.c.generation_version == old.generation_version)
    ).scalar_one()
    nonce = f"regeneration {earlier + 1}"
    new_id = identity.page_job_id(
        old.site, old.topic_key, old.input_hash, old.generation_version, nonce
    )
    connection.execute(
        insert(page_jobs).from_select(
            ["page_job_id", "nonce", "state", "requested_by", "deadline_at", *_COPIED],
            select(
                literal(new_id),
                literal(nonce),
                literal(PageJobState.QUEUED.value),
                literal(requested_by),
                deadlines.from_now(page_jobs.c.site),
                *(page_jobs.c[name] for name in _COPIED),
            ).where(page_jobs.c.page_job_id == page_job_id),
        )
    )
    connection.execute(
        insert(transitions).values(
            page_job_id=new_id,
            sequence=1,
            to_state=PageJobState.QUEUED,
            why=why,
            worker=requested_by,
        )
    )
    connection.execute(
        update(topics)
        .where(topics.c.site == old.site, topics.c.topic_key == old.topic_key)
        .values(current_job_id=new_id, updated_at=func.now())
    )
    return new_id


def newest(
    connection: Connection, site: str, generation_version: str, topic_keys: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Topic key and input hash → the last page job that was deliberately made anew for them.

    An intake of that input wants this one, not the one it replaced. Only of ``topic_keys``.
    """
    rows = connection.execute(
        select(page_jobs.c.topic_key, page_jobs.c.input_hash, page_jobs.c.page_job_id)
        .where(page_jobs.c.site == site, page_jobs.c.generation_version == generation_version)
        .where(page_jobs.c.nonce != "", page_jobs.c.topic_key == any_(texts(topic_keys)))
        .order_by(page_jobs.c.created_at)
    )
    return {(row.topic_key, row.input_hash): row.page_job_id for row in rows}


def stale(
    connection: Connection, site: str, generation_version: str, older_than_days: float
) -> list[str]:
    """The page jobs of the version that are live and wanted, and whose draft is that old.

    The oldest first, and no others: what the table or the way of making pages has overtaken is
    made anew anyway.
    """
    query = (
        select(page_jobs.c.page_job_id)
        .join(topics, topics.c.current_job_id == page_jobs.c.page_job_id)
        .join(
            draft_revisions,
            and_(
                draft_revisions.c.page_id == page_jobs.c.page_id,
                draft_revisions.c.revision == page_jobs.c.revision,
            ),
        )
        .where(topics.c.site == site, topics.c.status == TopicStatus.ACTIVE)
        .where(page_jobs.c.state == PageJobState.PUBLISHED)
        .where(page_jobs.c.generation_version == generation_version)
        .where(draft_revisions.c.created_at < seconds_from_now(-older_than_days * DAY_S))
        .order_by(draft_revisions.c.created_at, page_jobs.c.page_job_id)
    )
    return list(connection.execute(query).scalars())
