"""Draft revisions: what a model wrote, kept for good, numbered per page and only upwards."""

from sqlalchemy import Connection, Text, bindparam, insert, select, update

from content_pipeline.core.article import Article
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import draft_revisions, pages


def store(
    connection: Connection, job: PageJob, *, attempt_id: str, article: Article, output_hash: str
) -> int:
    """Keep ``article`` as the page's next revision; its number is returned."""
    revision: int = connection.execute(
        _STORE,
        {
            "of_page": job.page_id,
            "by_job": job.page_job_id,
            "by_attempt": attempt_id,
            "stored_article": article.model_dump(mode="json"),
            "stored_hash": output_hash,
        },
    ).scalar_one()
    return revision


_NEXT = (
    update(pages)
    .where(pages.c.page_id == bindparam("of_page"))
    .values(last_revision=pages.c.last_revision + 1)
    .returning(pages.c.page_id, pages.c.last_revision)
    .cte("next")
)
_STORE = (
    insert(draft_revisions)
    .from_select(
        ["page_id", "revision", "page_job_id", "attempt_id", "article", "output_hash"],
        select(
            _NEXT.c.page_id,
            _NEXT.c.last_revision,
            bindparam("by_job", type_=Text),
            bindparam("by_attempt", type_=Text),
            bindparam("stored_article", type_=draft_revisions.c.article.type),
            bindparam("stored_hash", type_=Text),
        ),
    )
    .returning(draft_revisions.c.revision)
)


def load(connection: Connection, job: PageJob) -> Article:
    """The article of the job's revision, which must exist."""
    stored = connection.execute(
        _LOAD, {"of_page": job.page_id, "of_revision": job.revision}
    ).scalar_one()
    return Article.model_validate(stored)


_LOAD = select(draft_revisions.c.article).where(
    draft_revisions.c.page_id == bindparam("of_page"),
    draft_revisions.c.revision == bindparam("of_revision"),
)
