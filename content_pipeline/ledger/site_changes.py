"""Site changes: what people, or a restored backup, did to pages that we had published.

What belongs here: the change that stands on record for a page, what was decided about it, and the
append-only log of both. What counts as a change, and what may be done, is ``core.publishing``'s.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, exists, func, insert, or_, select, text, update

from content_pipeline.core.cms import RemotePage
from content_pipeline.core.publishing import SiteChange, standing_of
from content_pipeline.core.states import WORKABLE, PageJobState
from content_pipeline.ledger.schema import (
    SiteEventKind,
    page_jobs,
    pages,
    site_events,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPage:
    """A page whose change on the site waits for a person."""

    page_id: str
    path: str
    topic_key: str
    change: SiteChange
    reason: str
    found_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPage:
    """A page that we published, as far as a look at the site needs it."""

    page_id: str
    path: str
    topic_key: str
    page_job_id: str | None
    """Its published job; None while a job of the page is on its way."""
    remote_id: str
    remote_version: str | None
    published_revision: int
    remote_fingerprint: str
    change_standing: str | None
    change_version: str | None
    kept_standing: str | None

    @property
    def settled_version(self) -> str | None:
        """The version of the page on the site about which everything is on record."""
        return self.remote_version if self.change_standing is None else self.change_version


def record(
    connection: Connection,
    page_id: str,
    change: SiteChange,
    reason: str,
    *,
    page: RemotePage | None,
    by: str,
) -> bool:
    """Put on record that the page was found changed; False when that very change is known.

    ``page``: as it was found; None when it is gone.
    """
    standing = standing_of(page)
    changed = connection.execute(
        update(pages)
        .where(pages.c.page_id == page_id)
        .where(pages.c.site_change_standing.is_distinct_from(standing))
        .values(
            site_change=change,
            site_change_reason=reason,
            site_change_standing=standing,
            site_change_version=page.version if page else None,
            site_change_found_at=func.clock_timestamp(),
        )
        .returning(pages.c.site)
    ).one_or_none()
    if changed is None:
        return False
    log(connection, changed.site, page_id, SiteEventKind.CHANGE_FOUND, reason, by=by)
    return True


_NO_CHANGE: dict[str, Any] = dict.fromkeys(
    (
        "site_change",
        "site_change_reason",
        "site_change_standing",
        "site_change_version",
        "site_change_found_at",
    )
)


def clear(connection: Connection, page_id: str, *, by: str, why: str) -> bool:
    """The page is as we left it (again); False when no change was on record."""
    cleared = connection.execute(
        update(pages)
        .where(pages.c.page_id == page_id, pages.c.site_change.is_not(None))
        .values(**_NO_CHANGE)
        .returning(pages.c.site)
    ).one_or_none()
    if cleared is not None:
        log(connection, cleared.site, page_id, SiteEventKind.CHANGE_GONE, why, by=by)
    return cleared is not None


def note_version(connection: Connection, page_id: str, version: str | None) -> None:
    """The page is as we left it under another version: whatever changed is nothing of ours."""
    connection.execute(
        update(pages)
        .where(pages.c.page_id == page_id, pages.c.remote_version.is_distinct_from(version))
        .values(remote_version=version)
    )


def keep_theirs(
    connection: Connection, page_id: str, *, page: RemotePage | None, by: str, why: str
) -> None:
    """The page stays as it stands on the site, and nobody is asked again until it changes."""
    site = connection.execute(
        update(pages)
        .where(pages.c.page_id == page_id)
        .values(
            **_NO_CHANGE,
            kept_standing=standing_of(page),
            may_overwrite=None,
            remote_version=page.version if page else None,
        )
        .returning(pages.c.site)
    ).scalar_one()
    log(connection, site, page_id, SiteEventKind.THEIRS_KEPT, why, by=by)


def allow_ours(
    connection: Connection, page_id: str, *, page: RemotePage | None, by: str, why: str
) -> None:
    """Ours may be written over exactly what stands on the site now."""
    site = connection.execute(
        update(pages)
        .where(pages.c.page_id == page_id)
        .values(kept_standing=None, may_overwrite=standing_of(page))
        .returning(pages.c.site)
    ).scalar_one()
    log(connection, site, page_id, SiteEventKind.OURS_WANTED, why, by=by)


def log(
    connection: Connection, site: str, page_id: str, kind: SiteEventKind, detail: str, *, by: str
) -> None:
    """Append to the log of what was found and done on the site."""
    connection.execute(
        insert(site_events).values(site=site, page_id=page_id, kind=kind, detail=detail, by=by)
    )


_WAITS = (
    pages.c.site_change.is_not(None)
    # A job on its way looks at the site itself: it puts ours back, or fails with a conflict.
    & ~exists().where(page_jobs.c.page_id == pages.c.page_id, page_jobs.c.state.in_(WORKABLE))
)


def waiting(connection: Connection, site: str) -> list[ChangedPage]:
    """Pages of ``site`` whose change waits for a person, by path."""
    rows = connection.execute(
        select(pages).where(pages.c.site == site, _WAITS).order_by(pages.c.path)
    )
    return [
        ChangedPage(
            page_id=row.page_id,
            path=row.path,
            topic_key=row.topic_key,
            change=SiteChange(row.site_change),
            reason=row.site_change_reason,
            found_at=row.site_change_found_at,
        )
        for row in rows
    ]


def waiting_by_kind(connection: Connection, site: str) -> dict[SiteChange, int]:
    """How many pages of ``site`` wait for a person, by what was done to them."""
    rows = connection.execute(
        select(pages.c.site_change, func.count())
        .where(pages.c.site == site, _WAITS)
        .group_by(pages.c.site_change)
        .order_by(pages.c.site_change)
    )
    return {SiteChange(change): count for change, count in rows}


def _known(site: str) -> Select[Any]:
    """Published pages with their published job; none while a job of theirs is on its way."""
    # A subquery leaves the planner no choice. While it did not know yet of published jobs, it
    # joined by reading all of them for each page: 45 ms of CPU a slice on a site of 10,000.
    published = (
        select(page_jobs.c.page_job_id)
        .where(page_jobs.c.page_id == pages.c.page_id, _IS_PUBLISHED)
        .scalar_subquery()
    )
    return select(pages, published.label("page_job_id")).where(
        pages.c.site == site, pages.c.published_revision.is_not(None)
    )


_IS_PUBLISHED = text(f"page_jobs.state = '{PageJobState.PUBLISHED}'")
"""No parameter: the partial index of published jobs may then be used in every plan."""


def known_by_remote_id(
    connection: Connection, site: str, remote_ids: Collection[str]
) -> dict[str, KnownPage]:
    """Remote id → our page, of those that we published."""
    rows = connection.execute(_known(site).where(pages.c.remote_id.in_(remote_ids)))
    return {row.remote_id: _known_page(row) for row in rows}


def known_by_page_id(connection: Connection, site: str, page_id: str) -> KnownPage | None:
    """Our page, if we published it."""
    row = connection.execute(_known(site).where(pages.c.page_id == page_id)).one_or_none()
    return None if row is None else _known_page(row)


def _known_page(row: Any) -> KnownPage:
    return KnownPage(
        page_id=row.page_id,
        path=row.path,
        topic_key=row.topic_key,
        page_job_id=row.page_job_id,
        remote_id=row.remote_id,
        remote_version=row.remote_version,
        published_revision=row.published_revision,
        remote_fingerprint=row.remote_fingerprint,
        change_standing=row.site_change_standing,
        change_version=row.site_change_version,
        kept_standing=row.kept_standing,
    )


def mark_listed(connection: Connection, site: str, remote_ids: Collection[str]) -> None:
    """These pages are still listed by the CMS."""
    connection.execute(
        update(pages)
        .where(pages.c.site == site, pages.c.remote_id.in_(remote_ids))
        .values(listed_at=func.clock_timestamp())
    )


def not_listed_since(
    connection: Connection, site: str, since: datetime, *, most: int
) -> list[KnownPage]:
    """Published pages that the CMS did not list since then and that nobody proved since."""
    before = _known(site).where(
        or_(pages.c.listed_at.is_(None), pages.c.listed_at < since), pages.c.verified_at < since
    )
    # What is known to be missing would otherwise be asked about in every sweep.
    asked = before.where(
        or_(pages.c.site_change.is_(None), pages.c.site_change_standing != str(SiteChange.MISSING)),
        pages.c.kept_standing.is_distinct_from(str(SiteChange.MISSING)),
    )
    rows = connection.execute(asked.order_by(pages.c.path).limit(most))
    return [_known_page(row) for row in rows]


SiteEvent = tuple[datetime, SiteEventKind, str, str]
"""When, what, in words, by whom."""


def history(connection: Connection, page_id: str) -> list[SiteEvent]:
    """What was found and done about the page on the site, oldest first."""
    rows = connection.execute(
        select(site_events).where(site_events.c.page_id == page_id).order_by(site_events.c.event_id)
    )
    return [(row.at, SiteEventKind(row.kind), row.detail, row.by) for row in rows]
