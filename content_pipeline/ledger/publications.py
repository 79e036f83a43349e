"""Publications: what each page is proved to show, and the list of a site's public pages.

What belongs here: writing down a proved publish, in one transaction with everything that follows
from it, and reading the proved pages. Nothing is announced that does not stand here.
"""

from sqlalchemy import Connection, case, func, insert, select, update

from content_pipeline.core.ports import Document, ListedPage, RemotePage, SiteListing
from content_pipeline.core.site import SiteSettings
from content_pipeline.core.states import MOVES, PageJobState
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import page_jobs, pages, transitions


def record_proved(
    connection: Connection, job: PageJob, document: Document, remote: RemotePage
) -> None:
    """The CMS was read back and shows ``document``: that is now the page's baseline."""
    changed = pages.c.published_content_hash.is_distinct_from(document.marker.content_hash)
    connection.execute(
        update(pages)
        .where(pages.c.page_id == job.page_id)
        .values(
            published_revision=document.marker.revision,
            published_content_hash=document.marker.content_hash,
            published_title=document.title,
            published_meta_description=document.meta_description,
            remote_id=remote.remote_id,
            remote_url=remote.url,
            remote_fingerprint=remote.fingerprint,
            content_changed_at=case(
                (changed, func.clock_timestamp()), else_=pages.c.content_changed_at
            ),
            verified_at=func.clock_timestamp(),
        )
    )


def supersede_older(connection: Connection, job: PageJob, worker: str) -> None:
    """The page's earlier published job gives way, before ``job`` becomes the published one."""
    source, to = PageJobState.PUBLISHED, PageJobState.SUPERSEDED
    moved = connection.execute(
        update(page_jobs)
        .where(page_jobs.c.page_id == job.page_id, page_jobs.c.state == source)
        .where(page_jobs.c.page_job_id != job.page_job_id)
        .values(
            state=to,
            sequence=page_jobs.c.sequence + 1,
            updated_at=func.clock_timestamp(),
            finished_at=func.clock_timestamp(),
        )
        .returning(page_jobs.c.page_job_id, page_jobs.c.sequence)
    ).all()
    for row in moved:
        connection.execute(
            insert(transitions).values(
                page_job_id=row.page_job_id,
                sequence=row.sequence,
                from_state=source,
                to_state=to,
                why=MOVES[source, to],
                worker=worker,
            )
        )


def listing(connection: Connection, site: SiteSettings) -> SiteListing:
    """All proved public pages of ``site``, by path."""
    rows = connection.execute(
        select(pages)
        .where(pages.c.site == site.site, pages.c.published_revision.is_not(None))
        .order_by(pages.c.path)
    )
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
    )
