"""One raw row becomes a topic or a reason; it never fails the table and never raises."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.adapters.cms.folder_paths import page_file
from content_pipeline.core.identity import input_hash
from content_pipeline.core.topics import (
    MALFORMED,
    MAX_CELL_BYTES,
    MAX_TOPIC_KEY_LENGTH,
    UNREADABLE,
    RejectedRow,
    Topic,
    page_path,
    parse_row,
    path_columns,
    used_columns,
)
from content_pipeline_tests.core.samples import ROW, site_settings

COLUMNS = frozenset({"name", "country", "river"})


def parsed(row: dict[str, str], **changes: Any) -> Topic | RejectedRow:
    return parse_row(7, row, site=site_settings(**changes), columns=COLUMNS)


def rejected(**cells: str) -> RejectedRow:
    found = parsed(ROW | cells)
    assert isinstance(found, RejectedRow)
    return found


def test_a_usable_row_becomes_a_topic_of_the_used_columns_alone() -> None:
    columns = {"country": "Germany", "name": "Berlin", "river": "Spree"}
    assert parsed(ROW) == Topic(
        key="ber",
        name="Berlin",
        path="/berlin/",
        columns=columns,
        input_hash=input_hash("/berlin/", columns),
    )


def test_a_column_that_is_not_used_changes_nothing() -> None:
    assert parsed(ROW | {"note": "\x00" * 10}) == parsed(ROW)


def test_space_around_a_value_changes_nothing() -> None:
    assert parsed(ROW | {"river": "\t Spree \n"}) == parsed(ROW)


def test_a_fact_that_need_not_be_stated_may_be_missing() -> None:
    found = parsed(ROW | {"river": ""})
    assert isinstance(found, Topic)
    assert found.columns["river"] == ""


BAD_CELLS = {
    "NUL": ("Spr\x00ee", r"holds the control character '\x00'; remove it"),
    "escape": ("\x1b[31mSpree", r"holds the control character '\x1b'"),
    "delete": ("Spr\x7fee", r"holds the control character '\x7f'"),
    "a control of a wrong encoding": ("Spree\x92s", r"holds the control character '\x92'"),
    "form feed": ("Spr\x0cee", r"holds the control character '\x0c'"),
    "half a character": ("Spr\ud83dee", r"holds the control character '\ud83d'"),
    "no character": ("Spr\uffffee", r"holds the control character '\uffff'"),
    "another encoding": (f"Spr{UNREADABLE}e", "is not UTF-8; save the table as UTF-8"),
    "misplaced": (f"{MALFORMED}Spree", "has more fields than the header"),
    "misplaced, first": (f"Spree{MALFORMED}", "has more fields than the header"),
    "20,001 bytes": ("x" * (MAX_CELL_BYTES + 1), "holds 20,001 bytes; at most 20,000"),
    "too long only as UTF-8": ("é" * (MAX_CELL_BYTES // 2 + 1), "holds 20,002 bytes"),
    "10 MB": ("x" * 10_000_000, "holds 10,000,000 bytes"),
    "10 MB of NUL": ("\x00" * 10_000_000, "holds 10,000,000 bytes"),
}


@pytest.mark.parametrize("name", BAD_CELLS)
def test_a_bad_cell_is_one_failed_page_with_row_key_column_and_fix(name: str) -> None:
    value, problem = BAD_CELLS[name]
    found = rejected(river=value)
    assert (found.row_number, found.key) == (7, "ber")
    assert found.message.startswith("row 7 (ber): column 'river' ")
    assert problem in found.message
    assert len(found.message) < 200


@pytest.mark.parametrize(
    "value",
    ["x" * MAX_CELL_BYTES, "two\nlines\tand a tab\r\n", "zero\u200bwidth", "\ufeffmark", "\u0085"],
    ids=["20,000 bytes", "white space", "zero width", "byte order mark", "next line, at the end"],
)
def test_an_odd_cell_that_harms_nobody_is_taken(value: str) -> None:
    assert isinstance(parsed(ROW | {"river": value}), Topic)


BAD_KEYS = {
    "": "is empty; every topic needs a stable id",
    "a,b": "holds the id 'a,b'; only letters, digits, '.', '_' and '-' are allowed",
    "a/b": "holds the id 'a/b'; only",
    "a b": "holds the id 'a b'; only",
    " ber": "holds the id ' ber'; only",
    "ber\n": r"holds the id 'ber\n'; only",
    "zürich": r"holds the id 'z\xfcrich'; only",
    "\x1b[31m": r"holds the id '\x1b[31m'; only",
    "\ud800": r"holds the id '\ud800'; only",
    UNREADABLE: r"holds the id '\ufffd'; only",
    ".": "holds the id '.', which is a folder's name",
    "..": "holds the id '..', which is a folder's name",
    f"{MALFORMED}x": "has more fields than the header",
    "k" * (MAX_TOPIC_KEY_LENGTH + 1): "holds an id of 101 characters; at most 100",
    "k" * 10_000_000: "holds an id of 10000000 characters",
}


@pytest.mark.parametrize("key", BAD_KEYS, ids=lambda key: ascii(key[:8]))
def test_an_unusable_id_leaves_a_row_without_a_key(key: str) -> None:
    found = rejected(code=key)
    assert found.key is None
    assert found.message.startswith("row 7: column 'code' ")
    assert BAD_KEYS[key] in found.message
    assert found.message.isascii()
    assert found.message.isprintable()


@pytest.mark.parametrize("key", ["k" * MAX_TOPIC_KEY_LENGTH, "0", "...", "-", "_", "A.b_c-1", "NA"])
def test_a_usable_id_is_taken_as_it_stands(key: str) -> None:
    found = parsed(ROW | {"code": key})
    assert isinstance(found, Topic)
    assert found.key == key


def test_a_row_with_too_many_fields_is_refused_under_its_id_when_that_comes_first() -> None:
    found = rejected(code=f"ber{MALFORMED}", name=f"{MALFORMED}Berlin", country=f"{MALFORMED}x")
    assert found.key == "ber"
    assert "has more fields than the header; quote values with commas" in found.message


def test_a_table_of_a_single_column_shows_too_many_fields_too() -> None:
    site = site_settings(topics__id="name", article__facts={"name": "Name"}, article__must_state=[])
    row = {"name": f"berlin{MALFORMED}"}
    found = parse_row(7, row, site=site, columns=frozenset({"name"}))
    assert isinstance(found, RejectedRow)
    assert found.key == "berlin"
    assert "more fields than the header" in found.message


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ({"country": ""}, "column 'country' is empty, and the page must state it"),
        ({"country": " \t\n"}, "column 'country' is empty, and the page must state it"),
        ({"name": ""}, "column 'name' is empty, and"),
        ({"name": "!?"}, "the path '/{name}/' has an empty part"),
        ({"name": "\N{GRINNING FACE}"}, "the path '/{name}/' has an empty part"),
    ],
)
def test_what_a_page_needs_must_be_there(cells: dict[str, str], problem: str) -> None:
    found = rejected(**cells)
    assert found.key == "ber"
    assert problem in found.message


def test_a_name_that_need_not_be_stated_still_names_the_page() -> None:
    found = parsed(ROW | {"name": ""}, article__must_state=[])
    assert isinstance(found, RejectedRow)
    assert "is empty, and it names the page" in found.message


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("Berlin", "/berlin/"),
        ("Saint-Étienne", "/saint-etienne/"),
        ("São Tomé & Príncipe", "/sao-tome-principe/"),
        ("Ĳmuiden", "/ijmuiden/"),
        ("Zürich", "/zurich/"),
        ("東京", "/dong-jing/"),
        ("Москва", "/moskva/"),
        ("../../etc/passwd", "/etc-passwd/"),
        ("..", None),
        ("/", None),
        ("a/b\\c", "/a-b-c/"),
        ("%2e%2e%2f", "/2e-2e-2f/"),
        ("sitemap.xml", "/sitemap-xml/"),
        ("index.html", "/index-html/"),
        ("&lt;script&gt;", "/script/"),
        ("&#x110000;&#99999999999999999999;", "/x110000-99999999999999999999/"),
        ("007", "/007/"),
        ("x" * 500, f"/{'x' * 100}/"),
        ("", None),
        ("---", None),
    ],
)
def test_a_path_is_a_slug_or_nothing(name: str, path: str | None) -> None:
    assert page_path("/{name}/", {"name": name}) == path


def test_a_path_may_use_several_columns() -> None:
    columns = {"country": "Côte d'Ivoire", "name": "Grand-Bassam", "note": "x"}
    assert page_path("/in/{country}/{name}-{name}/", columns) == (
        "/in/cote-d-ivoire/grand-bassam-grand-bassam/"
    )
    assert page_path("/in/{country}/{name}/", columns | {"country": "?"}) is None
    assert path_columns("/in/{country}/{name}-{name}/") == {"country", "name"}


texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200)


@given(name=texts, country=texts)
def test_whatever_a_row_says_its_path_is_one_that_can_be_published(name: str, country: str) -> None:
    path = page_path("/{country}/{name}/", {"name": name, "country": country})
    if path is not None:
        assert re.fullmatch(r"/[a-z0-9]+(-[a-z0-9]+)*/[a-z0-9]+(-[a-z0-9]+)*/", path)
        assert page_file(path) == path[1:] + "index.html"


wild = st.text(max_size=50) | st.sampled_from([value for value, _ in BAD_CELLS.values()][:11])


@given(cells=st.fixed_dictionaries(dict.fromkeys(ROW, wild)))
def test_no_row_raises_and_every_refusal_can_be_shown(cells: dict[str, str]) -> None:
    found = parsed(cells)
    if isinstance(found, RejectedRow):
        assert found.message.startswith("row 7")
        assert "\x1b" not in found.message
        found.message.encode()
    else:
        assert found.columns.keys() == COLUMNS
        # The marker of a cell without a column is added by the table's reader, not by the id.
        assert found.key == cells["code"].removesuffix(MALFORMED) != ""


@pytest.mark.parametrize(
    ("template_columns", "changes", "columns"),
    [
        ({"river"}, {}, {"name", "country", "river"}),
        (set(), {}, {"name", "country"}),
        (set(), {"article__must_state": []}, {"name"}),
        (set(), {"topics__path": "/{code}/{land}/"}, {"name", "country", "code", "land"}),
    ],
)
def test_the_columns_of_a_page_are_those_that_can_change_it(
    template_columns: set[str], changes: dict[str, Any], columns: set[str]
) -> None:
    found = used_columns(site_settings(**changes), frozenset(template_columns))
    assert found == columns
