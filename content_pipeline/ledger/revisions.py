"""Revisions: bringing an earlier draft of a page back as its newest one.

What belongs here: the copy under a new number. Revisions only ever grow, so that an older draft can
never replace a newer one on the site, not even when its text is wanted again.
"""

from sqlalchemy import Connection, insert, literal, select, update

from content_pipeline.ledger.schema import draft_revisions, pages


def renew(connection: Connection, page_id: str, revision: int) -> int:
    """The number under which draft ``revision`` is the page's newest; itself when it is already."""
    newest: int = connection.execute(
        select(pages.c.last_revision).where(pages.c.page_id == page_id).with_for_update()
    ).scalar_one()
    if revision == newest:
        return newest
    draft = draft_revisions
    connection.execute(
        update(pages).where(pages.c.page_id == page_id).values(last_revision=newest + 1)
    )
    connection.execute(
        insert(draft).from_select(
            [
                "page_id",
                "revision",
                "page_job_id",
                "attempt_id",
                "article",
                "output_hash",
                "copied_from_revision",
            ],
            select(
                draft.c.page_id,
                literal(newest + 1),
                draft.c.page_job_id,
                draft.c.attempt_id,
                draft.c.article,
                draft.c.output_hash,
                draft.c.revision,
            ).where(draft.c.page_id == page_id, draft.c.revision == revision),
        )
    )
    return newest + 1
