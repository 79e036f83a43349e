"""Rollbacks: ways of making pages that were taken back, and which earlier page jobs take over.

What belongs here: the list of such versions, and finding for each page that shows a revision of one
the last page job before it that was proved on the site.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Select, delete, func, select, union, update
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.resting import move_resting
from content_pipeline.ledger.schema import (
    TopicStatus,
    page_jobs,
    rollbacks,
    topics,
    transitions,
)


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


def _made_by(site: str, generation_version: str) -> CompoundSelect[Any]:
    """Topics that want a page job of the version, or whose page shows one of it all the same."""
    made, current = page_jobs.alias("made"), page_jobs.alias("current")
    columns = (topics.c.topic_key, made.c.page_id, made.c.state)
    active = (topics.c.site == site) & (topics.c.status == TopicStatus.ACTIVE)
    of_version = made.c.generation_version == generation_version
    wanted = (
        select(*columns)
        .join(made, made.c.page_job_id == topics.c.current_job_id)
        .where(active, of_version)
    )
    # Proved late, after the draft before it was wanted back and found in place.
    shown = (
        select(*columns)
        .join(made, (made.c.site == topics.c.site) & (made.c.topic_key == topics.c.topic_key))
        .join(current, current.c.page_job_id == topics.c.current_job_id)
        .where(active, of_version, made.c.state == PageJobState.PUBLISHED)
        .where(current.c.state == PageJobState.SUPERSEDED)
    )
    return union(wanted, shown)


def _earlier(site: str, generation_version: str) -> Select[Any]:
    """Of each such topic the page job proved last before, by a version that stands."""
    made, before = _made_by(site, generation_version).subquery(), page_jobs.alias("before")
    taken_back = select(rollbacks.c.generation_version).where(rollbacks.c.site == site)
    proved_at = (
        select(func.max(transitions.c.at))
        .where(transitions.c.page_job_id == before.c.page_job_id)
        .where(transitions.c.to_state == PageJobState.PUBLISHED)
        .scalar_subquery()
    )
    return (
        select(made.c.topic_key, before.c.page_job_id.label("earlier_id"))
        .join(before, before.c.page_id == made.c.page_id)
        .where(before.c.state.in_((PageJobState.SUPERSEDED, PageJobState.PUBLISHED)))
        .where(before.c.revision.is_not(None))
        .where(before.c.generation_version.not_in(taken_back), proved_at.is_not(None))
        .ext(distinct_on(made.c.topic_key))
        .order_by(made.c.topic_key, proved_at.desc())
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

    What they show still, because the version had not come so far, is wanted again as it is. The
    caller holds the site's intake lock.
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
    made = _made_by(site, generation_version).subquery()
    return list(
        connection.execute(
            select(made.c.topic_key)
            .where(made.c.state == PageJobState.PUBLISHED)
            .order_by(made.c.topic_key)
        ).scalars()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """A way of making pages that was taken back."""

    generation_version: str
    cause: str
    by: str
    at: datetime


def of_site(connection: Connection, site: str) -> list[RolledBack]:
    """What is rolled back on ``site`` now, oldest first."""
    rows = connection.execute(
        select(rollbacks).where(rollbacks.c.site == site).order_by(rollbacks.c.at)
    )
    return [
        RolledBack(generation_version=row.generation_version, cause=row.cause, by=row.by, at=row.at)
        for row in rows
    ]
