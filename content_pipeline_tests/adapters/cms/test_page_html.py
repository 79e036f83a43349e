import base64
import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urljoin

import pytest

from content_pipeline.adapters.cms.page_html import (
    IndexGroup,
    IndexSheet,
    relative_link,
    render_index,
    render_page,
)
from content_pipeline.adapters.cms.page_marker import INDEX_MARK, mark_of, parse_marker
from content_pipeline.core.cms import Document
from content_pipeline.core.ports import ListedPage
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.core.hostile_text import PAYLOADS, Judge

SCRIPT_TYPE = "application/ld+json"


def judged(document: Document) -> Judge:
    return Judge(render_page(document).decode())


def metas(judge: Judge) -> dict[str, str | None]:
    return {
        str(meta.get("name") or meta.get("property") or meta.get("http-equiv")): meta.get("content")
        for meta in judge.all_of("meta")
        if "charset" not in meta
    }


def structured_data(judge: Judge) -> Any:
    assert judge.all_of("script") == [{"type": SCRIPT_TYPE}]
    return json.loads(judge.text_of("script"))


def listed(path: str = "/austria/", title: str = "Austria") -> ListedPage:
    return ListedPage(
        path=path,
        url="https://example.com" + path,
        title=title,
        meta_description=f"About {title}.",
        modified_at=datetime(2026, 1, 2, tzinfo=UTC),
    )


def sheet(
    *pages: ListedPage,
    site_title: str = "Countries",
    language: str = "en",
    number: int = 1,
    file_names: Sequence[str] = ("index.html",),
) -> IndexSheet:
    return IndexSheet(
        site_title=site_title,
        language=language,
        url="https://example.com/",
        description="Austria",
        groups=[IndexGroup(letter="A", pages=pages)],
        number=number,
        file_names=file_names,
    )


# --- a page -------------------------------------------------------------------------------------


def test_a_page_tells_browsers_and_search_engines_what_it_is() -> None:
    document = make_document(title="Austria & <Vienna>", language="de-AT")
    judge = judged(document)
    assert judge.all_of("html") == [{"lang": "de-AT", "dir": "ltr"}]
    assert judge.text_of("title") == "Austria & <Vienna> · Countries"
    assert judge.text_of("h1") == "Austria & <Vienna>"
    assert {"rel": "canonical", "href": document.url} in judge.all_of("link")
    found = metas(judge)
    assert found["viewport"] == "width=device-width, initial-scale=1"
    assert found["description"] == document.meta_description
    assert found["og:type"] == "article"
    assert found["og:title"] == document.title
    assert found["og:description"] == document.meta_description
    assert found["og:url"] == document.url
    assert found["og:site_name"] == "Countries"
    assert structured_data(judge) == document.json_ld


def test_a_page_holds_the_body_once_and_unchanged() -> None:
    document = make_document(body="**Nine** million.")
    assert render_page(document).decode().count(document.body_html) == 1


def test_the_marker_of_a_page_reads_back() -> None:
    document = make_document(revision=7)
    assert parse_marker(mark_of(render_page(document))) == document.marker


def test_the_same_document_gives_the_same_bytes() -> None:
    assert render_page(make_document()) == render_page(make_document())


@pytest.mark.parametrize(
    ("language", "direction"),
    [
        ("en", "ltr"),
        ("de-AT", "ltr"),
        ("ar", "rtl"),
        ("he-IL", "rtl"),
        ("FA", "rtl"),
        ("ara", "ltr"),
    ],
)
def test_the_direction_follows_the_language(language: str, direction: str) -> None:
    assert judged(make_document(language=language)).all_of("html")[0]["dir"] == direction


@pytest.mark.parametrize(
    ("path", "home"),
    [
        ("/austria/", "../index.html"),
        ("/countries/austria/", "../../index.html"),
        ("/a/b/c/", "../../../index.html"),
    ],
)
def test_a_page_links_home_from_any_depth_and_below_any_base(path: str, home: str) -> None:
    links = {link["href"] for link in judged(make_document(path)).all_of("a")}
    assert links == {home}
    for base in ("file:///home/me/site", "https://example.com/below/a/base"):
        assert urljoin(base + path + "index.html", home) == base + "/index.html"


@pytest.mark.parametrize("render", [lambda: make_document(), None], ids=["page", "index"])
def test_the_policy_allows_nothing_but_the_pages_own_style(render: Any) -> None:
    page = (render_page(render()) if render else render_index(sheet(listed()))).decode()
    policy = metas(Judge(page))["Content-Security-Policy"]
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert len(styles) == 1
    digest = base64.b64encode(hashlib.sha256(styles[0].encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_a_page_loads_nothing_from_anywhere() -> None:
    judge = judged(make_document())
    assert judge.dangers() == []
    assert [link["rel"] for link in judge.all_of("link")] == ["canonical"]
    assert "url(" not in judge.text_of("style")
    assert "@import" not in judge.text_of("style")


def test_a_style_sheet_names_both_schemes_and_never_ends_its_element() -> None:
    style = judged(make_document()).text_of("style")
    assert "prefers-color-scheme: dark" in style
    assert style.count("{") == style.count("}")


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_in_any_field_makes_a_harmless_page(payload: str) -> None:
    document = make_document(
        title=payload,
        meta_description=payload,
        introduction=payload,
        body=payload,
        site_title=payload,
    )
    page = render_page(document)
    judge = Judge(page.decode())
    assert judge.dangers() == []
    assert structured_data(judge) == document.json_ld
    assert judge.text_of("title") == f"{document.title} · {document.site_title}"
    assert judge.text_of("h1") == document.title
    assert len(judge.all_of("style")) == 1
    assert len(judge.all_of("link")) == 1
    assert len(judge.all_of("meta")) == len(judged(make_document()).all_of("meta"))
    assert parse_marker(mark_of(page)) == document.marker


@pytest.mark.parametrize("ending", ["</script>", "<!--<script>", "\u2028\u2029", "&lt;/script&gt;"])
def test_structured_data_cannot_end_its_script_element(ending: str) -> None:
    page = render_page(make_document(site_title=f"x{ending}y")).decode()
    script = re.search(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert script is not None
    assert not set("<>&\u2028\u2029") & set(script[1])
    assert json.loads(script[1])["isPartOf"]["name"] == f"x{ending}y"


# --- an index -----------------------------------------------------------------------------------


def test_an_index_links_every_page_with_its_description() -> None:
    page = render_index(sheet(listed(), listed("/a b/ö/", "A&O"))).decode()
    judge = Judge(page)
    assert [link["href"] for link in judge.all_of("a")] == [
        "#1",
        "./austria/index.html",
        "./a%20b/%C3%B6/index.html",
    ]
    assert "About A&amp;O." in page
    assert mark_of(page.encode()) == INDEX_MARK
    assert parse_marker(INDEX_MARK) is None


@pytest.mark.parametrize("path", ["/austria/", "/a/b/", "/länder/österreich/", "/c:d/", "/a%b/"])
def test_a_relative_link_reaches_the_file_of_its_path(path: str) -> None:
    reached = urljoin("https://example.com/below/index.html", relative_link(path))
    assert unquote(reached) == f"https://example.com/below{path}index.html"


def test_sheets_link_to_each_other_and_not_to_themselves() -> None:
    names = ("index.html", "index-2.html", "index-3.html")
    judge = Judge(render_index(sheet(listed(), number=2, file_names=names)).decode())
    assert [link["href"] for link in judge.all_of("a")][2:] == ["index.html", "index-3.html"]
    assert judge.all_of("b") == [{"aria-current": "page"}]


def test_a_single_sheet_has_no_numbers() -> None:
    assert Judge(render_index(sheet(listed())).decode()).all_of("b") == []


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_titles_make_a_harmless_index(payload: str) -> None:
    judge = Judge(render_index(sheet(listed(title=payload), site_title=payload)).decode())
    assert judge.dangers() == []
    assert judge.all_of("script") == []
    assert [link["href"] for link in judge.all_of("a")] == ["#1", "./austria/index.html"]
