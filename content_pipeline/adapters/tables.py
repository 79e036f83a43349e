"""Reading a table of topics with pandas: CSV, Parquet or a SQL query, as rows of text.

What belongs here: turning a source into rows of column → text, and saying clearly why a whole table
cannot be used. What a single row means is decided in ``core.topics``: here a bad cell only keeps a
visible trace (bytes that are not UTF-8 become the replacement character).
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import create_engine, make_url, text
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
        return _read_csv(path) if path.suffix.lower() == ".csv" else pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise TopicTableError(f"{path} cannot be read: {_first_line(error)}") from None


def _read_csv(path: Path) -> pd.DataFrame:
    # Split by the csv module, not by pandas.read_csv, which takes Namibia's code NA for a missing
    # value, surplus fields for an index that shifts every column, and, told to go on after a bad
    # line, drops everything behind an unclosed quote without a word.
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file, _any_field_size():
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                raise TopicTableError(f"{path} is empty; it needs a header and at least one row")
            rows = [_fitted(row, len(header)) for row in reader if row]
        except csv.Error as error:
            raise TopicTableError(
                f"{path}, line {reader.line_num}: {error}; check the quotes of that line"
            ) from None
    return pd.DataFrame(rows, columns=header, dtype=str)


def _fitted(row: list[str], width: int) -> list[str]:
    """``row`` with as many cells as the header; one with more is marked, to be refused later."""
    if len(row) > width:
        return [row[0], *(MALFORMED + cell for cell in row[1:width])]
    return row + [""] * (width - len(row))


@contextmanager
def _any_field_size() -> Iterator[None]:
    """Lift the csv module's limit of 128 kB, so that a huge cell is one bad row and no more."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def read_query(query: str, database_url: str) -> pd.DataFrame:
    """The result of ``query``. Raises TopicTableError, never with the URL's password."""
    try:
        url = make_url(database_url)
    except ArgumentError:
        raise TopicTableError(
            "the database URL for `topics.query` is not a URL like postgresql+psycopg://host/name"
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    try:
        engine = create_engine(url)
        try:
            with engine.connect() as connection:
                return pd.read_sql_query(text(query), connection)
        finally:
            engine.dispose()
    except (SQLAlchemyError, ImportError) as error:
        where = url.render_as_string(hide_password=True)
        raise TopicTableError(f"`topics.query` failed on {where}: {_first_line(error)}") from None


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
    repeated = sorted({str(name) for name in table.columns[table.columns.duplicated()]})
    if repeated:
        raise TopicTableError(f"{source} has the column {repeated[0]!r} twice; rename one")
    return _rows(table[wanted])


def _rows(table: pd.DataFrame) -> Iterator[Mapping[str, str]]:
    names = list(table.columns)
    for values in table.itertuples(index=False, name=None):
        yield {name: _as_text(value) for name, value in zip(names, values, strict=True)}


def _as_text(value: Any) -> str:
    """``value`` as the text a page would show: 7.0 from a column with gaps is 7 again."""
    if value is None or (isinstance(value, float) and value != value) or value is pd.NA:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return "" if value is pd.NaT else str(value)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
