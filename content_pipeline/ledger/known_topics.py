"""Known topics: what the ledger holds already of the topics in a table.

What belongs here: reading it for an intake, of a whole site or of the rows that are taken in. A
bucket's run takes in 100 rows of 1,000,000, and reads no more than those.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Connection, RowMapping, Text, any_, cast, select

from content_pipeline.core.topics import RejectedRow, Topic
from content_pipeline.ledger.schema import page_jobs, pages, topics

Rows = Sequence[tuple[int, Topic]]
"""Row number and topic."""


def known(
    connection: Connection, site: str, of: tuple[Rows, Sequence[RejectedRow]] | None
) -> dict[str, RowMapping]:
    """The topics of ``site`` by key, each with its present page job; ``of``: only of these rows."""
    query = (
        select(
            topics.c.topic_key,
            topics.c.status,
            topics.c.row_number,
            topics.c.current_job_id,
            pages.c.path,
            page_jobs.c.state,
        )
        .outerjoin(pages, pages.c.page_id == topics.c.page_id)
        .outerjoin(page_jobs, page_jobs.c.page_job_id == topics.c.current_job_id)
        .where(topics.c.site == site)
    )
    if of is not None:
        rows, rejected = of
        keys = [topic.key for _, topic in rows]
        keys += [row.key for row in rejected if row.key is not None]
        query = query.where(topics.c.topic_key == any_(_texts(keys)))
    return {row["topic_key"]: row for row in connection.execute(query).mappings()}


def path_owners(connection: Connection, site: str, of: Rows | None) -> dict[str, str]:
    """Path → the topic whose page stands there; ``of``: only of the paths in these rows."""
    query = select(pages.c.path, pages.c.topic_key).where(pages.c.site == site)
    if of is not None:
        query = query.where(pages.c.path == any_(_texts([topic.path for _, topic in of])))
    return {row.path: row.topic_key for row in connection.execute(query)}


def _texts(values: Sequence[str]) -> ColumnElement[Any]:
    """One parameter, however many ``values`` there are: PostgreSQL takes 65,535 at most."""
    return cast(list(values), ARRAY(Text))
