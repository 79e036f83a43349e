import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content_pipeline.adapters.cms.page_marker import (
    HEAD_BYTES,
    format_marker,
    mark_of,
    parse_marker,
)
from content_pipeline.core.cms import Marker

MARKER = Marker(page_id="a1" * 16, revision=12, content_hash="0f" * 16)
MARK = format_marker(MARKER)
META = f'<meta name="content-pipeline" content="{MARK}">'


def page(head: str, body: str = "<p>text</p>") -> bytes:
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode()


def test_a_marker_reads_back_as_it_was_written() -> None:
    assert parse_marker(MARK) == MARKER


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "index",
        MARK + " ",
        " " + MARK,
        MARK + "\n",
        MARK.replace(" ", "  "),
        MARK.replace("rev=12", "rev=0"),
        MARK.replace("rev=12", "rev=-1"),
        MARK.replace("rev=12", "rev=012"),
        MARK.replace("rev=12", "rev=1.5"),
        MARK.replace("rev=12", "rev=\u0661"),
        MARK.replace("rev=12", "rev=99999999999"),
        MARK.replace("page=", "page=/"),
        MARK.replace("hash=", "hash=x y"),
        MARK + " more=1",
        "rev=12 " + MARK,
    ],
)
def test_anything_but_the_exact_form_is_no_marker(text: str | None) -> None:
    assert parse_marker(text) is None


@pytest.mark.parametrize(
    ("html", "found"),
    [
        (page(META), MARK),
        (page(META.replace('"', "'")), MARK),
        (page(f'<META CONTENT="{MARK}" NAME="content-pipeline"/>'), MARK),
        (page(f"<title>x</title>{META}<style>p{{}}</style>"), MARK),
        (META.encode(), MARK),
        (page(META).replace(b"text", b"\xff\xfe"), MARK),
        (page(""), None),
        (b"", None),
        (page(META + META), None),
        (page(META + META.replace("rev=12", "rev=13")), None),
        (page(f"<!-- {META} -->"), None),
        (page(f"<title>{META}</title>"), None),
        (page(f"<style>{META}</style>"), None),
        (page(f"<script>{META}</script>"), None),
        (page("", META), None),
        (f"<body><p>text</p>{META}".encode(), None),
        (page("", META.replace("<", "&lt;")), None),
        (page(META.replace("content-pipeline", "content-pipelines")), None),
        (page(META.replace("content=", "value=")), None),
        (page("<meta name=content-pipeline>"), None),
        (page("<![x[y]]>" + META), None),
        (page(" " * HEAD_BYTES + META), None),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), None),
    ],
)
def test_only_one_mark_in_the_head_counts(html: bytes, found: str | None) -> None:
    assert mark_of(html) == found


def test_a_second_mark_in_the_body_changes_nothing() -> None:
    assert mark_of(page(META, META.replace("rev=12", "rev=99"))) == MARK


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["<![", "<!", "<?", "--", ">", "[", "x", META, "\0", "</"])))
def test_no_file_makes_the_search_fail(pieces: list[str]) -> None:
    assert mark_of("".join(pieces).encode()) in (None, MARK)
