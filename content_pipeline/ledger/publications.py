"""Publications: what each page is proved to show, and the list of a site's public pages.

What belongs here: writing down a proved publish, in one transaction with everything that follows
from it, and reading the proved pages. Nothing is announced that does not stand here.
"""

from sqlalchemy import (
    Connection,
    Text,
    and_,
    bindparam,
    case,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from content_pipeline.core.cms import Document, RemotePage
from content_pipeline.core.ports import ListedPage, SiteListing
from content_pipeline.core.publishing import OFF_THE_SITE
from content_pipeline.core.site import SiteSettings
from content_pipeline.core.states import MOVES, PageJobState
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import page_jobs, pages, transitions


def record_proved(
    connection: Connection, job: PageJob, document: Document, remote: RemotePage
) -> None:
    """The CMS was read back and shows ``document``: that is now the page's baseline."""
    connection.execute(
        _PROVED,
        {
            "proved": job.page_id,
            "proved_hash": document.marker.content_hash,
            "published_revision": document.marker.revision,
            "published_title": document.title,
            "published_meta_description": document.meta_description,
            "remote_id": remote.remote_id,
            "remote_url": remote.url,
            "remote_fingerprint": remote.fingerprint,
            "remote_version": remote.version,
        },
    )


_PROVED_HASH = bindparam("proved_hash", type_=Text)
_PROVED = (
    update(pages)
    .where(pages.c.page_id == bindparam("proved"))
    .values(
        published_content_hash=_PROVED_HASH,
        content_changed_at=case(
            (
                pages.c.published_content_hash.is_distinct_from(_PROVED_HASH),
                func.clock_timestamp(),
            ),
            else_=pages.c.content_changed_at,
        ),
        verified_at=func.clock_timestamp(),
        first_public_at=func.coalesce(pages.c.first_public_at, func.clock_timestamp()),
        site_change=None,
        site_change_reason=None,
        site_change_standing=None,
        site_change_version=None,
        site_change_found_at=None,
        kept_standing=None,
        may_overwrite=None,
        withdrawn_at=None,
    )
)


def record_withdrawn(connection: Connection, page_id: str) -> None:
    """The CMS was read back and visitors see the page no more: nothing of it is announced."""
    connection.execute(
        update(pages)
        .where(pages.c.page_id == page_id)
        .values(
            published_revision=None,
            published_content_hash=None,
            remote_fingerprint=None,
            remote_version=None,
            site_change=None,
            site_change_reason=None,
            site_change_standing=None,
            site_change_version=None,
            site_change_found_at=None,
            may_overwrite=None,
            withdrawn_at=func.clock_timestamp(),
        )
    )


def supersede_older(connection: Connection, job: PageJob, worker: str) -> list[str]:
    """The page's earlier published job gives way, before ``job`` becomes the published one; its id.

    Empty when there was none.
    """
    moved = connection.execute(
        _SUPERSEDE, {"of_page": job.page_id, "newer_job": job.page_job_id}
    ).all()
    for row in moved:
        connection.execute(
            insert(transitions).values(
                page_job_id=row.page_job_id,
                sequence=row.sequence,
                from_state=PageJobState.PUBLISHED,
                to_state=PageJobState.SUPERSEDED,
                why=MOVES[PageJobState.PUBLISHED, PageJobState.SUPERSEDED],
                worker=worker,
            )
        )
    return [row.page_job_id for row in moved]


# The state stands in the text: behind a parameter it was planned anew for each page, because only a
# constant lets the planner use the index of what is published.
_SUPERSEDE = (
    update(page_jobs)
    .where(page_jobs.c.page_id == bindparam("of_page"))
    .where(page_jobs.c.state == literal_column(f"'{PageJobState.PUBLISHED}'", Text))
    .where(page_jobs.c.page_job_id != bindparam("newer_job"))
    .values(
        state=PageJobState.SUPERSEDED,
        sequence=page_jobs.c.sequence + 1,
        updated_at=func.clock_timestamp(),
        finished_at=func.clock_timestamp(),
    )
    .returning(page_jobs.c.page_job_id, page_jobs.c.sequence)
)


ON_THE_SITE = and_(
    pages.c.published_revision.is_not(None),
    or_(pages.c.site_change.is_(None), pages.c.site_change.not_in(sorted(OFF_THE_SITE))),
)
"""The page was proved, and nobody was seen to take it off the site."""


def count(connection: Connection, site: str) -> int:
    """How many pages of ``site`` a listing of it has."""
    found: int = connection.execute(_COUNT, {"of_site": site}).scalar_one()
    return found


_COUNT = (
    select(func.count())
    .select_from(pages)
    .where(pages.c.site == bindparam("of_site", type_=Text), ON_THE_SITE)
)


def listing(connection: Connection, site: SiteSettings) -> SiteListing:
    """All proved public pages of ``site`` that nobody was seen to take off it, by path."""
    rows = connection.execute(
        select(pages).where(pages.c.site == site.site, ON_THE_SITE).order_by(pages.c.path)
    )
    withdrawn = connection.execute(
        select(pages.c.path)
        .where(pages.c.site == site.site, pages.c.published_revision.is_(None))
        .where(pages.c.withdrawn_at.is_not(None))
        .order_by(pages.c.path)
    ).scalars()
    return SiteListing(
        site=site.site,
        site_title=site.title,
        base_url=site.base_url,
        language=site.language,
        pages=tuple(
            ListedPage(
                path=row.path,
                url=site.url_of(row.path),
                title=row.published_title,
                meta_description=row.published_meta_description,
                modified_at=row.content_changed_at,
            )
            for row in rows
        ),
        withdrawn=tuple(withdrawn),
    )
