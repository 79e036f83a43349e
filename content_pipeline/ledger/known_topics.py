"""Known topics: what the ledger holds already of the topics in a table.

What belongs here: reading it for an intake, of the rows that are taken in at once and no others.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Connection, RowMapping, Text, any_, cast, select

from content_pipeline.ledger.schema import page_jobs, pages, topics


def known(connection: Connection, site: str, keys: Sequence[str]) -> dict[str, RowMapping]:
    """Those of ``keys`` that are topics of ``site``, by key, each with its present page job."""
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
        .where(topics.c.site == site, topics.c.topic_key == any_(texts(keys)))
    )
    return {row["topic_key"]: row for row in connection.execute(query).mappings()}


def path_owners(connection: Connection, site: str, paths: Sequence[str]) -> dict[str, str]:
    """Those of ``paths`` where a page of ``site`` stands → the topic whose page it is."""
    query = select(pages.c.path, pages.c.topic_key).where(
        pages.c.site == site, pages.c.path == any_(texts(paths))
    )
    return {row.path: row.topic_key for row in connection.execute(query)}


def texts(values: Sequence[str]) -> ColumnElement[Any]:
    """One parameter, however many ``values`` there are: PostgreSQL takes 65,535 at most."""
    return cast(list(values), ARRAY(Text))
