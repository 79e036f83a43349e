"""A table is read whole and unchanged, or refused with the reason; nothing is lost in between."""

import contextlib
import csv
import datetime as dt
import io
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from content_pipeline.adapters import tables as reader
from content_pipeline.adapters.tables import read_file, read_query, rows_of
from content_pipeline.core.errors import TopicTableError
from content_pipeline.core.topics import MALFORMED, UNREADABLE

pytestmark = pytest.mark.oldest

PAIR = ("code", "name")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def rows(path: Path, columns: tuple[str, ...] = PAIR) -> list[dict[str, str]]:
    return [dict(row) for row in rows_of(read_file(path), columns, source="towns.csv")]


def csv_rows(folder: Path, content: bytes, columns: tuple[str, ...] = PAIR) -> list[dict[str, str]]:
    path = folder / "towns.csv"
    path.write_bytes(content)
    return rows(path, columns)


def csv_pairs(folder: Path, content: bytes) -> list[tuple[str, str]]:
    return [(row["code"], row["name"]) for row in csv_rows(folder, content)]


def csv_refusal(folder: Path, content: bytes) -> str:
    with pytest.raises(TopicTableError) as caught:
        csv_rows(folder, content)
    assert caught.value.__cause__ is None
    return str(caught.value)


# --- CSV ----------------------------------------------------------------------------------------

TAKEN: dict[str, tuple[bytes, list[tuple[str, str]]]] = {
    "plain": (b"code,name\nber,Berlin\npar,Paris\n", [("ber", "Berlin"), ("par", "Paris")]),
    "no newline at the end": (b"code,name\nber,Berlin", [("ber", "Berlin")]),
    "Windows newlines": (b"code,name\r\nber,Berlin\r\n", [("ber", "Berlin")]),
    "old Mac newlines": (b"code,name\rber,Berlin\r", [("ber", "Berlin")]),
    "a byte order mark": (b"\xef\xbb\xbfcode,name\nber,Berlin\n", [("ber", "Berlin")]),
    "a quoted header after it": (b'\xef\xbb\xbf"code",name\nber,x\n', [("ber", "x")]),
    "Namibia": (b"code,name\nNA,Namibia\n", [("NA", "Namibia")]),
    "words for nothing": (
        b"code,name\nnull,None\nnan,N/A\nNaN,\n",
        [("null", "None"), ("nan", "N/A"), ("NaN", "")],
    ),
    "leading zeros": (b"code,name\n007,1.50\n1e5,0x1F\n", [("007", "1.50"), ("1e5", "0x1F")]),
    "truth and dates": (
        b"code,name\ntrue,2026-01-31\n1_000,TRUE\n",
        [("true", "2026-01-31"), ("1_000", "TRUE")],
    ),
    "long numbers": (
        b"code,name\n1,9007199254740993\n2,\n",
        [("1", "9007199254740993"), ("2", "")],
    ),
    "a quoted comma": (b'code,name\nber,"Berlin, Germany"\n', [("ber", "Berlin, Germany")]),
    "a quoted quote": (b'code,name\nber,"the ""B"""\n', [("ber", 'the "B"')]),
    "quoted newlines": (b'code,name\nber,"a\nb\r\nc"\n', [("ber", "a\nb\r\nc")]),
    "a quote in the middle": (b'code,name\nber,5" pipe\n', [("ber", '5" pipe')]),
    "space around": (b"code,name\n ber , Berlin \n", [(" ber ", " Berlin ")]),
    "blank lines": (b"\n\ncode,name\n\nber,B\n\n\npar,P\n\n", [("ber", "B"), ("par", "P")]),
    "missing fields": (b"code,name\nber\npar,Paris\n", [("ber", ""), ("par", "Paris")]),
    "NUL": (b"code,name\nber,Ber\x00lin\n", [("ber", "Ber\x00lin")]),
    "another encoding": (b"code,name\nzrh,Z\xfcrich\n", [("zrh", f"Z{UNREADABLE}rich")]),
    "half a character": (b"code,name\nber,\xed\xa0\x80\n", [("ber", UNREADABLE * 3)]),
    "a column of spreadsheets": (b"code,name,,\nber,Berlin,,\n", [("ber", "Berlin")]),
    "an unused column twice": (b"code,note,name,note\nber,1,Berlin,2\n", [("ber", "Berlin")]),
    "a comment sign": (b"code,name\n#ber,Berlin\n", [("#ber", "Berlin")]),
    "a formula": (b"code,name\nber,=1+1\n", [("ber", "=1+1")]),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_a_csv_file_is_taken_cell_by_cell_as_it_is_written(folder: Path, name: str) -> None:
    content, expected = TAKEN[name]
    assert csv_pairs(folder, content) == expected


REFUSED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty; it needs a header and at least one row"),
    "only a mark": (b"\xef\xbb\xbf", "is empty; it needs a header"),
    "only blank lines": (b"\n\n\r\n", "is empty; it needs a header"),
    "only a header": (b"code,name\n", "has a header and no rows; add at least one topic"),
    "a missing column": (
        b"code,nom\nber,Berlin\n",
        "towns.csv has no column 'name'; it has 'code', 'nom'. Correct the table, or the names",
    ),
    "two missing columns": (b"a,b\n1,2\n", "has no column 'code', 'name'; it has 'a', 'b'"),
    "a column with a space": (b"code, name\nber,Berlin\n", "it has 'code', ' name'"),
    "semicolons": (b"code;name\nber;Berlin\n", "it has 'code;name'"),
    "UTF-16": ("code,name\nber,Berlin\n".encode("utf-16"), "has no column 'code', 'name'"),
    "a column twice": (b"code,name,name\nber,a,b\n", "has the column 'name' twice; rename one"),
    "an open quote at the end": (
        b'code,name\nber,Berlin\npar,"Paris\n',
        "unexpected end of data in the row that begins at line 3; check its quotes",
    ),
    "an open quote in the middle": (
        b'code,name\nber,Berlin\npar,"Paris\nrom,Rome\nvie,Vienna\n',
        "unexpected end of data in the row that begins at line 3; check its quotes",
    ),
    "an open quote that meets another": (
        b'code,name\nber,"Berlin\npar,"Paris"\nrom,Rome\n',
        "in the row that begins at line 2; check its quotes",
    ),
    "text behind a quote": (
        b'code,name\nber,"Berlin" and more\n',
        "',' expected after '\"' in the row that begins at line 2; check its quotes",
    ),
    "a broken header": (b'code,"name\n', "in the row that begins at line 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_csv_file_that_cannot_be_understood_is_refused_whole(folder: Path, name: str) -> None:
    content, message = REFUSED[name]
    assert message in csv_refusal(folder, content)


def test_a_row_with_surplus_fields_is_one_bad_row_and_moves_no_other(folder: Path) -> None:
    found = csv_pairs(folder, b"code,name\nber,Berlin\npar,Paris, France\nrom,Rome\n")
    assert found == [
        ("ber", "Berlin"),
        (f"par{MALFORMED}", f"{MALFORMED}Paris"),
        ("rom", "Rome"),
    ]


def test_a_table_of_one_column_shows_surplus_fields_as_well(folder: Path) -> None:
    found = csv_rows(folder, b"code\nber,lin\npar\n", ("code",))
    assert found == [{"code": f"ber{MALFORMED}"}, {"code": "par"}]


def test_a_huge_cell_is_one_cell_and_the_csv_module_keeps_its_limit(folder: Path) -> None:
    huge = b"x" * 10_000_000
    before = csv.field_size_limit(1000)
    try:
        found = csv_pairs(folder, b"code,name\nber," + huge + b"\npar,Paris\n")
        assert csv.field_size_limit() == 1000
    finally:
        csv.field_size_limit(before)
    assert found == [("ber", huge.decode()), ("par", "Paris")]


def test_every_row_is_counted(folder: Path) -> None:
    lines = [f'{number},"town\n{number}"' if number % 7 else f"{number}," for number in range(5000)]
    found = csv_rows(folder, ("code,name\n" + "\n".join(lines)).encode())
    assert [row["code"] for row in found] == [str(number) for number in range(5000)]


cells = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20)
tables = st.lists(st.tuples(cells.map("k{}".format), cells), min_size=1, max_size=8)


@settings(deadline=None)
@given(table=tables)
def test_whatever_is_written_as_csv_is_read_as_it_was(
    folder: Path, table: list[tuple[str, str]]
) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows([PAIR, *table])
    assert csv_pairs(folder, file.getvalue().encode()) == table


@settings(deadline=None)
@given(
    content=st.binary(max_size=200) | st.text(alphabet='"a,\n\r\x00é;', max_size=60).map(str.encode)
)
def test_no_file_raises_anything_but_a_table_error(folder: Path, content: bytes) -> None:
    with contextlib.suppress(TopicTableError):
        for row in csv_rows(folder, b"code,name\n" + content):
            assert row.keys() == set(PAIR)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.csv", "there is no topic table at {path}; check `topics.table`"),
        ("folder.csv", "{path} is a folder; `topics.table` must name a file"),
        ("towns.xlsx", "{path} is neither .csv nor .parquet; convert it to one of them"),
        ("towns", "{path} is neither .csv nor .parquet"),
        ("towns.csv.gz", "{path} is neither .csv nor .parquet"),
    ],
)
def test_a_file_that_is_no_table_says_what_is_wrong(
    tmp_path: Path, name: str, message: str
) -> None:
    path = tmp_path / name
    if name == "folder.csv":
        path.mkdir()
    elif name != "nowhere.csv":
        path.write_text("code,name\n")
    with pytest.raises(TopicTableError) as caught:
        list(read_file(path))
    assert message.format(path=path) in str(caught.value)


def test_the_ending_may_be_written_in_capitals(tmp_path: Path) -> None:
    path = tmp_path / "TOWNS.CSV"
    path.write_text("code,name\nber,Berlin\n")
    assert rows(path) == [{"code": "ber", "name": "Berlin"}]


def test_a_file_is_read_a_stretch_at_a_time_and_an_error_comes_where_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "ROWS_AT_ONCE", 2)
    path = folder / "long.csv"
    path.write_text('code,name\n1,a\n\n2,b\n3,c\n4,"d\n5,e\n')
    found = rows_of(read_file(path), PAIR, source="towns.csv")
    assert [next(found)["code"] for _ in range(2)] == ["1", "2"]
    with pytest.raises(TopicTableError, match="in the row that begins at line 6"):
        list(found)


@pytest.mark.parametrize("stretch", [1, 2, 3, 100])
def test_all_rows_come_whatever_the_stretch(
    stretch: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "ROWS_AT_ONCE", stretch)
    pairs = [(str(number), f"town {number}") for number in range(3)]
    content = "code,name\n" + "".join(f"{code},{name}\n" for code, name in pairs)
    assert csv_pairs(folder, content.encode()) == pairs
    columns = {"code": pa.array(["0", "1", "2"]), "name": pa.array([None, 1.5, 2.0])}
    found = parquet_rows(folder, columns, PAIR)
    assert [(row["code"], row["name"]) for row in found] == [("0", ""), ("1", "1.5"), ("2", "2")]
    query = "SELECT 1 AS code, 'a' AS name UNION ALL SELECT 2, 'b' UNION ALL SELECT 3, 'c'"
    found = query_rows(query, "sqlite://", *PAIR)
    assert [(row["code"], row["name"]) for row in found] == [("1", "a"), ("2", "b"), ("3", "c")]


# --- Parquet ------------------------------------------------------------------------------------

KINDS: dict[str, tuple[Any, list[str]]] = {
    "text": (pa.array(["NA", "007", "", None]), ["NA", "007", "", ""]),
    "integers": (pa.array([1, -2, 0]), ["1", "-2", "0"]),
    "long integers with a gap": (
        pa.array([9007199254740993, None], pa.int64()),
        ["9007199254740993", ""],
    ),
    "unsigned": (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
    "floats": (
        pa.array([1.5, 7.0, 1e22, 0.1, None, float("nan"), float("inf")]),
        ["1.5", "7", "10000000000000000000000", "0.1", "", "", "inf"],
    ),
    "narrow floats": (pa.array([0.1, 7.0, None], pa.float32()), ["0.1", "7", ""]),
    "narrowest floats": (pa.array([0.1, 7.0], pa.float16()), ["0.1", "7"]),
    "decimals": (
        pa.array([Decimal("0"), Decimal("7.50"), None], pa.decimal128(20, 8)),
        ["0.00000000", "7.50000000", ""],
    ),
    "truth": (pa.array([True, False, None]), ["True", "False", ""]),
    "dates": (pa.array([dt.date(2026, 1, 31), None]), ["2026-01-31", ""]),
    "times": (
        pa.array(["2026-01-31 05:30:00", None]).cast(pa.timestamp("us")),
        ["2026-01-31 05:30:00", ""],
    ),
    "bytes": (pa.array([b"caf\xc3\xa9", b"caf\xe9", None]), ["café", f"caf{UNREADABLE}", ""]),
    "categories": (pa.array(["a", "b", None]).dictionary_encode(), ["a", "b", ""]),
    "lists": (pa.array([["a", "b"], None]), ["['a', 'b']", ""]),
    "nothing": (pa.nulls(2), ["", ""]),
}


def parquet_rows(
    folder: Path, columns: dict[str, Any], wanted: tuple[str, ...]
) -> list[dict[str, str]]:
    path = folder / "towns.parquet"
    parquet.write_table(pa.table(columns), path)
    return rows(path, wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_a_parquet_column_becomes_the_text_a_page_would_show(folder: Path, kind: str) -> None:
    column, expected = KINDS[kind]
    found = parquet_rows(folder, {"value": column}, ("value",))
    assert [row["value"] for row in found] == expected


def test_a_table_written_by_pandas_keeps_its_index_as_a_column(folder: Path) -> None:
    path = folder / "indexed.parquet"
    frame = pd.DataFrame({"name": ["Berlin"]}, index=pd.Index(["ber"], name="code"))
    frame.to_parquet(path)
    assert rows(path) == [{"code": "ber", "name": "Berlin"}]


def test_a_parquet_file_without_rows_or_with_other_columns_is_refused(folder: Path) -> None:
    with pytest.raises(TopicTableError, match="has a header and no rows"):
        parquet_rows(folder, {"code": pa.array([], pa.string())}, ("code",))
    with pytest.raises(TopicTableError, match="has no column 'name'; it has 'code'"):
        parquet_rows(folder, {"code": ["ber"]}, PAIR)


def test_a_parquet_file_that_is_damaged_is_refused(folder: Path) -> None:
    path = folder / "damaged.parquet"
    parquet.write_table(pa.table({"code": ["ber"], "name": ["Berlin"]}), path)
    whole = path.read_bytes()
    for damaged in (b"", b"PAR1", b"code,name\n", whole[:-5], whole[20:], b"x" * len(whole)):
        path.write_bytes(damaged)
        with pytest.raises(TopicTableError, match=r"damaged\.parquet cannot be read: "):
            list(read_file(path))


# --- SQL ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def database(folder: Path) -> str:
    """A small database of towns; its URL."""
    path = folder / "towns.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE towns (code TEXT, name TEXT, people INTEGER, km REAL)")
        connection.executemany(
            "INSERT INTO towns VALUES (?, ?, ?, ?)",
            [("NA", "Namur", 9007199254740993, 1.5), ("007", None, None, 7.0)],
        )
    connection.close()
    return f"sqlite:///{path}"


def query_rows(query: str, url: str, *columns: str) -> list[dict[str, str]]:
    return [dict(row) for row in rows_of(read_query(query, url), columns, source="topics.query")]


def query_refusal(query: str, url: str) -> str:
    with pytest.raises(TopicTableError) as caught:
        list(read_query(query, url))
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_a_query_gives_rows_of_text(database: str) -> None:
    found = query_rows("SELECT * FROM towns", database, "code", "name", "people", "km")
    assert found == [
        {"code": "NA", "name": "Namur", "people": "9007199254740993", "km": "1.5"},
        {"code": "007", "name": "", "people": "", "km": "7"},
    ]


def test_a_query_may_name_its_columns_and_hold_any_sign(database: str) -> None:
    query = "SELECT code AS id, ' :new' AS note, '50%' AS part FROM towns WHERE code LIKE 'N%'"
    found = query_rows(query, database, "id", "note", "part")
    assert found == [{"id": "NA", "note": " :new", "part": "50%"}]


def test_a_query_that_would_write_changes_nothing(database: str) -> None:
    assert "does not return rows" in query_refusal("DELETE FROM towns", database)
    assert query_rows("SELECT count(*) AS n FROM towns", database, "n") == [{"n": "2"}]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM rivers", "no such table: rivers"),
        ("SELEC 1", "syntax error"),
        ("", "does not return rows"),
        ("SELECT 1; SELECT 2", "one statement at a time"),
    ],
)
def test_a_query_that_fails_says_where_and_why(database: str, query: str, message: str) -> None:
    found = query_refusal(query, database)
    assert found.startswith(f"`topics.query` failed on {database}: ")
    assert message in found
    assert len(found.splitlines()) == 1


def test_a_query_without_rows_or_with_other_columns_is_refused(database: str) -> None:
    with pytest.raises(TopicTableError, match=r"topics\.query has a header and no rows"):
        query_rows("SELECT * FROM towns WHERE code = 'x'", database, "code")
    with pytest.raises(TopicTableError, match=r"topics\.query has no column 'id'; it has 'code'"):
        query_rows("SELECT code FROM towns", database, "id")
    with pytest.raises(TopicTableError, match="has the column 'code' twice"):
        query_rows("SELECT code, name AS code FROM towns", database, "code")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me:hush@127.0.0.1:1/towns", "//me:***@127.0.0.1:1/towns: "),
        ("postgres://me:hush@127.0.0.1:1/towns", "postgresql+psycopg://me:***@127.0.0.1:1/towns"),
        ("postgresql://me@127.0.0.1:1/towns?password=hush", "//me@127.0.0.1:1/towns: "),
        ("postgresql://me:hu@sh@127.0.0.1:1/towns", 'hold an "@"; write %40 for it'),
        ("postgresql://me:hush@127.0.0.1:port/towns", "is not a URL like postgresql://"),
        ("postgresql://me:hush@[::1/towns", "is not a URL like postgresql://"),
        ("nosuch://me:hush@127.0.0.1/towns", "nosuch://me:***@127.0.0.1/towns: Can't load plugin"),
        ("me:hush@127.0.0.1/towns", "is not a URL like postgresql://"),
        ("hush", "is not a URL like postgresql://"),
        ("sqlite:////nowhere/towns.sqlite", "unable to open database file"),
    ],
)
def test_a_database_that_cannot_be_used_never_tells_its_password(url: str, message: str) -> None:
    found = query_refusal("SELECT 1", url)
    assert message in found
    assert "hush" not in found
    assert "hu@sh" not in found
    assert "sh@127" not in found
