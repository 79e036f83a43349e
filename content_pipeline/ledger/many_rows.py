"""Many rows: inserting thousands at once, all of them in one parameter.

What belongs here: the form of such a statement. With a parameter for each value, 2,000 topics with
their pages and page jobs took half a second of our CPU and a third of PostgreSQL's, to write and to
read statements of 40,000 parameters; as arrays, one for each column, half of that.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import JSON, ColumnElement, Table, Text, cast, column, func, literal, select
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.dialects.postgresql import insert as upsert

BATCH = 2_000
"""Rows per statement: large enough to be fast, small enough for a bounded memory."""

Row = Mapping[str, Any]
"""Column → text, a whole number, a JSON value or None."""


def batches(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """``rows``, at most BATCH at once."""
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def inserting(table: Table, rows: Sequence[Row], **alike: ColumnElement[Any]) -> Insert:
    """The insertion of ``rows``, one at least and all of the same columns, in their order.

    ``alike``: columns that have one expression for all of them.
    """
    names = list(rows[0])
    document = cast(literal(json.dumps(rows, ensure_ascii=False), Text), JSON)
    given = (
        func.json_to_recordset(document)
        .table_valued(*(column(name, table.c[name].type) for name in names), name="given")
        .render_derived(with_types=True)
    )
    values = [given.c[name] for name in names]
    return upsert(table).from_select([*names, *alike], select(*values, *alike.values()))
