"""Input fixes: values that a person corrected beside the topic table.

What belongs here: keeping them and saying which are in force. A fix holds against the value that
the table had when it was made; once the table itself says something else, the table wins.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, func, insert, select, update

from content_pipeline.ledger.schema import input_fixes

NEWER_IN_TABLE = "the table holds a new value"
CORRECTED_AGAIN = "it was corrected again"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFix:
    """One corrected value of one topic."""

    topic_key: str
    column: str
    value: str
    table_value: str
    """What the table said when the fix was made."""
    cause: str
    fixed_by: str
    fixed_at: datetime
    retired_because: str | None
    """None while it is in force."""


def in_force(connection: Connection, site: str) -> dict[str, dict[str, InputFix]]:
    """Topic key → column → the fix that holds for it."""
    rows = connection.execute(
        select(input_fixes).where(input_fixes.c.site == site, input_fixes.c.retired_at.is_(None))
    )
    fixes: defaultdict[str, dict[str, InputFix]] = defaultdict(dict)
    for row in rows:
        fixes[row.topic_key][row.column_name] = _fix(row)
    return dict(fixes)


def of_topic(connection: Connection, site: str, topic_key: str) -> list[InputFix]:
    """All fixes of a topic that ever were, oldest first."""
    rows = connection.execute(
        select(input_fixes)
        .where(input_fixes.c.site == site, input_fixes.c.topic_key == topic_key)
        .order_by(input_fixes.c.fixed_at)
    )
    return [_fix(row) for row in rows]


def add(
    connection: Connection,
    site: str,
    topic_key: str,
    values: Mapping[str, tuple[str, str]],
    *,
    cause: str,
    fixed_by: str,
) -> None:
    """Correct some columns of a topic: column → the table's value, the right one."""
    _retire(connection, site, topic_key, values, CORRECTED_AGAIN)
    for column, (table_value, value) in values.items():
        connection.execute(
            insert(input_fixes).values(
                site=site,
                topic_key=topic_key,
                column_name=column,
                value=value,
                table_value=table_value,
                cause=cause,
                fixed_by=fixed_by,
            )
        )


def retire(connection: Connection, site: str, outdated: Iterable[InputFix]) -> None:
    """End ``outdated``: the table has changed since they were made."""
    for fix in outdated:
        _retire(connection, site, fix.topic_key, [fix.column], NEWER_IN_TABLE, fix.fixed_at)


def _retire(
    connection: Connection,
    site: str,
    topic_key: str,
    columns: Iterable[str],
    because: str,
    made_by: datetime | None = None,
) -> None:
    """End what is in force; ``made_by``: nothing that was made later."""
    statement = (
        update(input_fixes)
        .where(input_fixes.c.site == site, input_fixes.c.topic_key == topic_key)
        .where(input_fixes.c.column_name.in_(list(columns)), input_fixes.c.retired_at.is_(None))
        .values(retired_at=func.clock_timestamp(), retired_because=because)
    )
    if made_by is not None:
        statement = statement.where(input_fixes.c.fixed_at <= made_by)
    connection.execute(statement)


def _fix(row: Row[tuple[object, ...]]) -> InputFix:
    return InputFix(
        topic_key=row.topic_key,
        column=row.column_name,
        value=row.value,
        table_value=row.table_value,
        cause=row.cause,
        fixed_by=row.fixed_by,
        fixed_at=row.fixed_at,
        retired_because=row.retired_because,
    )
