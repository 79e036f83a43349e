"""Taken tables: which topic table a site's topics were taken in from, as a whole and last.

What belongs here: remembering its identity, and forgetting it before any topic becomes that of
another table. Both stand in the transaction of the intake, under the site's intake lock, so an
intake that was killed is not remembered, and of two at once the later one is.
"""

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.ledger.schema import taken_tables


def remember(connection: Connection, site: str, identity: str) -> None:
    """All topics of ``site`` are now those of the table with ``identity``, and no others."""
    statement = upsert(taken_tables).values(site=site, identity=identity)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[taken_tables.c.site],
            set_={"identity": statement.excluded.identity, "taken_in_at": func.now()},
        )
    )


def forget(connection: Connection, site: str) -> None:
    """From now on some topics may be those of a table, and others those of another."""
    connection.execute(delete(taken_tables).where(taken_tables.c.site == site))


def last(connection: Connection, site: str) -> str | None:
    """The identity of the table that all topics of ``site`` are of; None: they are of several."""
    found: str | None = connection.execute(
        select(taken_tables.c.identity).where(taken_tables.c.site == site)
    ).scalar_one_or_none()
    return found
