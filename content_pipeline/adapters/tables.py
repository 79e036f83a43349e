"""Reading a table of topics with pandas: CSV, Parquet or a SQL query, as rows of text.

What belongs here: turning a source into rows of column → text, and saying clearly why a whole table
cannot be used. What a single row means is decided in ``core.topics``: here a bad cell only keeps a
visible trace (bytes that are not UTF-8 become the replacement character).
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet
from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from content_pipeline.core.errors import TopicTableError
from content_pipeline.core.topics import MALFORMED


def read_file(path: Path) -> pd.DataFrame:
    """The table in a ``.csv`` or ``.parquet`` file. Raises TopicTableError."""
    if not path.exists():
        raise TopicTableError(f"there is no topic table at {path}; check `topics.table`")
    if path.is_dir():
        raise TopicTableError(f"{path} is a folder; `topics.table` must name a file")
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise TopicTableError(f"{path} is neither .csv nor .parquet; convert it to one of them")
    try:
        return _read_csv(path) if path.suffix.lower() == ".csv" else _read_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise TopicTableError(f"{path} cannot be read: {_first_line(error)}") from None


def _read_csv(path: Path) -> pd.DataFrame:
    # Split by the csv module, not by pandas.read_csv, which takes Namibia's code NA for a missing
    # value, surplus fields for an index that shifts every column, and, told to go on after a bad
    # line, drops everything behind an unclosed quote without a word.
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file, _any_field_size():
        reader = csv.reader(file, strict=True)
        rows: list[list[str]] = []
        begins_at = 1
        try:
            for row in reader:
                begins_at = reader.line_num + 1
                if row:
                    rows.append(_fitted(row, len(rows[0])) if rows else row)
        except csv.Error as error:
            # Not the reader's own line: an open quote swallows all that follows it.
            raise TopicTableError(
                f"{path}: {error} in the row that begins at line {begins_at}; check its quotes"
            ) from None
    if not rows:
        raise TopicTableError(f"{path} is empty; it needs a header and at least one row")
    return pd.DataFrame(rows[1:], columns=rows[0], dtype=object)


def _fitted(row: list[str], width: int) -> list[str]:
    """``row`` with as many cells as the header; one with more is marked, to be refused later."""
    if len(row) > width:
        return [row[0] + MALFORMED, *(MALFORMED + cell for cell in row[1:width])]
    return row + [""] * (width - len(row))


@contextmanager
def _any_field_size() -> Iterator[None]:
    """Lift the csv module's limit of 128 kB, so that a huge cell is one bad row and no more."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _read_parquet(path: Path) -> pd.DataFrame:
    # Not by pandas.read_parquet, which makes floats of integers with a gap among them, so that
    # 9007199254740993 ends in 2, and takes a column away when it was an index once.
    table = parquet.read_table(path)
    cells = [[_shortest(value, column.type) for value in column.to_pylist()] for column in table]
    frame = pd.DataFrame({place: pd.Series(cell, dtype=object) for place, cell in enumerate(cells)})
    return frame.set_axis(table.column_names, axis="columns")


def _shortest(value: Any, kind: pa.DataType) -> Any:
    """``value``, but 0.1 of a narrow float column is 0.1 and not 0.10000000149011612."""
    if value is None or not (pa.types.is_float32(kind) or pa.types.is_float16(kind)):
        return value
    return float(str(kind.to_pandas_dtype()(value)))


def read_query(query: str, database_url: str) -> pd.DataFrame:
    """The result of ``query``. Raises TopicTableError, never with the URL's password."""
    url = _parsed(database_url)
    try:
        engine = create_engine(url)
        try:
            with engine.connect() as connection:
                # A colon in it is no parameter: nobody would give it a value.
                result = connection.execute(text(query.replace(":", r"\:")))
                # Not by pandas.read_sql_query, which makes floats of integers and decimals.
                return pd.DataFrame(result.all(), columns=list(result.keys()), dtype=object)
        finally:
            engine.dispose()
    except (SQLAlchemyError, ImportError) as error:
        where = url.set(query={}).render_as_string(hide_password=True)
        raise TopicTableError(f"`topics.query` failed on {where}: {_first_line(error)}") from None


def _parsed(database_url: str) -> URL:
    # What is malformed may hold the password anywhere: it is not repeated.
    form = "postgresql://user:password@host/name"
    if database_url.partition("?")[0].count("@") > 1:
        raise TopicTableError(
            f"the database URL for `topics.query` is not like {form}: user or password hold an "
            '"@"; write %40 for it, %2F for "/", %3A for ":"'
        )
    try:
        url = make_url(database_url)
    except (ArgumentError, ValueError):
        raise TopicTableError(
            f"the database URL for `topics.query` is not a URL like {form}"
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    return url


def rows_of(
    table: pd.DataFrame, columns: Iterable[str], *, source: str
) -> Iterator[Mapping[str, str]]:
    """Each row as column → text, for ``columns`` only. Raises TopicTableError."""
    wanted = sorted(columns)
    missing = [column for column in wanted if column not in table.columns]
    if missing:
        raise TopicTableError(
            f"{source} has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, map(str, table.columns)))}. Correct the table, or the names in "
            "the site file"
        )
    if table.empty:
        raise TopicTableError(f"{source} has a header and no rows; add at least one topic")
    # Only those that are used: a spreadsheet's empty columns all have the same empty name.
    repeated = [column for column in wanted if list(table.columns).count(column) > 1]
    if repeated:
        raise TopicTableError(f"{source} has the column {repeated[0]!r} twice; rename one")
    return _rows(table[wanted])


def _rows(table: pd.DataFrame) -> Iterator[Mapping[str, str]]:
    names = list(table.columns)
    for values in table.itertuples(index=False, name=None):
        yield {name: _as_text(value) for name, value in zip(names, values, strict=True)}


def _as_text(value: Any) -> str:
    """``value`` as the text a page would show: 7.0 is 7, and nothing is no text at all."""
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Decimal):
        return f"{value:f}"  # str writes 0E-8 for a zero with 8 decimals
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
