"""Draft revisions: what a model wrote, kept for good, numbered per page and only upwards."""

from sqlalchemy import Connection, insert, select, update

from content_pipeline.core.article import Article
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import draft_revisions, pages


def store(
    connection: Connection, job: PageJob, *, attempt_id: str, article: Article, output_hash: str
) -> int:
    """Keep ``article`` as the page's next revision; its number is returned."""
    revision: int = connection.execute(
        update(pages)
        .where(pages.c.page_id == job.page_id)
        .values(last_revision=pages.c.last_revision + 1)
        .returning(pages.c.last_revision)
    ).scalar_one()
    connection.execute(
        insert(draft_revisions).values(
            page_id=job.page_id,
            revision=revision,
            page_job_id=job.page_job_id,
            attempt_id=attempt_id,
            article=article.model_dump(mode="json"),
            output_hash=output_hash,
        )
    )
    return revision


def load(connection: Connection, job: PageJob) -> Article:
    """The article of the job's revision, which must exist."""
    stored = connection.execute(
        select(draft_revisions.c.article).where(
            draft_revisions.c.page_id == job.page_id, draft_revisions.c.revision == job.revision
        )
    ).scalar_one()
    return Article.model_validate(stored)
