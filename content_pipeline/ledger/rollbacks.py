"""Rollbacks: ways of making pages that were taken back, and which earlier page jobs take over.

What belongs here: the list of such versions, and finding for each page that shows a revision of one
the last page job before it that was proved on the site.
"""

from typing import Any

from sqlalchemy import Connection, Select, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.resting import move_resting
from content_pipeline.ledger.schema import page_jobs, rollbacks, topics, transitions


def refuse(
    connection: Connection, site: str, generation_version: str, *, cause: str, by: str
) -> None:
    """From now on nothing is made by the version. Raises ConfigurationError for an unknown one."""
    known = connection.execute(
        select(page_jobs.c.page_job_id)
        .where(page_jobs.c.site == site, page_jobs.c.generation_version == generation_version)
        .limit(1)
    ).one_or_none()
    if known is None:
        raise ConfigurationError(
            f"site {site!r} never made a page with generation version {generation_version!r}; "
            "`content-pipeline show` names the version of a page"
        )
    connection.execute(
        upsert(rollbacks)
        .values(site=site, generation_version=generation_version, cause=cause, by=by)
        .on_conflict_do_nothing()
    )


def cause_of_refusal(connection: Connection, site: str, generation_version: str) -> str | None:
    """Why nothing is made by the version, and who said so; None when it may be used."""
    row = connection.execute(
        select(rollbacks.c.cause, rollbacks.c.by).where(
            rollbacks.c.site == site, rollbacks.c.generation_version == generation_version
        )
    ).one_or_none()
    return None if row is None else f"{row.cause} ({row.by})"


def lift(connection: Connection, site: str, generation_version: str) -> bool:
    """The version may be used again; False when it was not rolled back."""
    lifted = connection.execute(
        delete(rollbacks).where(
            rollbacks.c.site == site, rollbacks.c.generation_version == generation_version
        )
    )
    return lifted.rowcount == 1


def _live(site: str, generation_version: str) -> Select[Any]:
    """Topics whose page shows a revision of the version and is to show it."""
    return (
        select(topics.c.topic_key, page_jobs.c.page_id, page_jobs.c.page_job_id)
        .join(page_jobs, page_jobs.c.page_job_id == topics.c.current_job_id)
        .where(topics.c.site == site, page_jobs.c.generation_version == generation_version)
        .where(page_jobs.c.state == PageJobState.PUBLISHED)
    )


def _earlier(site: str, generation_version: str) -> Select[Any]:
    """Of each such topic the page job proved last before, by a version that stands."""
    live, before = _live(site, generation_version).subquery(), page_jobs.alias("before")
    taken_back = select(rollbacks.c.generation_version).where(rollbacks.c.site == site)
    proved_at = (
        select(func.max(transitions.c.at))
        .where(transitions.c.page_job_id == before.c.page_job_id)
        .where(transitions.c.to_state == PageJobState.PUBLISHED)
        .scalar_subquery()
    )
    return (
        select(live.c.topic_key, live.c.page_job_id, before.c.page_job_id.label("earlier_id"))
        .join(before, before.c.page_id == live.c.page_id)
        .where(before.c.state == PageJobState.SUPERSEDED, before.c.revision.is_not(None))
        .where(before.c.generation_version.not_in(taken_back), proved_at.is_not(None))
        .distinct(live.c.topic_key)
        .order_by(live.c.topic_key, proved_at.desc())
    )


def want_earlier(
    connection: Connection,
    site: str,
    generation_version: str,
    *,
    most: int,
    worker: str,
    cause: str,
) -> list[str]:
    """Have up to ``most`` topics want what they showed before; their keys. Empty: none is left.

    The caller holds the site's intake lock.
    """
    found = connection.execute(_earlier(site, generation_version).limit(most)).all()
    for row in found:
        connection.execute(
            update(topics)
            .where(topics.c.site == site, topics.c.topic_key == row.topic_key)
            .values(current_job_id=row.earlier_id, updated_at=func.now())
        )
        move_resting(
            connection,
            row.earlier_id,
            sources=[PageJobState.SUPERSEDED],
            worker=worker,
            cause=f"rolled back to: {cause}",
            next_epoch=True,
        )
    return [row.topic_key for row in found]


def without_earlier(connection: Connection, site: str, generation_version: str) -> list[str]:
    """Topics that show a revision of the version and never showed another, by key."""
    return list(
        connection.execute(
            _live(site, generation_version)
            .with_only_columns(topics.c.topic_key)
            .order_by(topics.c.topic_key)
        ).scalars()
    )
