from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest

from content_pipeline.adapters.cms.folder import FolderCMS
from content_pipeline.adapters.hooks.index_page import MAX_DESCRIPTION_CHARACTERS, IndexPage
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import ListedPage, SiteHook
from content_pipeline_tests.adapters.cms.documents import BASE_URL, make_document
from content_pipeline_tests.adapters.hooks.listings import (
    FIRST_MODIFIED_AT,
    listed,
    listing,
    numbered,
    renames,
)
from content_pipeline_tests.core.hostile_text import Judge

FOREIGN = "<!doctype html><title>Our lovely front page</title>"


def judged(file: Path) -> Judge:
    return Judge(file.read_text())


def page_links(file: Path) -> list[str]:
    links = (str(link["href"]) for link in judged(file).all_of("a"))
    return [unquote(link) for link in links if link.startswith("./")]


def letters(file: Path) -> str:
    return judged(file).text_of("h2")


def description(file: Path) -> str:
    metas = judged(file).all_of("meta")
    return next(str(meta["content"]) for meta in metas if meta.get("name") == "description")


def canonical(file: Path) -> str | None:
    return judged(file).all_of("link")[0]["href"]


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if not path.name.startswith("."))


def test_the_index_page_is_a_hook_of_its_kind(tmp_path: Path) -> None:
    hook: SiteHook = IndexPage(tmp_path)
    assert hook.kind == "index_page"


def test_every_link_of_the_index_opens_a_page_from_the_disk(tmp_path: Path) -> None:
    cms = FolderCMS(tmp_path, base_url=BASE_URL, clock=lambda: FIRST_MODIFIED_AT)
    paths = ("/austria/", "/a/deep/path/", "/österreich/")
    for path in paths:
        cms.publish(make_document(path), replacing=None)
    pages = [listed("Austria", path=path) for path in paths]
    announcement = IndexPage(tmp_path).announce(listing(pages))
    assert announcement.changed
    links = page_links(Path(announcement.location))
    assert len(links) == 3
    for link in links:
        opened = tmp_path / link
        assert opened.is_file()
        home = str(judged(opened).all_of("a")[0]["href"])
        assert (opened.parent / home).resolve() == (tmp_path / "index.html").resolve()


def test_pages_are_grouped_by_letter_whatever_their_case_and_accents(tmp_path: Path) -> None:
    shown = "1001 nights|→ north|Ägypten|Åland|albania|Alps|Oman|österreich|Zambia|日本"
    titles = sorted(shown.split("|"))
    pages = [listed(title, path=f"/{number}/") for number, title in enumerate(titles)]
    IndexPage(tmp_path).announce(listing(pages))
    assert letters(tmp_path / "index.html") == "#AOZ日"
    links = page_links(tmp_path / "index.html")
    assert [titles[int(link.split("/")[1])] for link in links] == shown.split("|")


def test_pages_with_one_title_stand_in_the_order_of_their_paths(tmp_path: Path) -> None:
    pages = [listed("Same", path=path) for path in ("/c/", "/a/", "/b/")]
    IndexPage(tmp_path).announce(listing(pages))
    assert page_links(tmp_path / "index.html") == [
        "./a/index.html",
        "./b/index.html",
        "./c/index.html",
    ]


@pytest.mark.parametrize("title", ["", "…", "   ", "🇦🇹 Austria", "ß"])
def test_any_title_finds_a_group(tmp_path: Path, title: str) -> None:
    IndexPage(tmp_path).announce(listing([listed(title, path="/a/")]))
    assert letters(tmp_path / "index.html") == ("S" if title == "ß" else "#")
    assert page_links(tmp_path / "index.html") == ["./a/index.html"]


def test_the_description_names_the_first_pages_and_stays_short(tmp_path: Path) -> None:
    IndexPage(tmp_path).announce(listing([listed("Austria"), listed("Belgium")]))
    assert description(tmp_path / "index.html") == "Austria, Belgium"
    IndexPage(tmp_path).announce(listing(numbered(500)))
    shown = description(tmp_path / "index.html")
    assert shown.startswith("P000, P001")
    assert MAX_DESCRIPTION_CHARACTERS - 10 < len(shown) <= MAX_DESCRIPTION_CHARACTERS


def test_a_site_without_pages_has_a_front_page(tmp_path: Path) -> None:
    IndexPage(tmp_path).announce(listing([]))
    assert judged(tmp_path / "index.html").text_of("h1") == "Countries"
    assert page_links(tmp_path / "index.html") == []


def test_an_unchanged_listing_writes_nothing(tmp_path: Path) -> None:
    hook = IndexPage(tmp_path, max_entries=2)

    def state() -> dict[str, tuple[int, int]]:
        files = tmp_path.glob("*.html")
        return {file.name: (file.stat().st_mtime_ns, file.stat().st_ino) for file in files}

    hook.announce(listing(numbered(5)))
    before = state()
    assert len(before) == 3
    assert not hook.announce(listing(numbered(5))).changed
    assert state() == before


def test_a_new_time_alone_does_not_change_the_index(tmp_path: Path) -> None:
    later = listed("Austria", modified_at=FIRST_MODIFIED_AT + timedelta(days=1))
    IndexPage(tmp_path).announce(listing([listed("Austria")]))
    assert not IndexPage(tmp_path).announce(listing([later])).changed


# --- many pages ---------------------------------------------------------------------------------


def test_many_pages_are_cut_into_sheets_that_reach_each_other(tmp_path: Path) -> None:
    IndexPage(tmp_path, max_entries=2).announce(listing(numbered(5)))
    sheets = ["index.html", "index-2.html", "index-3.html"]
    assert names(tmp_path) == sorted(sheets)
    listed_links = [link for sheet in sheets for link in page_links(tmp_path / sheet)]
    assert listed_links == [f"./p{number:03}/index.html" for number in range(5)]
    for sheet in sheets:
        links = {link["href"] for link in judged(tmp_path / sheet).all_of("a")}
        assert links >= set(sheets) - {sheet}
    assert [canonical(tmp_path / sheet) for sheet in sheets] == [
        "https://example.com/",
        "https://example.com/index-2.html",
        "https://example.com/index-3.html",
    ]


def test_the_front_page_is_written_after_the_sheets_it_links_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = renames(monkeypatch)
    IndexPage(tmp_path, max_entries=2).announce(listing(numbered(5)))
    assert renamed == ["index-3.html", "index-2.html", "index.html"]


@pytest.mark.parametrize(("count", "sheets"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_a_sheet_is_filled_before_the_next_one_starts(
    tmp_path: Path, count: int, sheets: int
) -> None:
    IndexPage(tmp_path, max_entries=2).announce(listing(numbered(count)))
    assert len(names(tmp_path)) == sheets


def test_sheets_no_longer_needed_are_removed(tmp_path: Path) -> None:
    hook = IndexPage(tmp_path, max_entries=2)
    hook.announce(listing(numbered(5)))
    assert hook.announce(listing(numbered(2))).changed
    assert names(tmp_path) == ["index.html"]


# --- files of other people ----------------------------------------------------------------------


def pages() -> list[ListedPage]:
    return [listed("Austria"), listed("Belgium")]


def test_a_front_page_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(FOREIGN)
    with pytest.raises(CallFailed, match="move it away") as error:
        IndexPage(tmp_path, max_entries=1).announce(listing(pages()))
    assert error.value.failure.failure_class is FailureClass.CONFLICT
    assert (tmp_path / "index.html").read_text() == FOREIGN
    assert names(tmp_path) == ["index.html"]


def test_a_numbered_page_of_somebody_else_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "index-2.html").write_text(FOREIGN)
    IndexPage(tmp_path).announce(listing(pages()))
    assert names(tmp_path) == ["index-2.html", "index.html"]


def test_a_front_page_whose_mark_was_removed_belongs_to_the_person(tmp_path: Path) -> None:
    hook = IndexPage(tmp_path)
    hook.announce(listing(pages()))
    text = (tmp_path / "index.html").read_text().replace('content="index"', 'content="mine"')
    (tmp_path / "index.html").write_text(text)
    with pytest.raises(CallFailed):
        hook.announce(listing(pages()))
    assert (tmp_path / "index.html").read_text() == text


def test_pages_are_untouched_by_the_index(tmp_path: Path) -> None:
    cms = FolderCMS(tmp_path, base_url=BASE_URL, clock=lambda: FIRST_MODIFIED_AT)
    published = cms.publish(make_document(), replacing=None)
    IndexPage(tmp_path).announce(listing([listed("Austria")]))
    assert cms.look_up("x", "/austria/", None).page == published
