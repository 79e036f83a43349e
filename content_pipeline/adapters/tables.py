"""Reading a table of topics with pandas: CSV, Parquet or a SQL query, as rows of text.

What belongs here: turning a source into rows of column → text, a stretch of it at a time, and
saying clearly why a whole table cannot be used. What a single row means is decided in
``core.topics``: here a bad cell only keeps a visible trace (bytes that are not UTF-8 become the
replacement character).
"""

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet
from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from content_pipeline.core.errors import TopicTableError
from content_pipeline.core.topics import MALFORMED

ROWS_AT_ONCE = 5_000
"""Rows in memory: a table of 1,000,000 took 1.3 GB as a whole, and some 10 MB so."""


def read_file(path: Path) -> Iterator[pd.DataFrame]:
    """The table in a ``.csv`` or ``.parquet`` file: one frame or more, whatever it holds.

    Raises TopicTableError, where it is in the middle of the file also after some frames.
    """
    if not path.exists():
        raise TopicTableError(f"there is no topic table at {path}; check `topics.table`")
    if path.is_dir():
        raise TopicTableError(f"{path} is a folder; `topics.table` must name a file")
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise TopicTableError(f"{path} is neither .csv nor .parquet; convert it to one of them")
    try:
        yield from _read_csv(path) if path.suffix.lower() == ".csv" else _read_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise TopicTableError(f"{path} cannot be read: {_first_line(error)}") from None


def _read_csv(path: Path) -> Iterator[pd.DataFrame]:
    # Split by the csv module, not by pandas.read_csv, which takes Namibia's code NA for a missing
    # value, surplus fields for an index that shifts every column, and, told to go on after a bad
    # line, drops everything behind an unclosed quote without a word.
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = _csv_rows(path, file)
        with _any_field_size():
            header = next(rows, None)
        if header is None:
            raise TopicTableError(f"{path} is empty; it needs a header and at least one row")
        yield pd.DataFrame(columns=header, dtype=object)
        while True:
            with _any_field_size():
                cells = [_fitted(row, len(header)) for row in islice(rows, ROWS_AT_ONCE)]
            if not cells:
                return
            yield pd.DataFrame(cells, columns=header, dtype=object)


def _csv_rows(path: Path, file: TextIO) -> Iterator[list[str]]:
    """The lines of cells that are not empty, the header first."""
    reader = csv.reader(file, strict=True)
    begins_at = 1
    try:
        for row in reader:
            begins_at = reader.line_num + 1
            if row:
                yield row
    except csv.Error as error:
        # Not the reader's own line: an open quote swallows all that follows it.
        raise TopicTableError(
            f"{path}: {error} in the row that begins at line {begins_at}; check its quotes"
        ) from None


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


def _read_parquet(path: Path) -> Iterator[pd.DataFrame]:
    # Not by pandas.read_parquet, which makes floats of integers with a gap among them, so that
    # 9007199254740993 ends in 2, and takes a column away when it was an index once.
    with parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        yield pd.DataFrame(columns=names, dtype=object)
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
            cells = [
                [_shortest(cell, column.type) for cell in column.to_pylist()] for column in batch
            ]
            frame = pd.DataFrame({n: pd.Series(cell, dtype=object) for n, cell in enumerate(cells)})
            yield frame.set_axis(names, axis="columns")


def _shortest(value: Any, kind: pa.DataType) -> Any:
    """``value``, but 0.1 of a narrow float column is 0.1 and not 0.10000000149011612."""
    if value is None or not (pa.types.is_float32(kind) or pa.types.is_float16(kind)):
        return value
    return float(str(kind.to_pandas_dtype()(value)))


def read_query(query: str, database_url: str) -> Iterator[pd.DataFrame]:
    """The result of ``query``, as ``read_file``. Raises TopicTableError, never with a password."""
    url = _parsed(database_url)
    try:
        engine = create_engine(url)
        try:
            with engine.connect() as connection:
                # A colon in it is no parameter: nobody would give it a value.
                statement = text(query.replace(":", r"\:"))
                options = {"stream_results": True, "max_row_buffer": ROWS_AT_ONCE}
                result = connection.execute(statement, execution_options=options)
                names = list(result.keys())
                yield pd.DataFrame(columns=names, dtype=object)
                # Not by pandas.read_sql_query, which makes floats of integers and decimals.
                for rows in result.partitions(ROWS_AT_ONCE):
                    yield pd.DataFrame(rows, columns=names, dtype=object)
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
    frames: Iterable[pd.DataFrame], columns: Iterable[str], *, source: str
) -> Iterator[dict[str, str]]:
    """Each row as column → text, for ``columns`` only. Raises TopicTableError."""
    wanted = sorted(columns)
    is_empty = True
    for frame in frames:
        _refuse_other_columns(list(frame.columns), wanted, source)
        for row in _rows(frame[wanted]):
            is_empty = False
            yield row
    if is_empty:
        raise TopicTableError(f"{source} has a header and no rows; add at least one topic")


def _refuse_other_columns(found: list[str], wanted: list[str], source: str) -> None:
    missing = [column for column in wanted if column not in found]
    if missing:
        raise TopicTableError(
            f"{source} has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, map(str, found)))}. Correct the table, or the names in "
            "the site file"
        )
    # Only those that are used: a spreadsheet's empty columns all have the same empty name.
    repeated = [column for column in wanted if found.count(column) > 1]
    if repeated:
        raise TopicTableError(f"{source} has the column {repeated[0]!r} twice; rename one")


def _rows(table: pd.DataFrame) -> Iterator[dict[str, str]]:
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
