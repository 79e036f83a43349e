"""The store: what it keeps, what it shows of the past, and that all of it survives."""

import re
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.sandbox.cms.pages import Page, Status
from content_pipeline.sandbox.cms.settings import MARKER_PATTERN
from content_pipeline.sandbox.cms.store import JOURNAL_FILE, Store
from content_pipeline_tests.sandbox.cms.wordpress import marked

PATTERN = re.compile(MARKER_PATTERN)
MOMENT = "2026-11-30T02:01:58"


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = Store.in_memory() if request.param == "memory" else Store.in_folder(tmp_path)
    yield made
    made.close()


def put(store: Store, page_id: int = 0, **fields: Any) -> Page:
    """Write a page, new for the id 0; ``fields`` change what is there."""
    held = store.pages.get(page_id)
    fresh = Page(id=page_id or store.new_id(), date_gmt=MOMENT, modified_gmt=MOMENT)
    page = replace(held or fresh, **fields)
    store.write(page, by=2, cause="update" if held else "create", pattern=PATTERN)
    return page


def everything(store: Store) -> tuple[Any, ...]:
    """All that can be asked of a store."""
    return (
        store.pages,
        store.changes,
        store.operations,
        store.faults,
        store.delivered,
        {page_id: store.revisions(page_id) for page_id in store.pages},
        [store.key_of(page_id) for page_id in range(20)],
        store.requests(),
        store.deliveries(),
        store.received,
    )


def lived_in(store: Store) -> None:
    """A bit of everything."""
    page = put(store, title="Ünïcode\u2028", content=marked("k1"), slug="a")
    put(store, page.id, status=Status.PUBLISH)
    put(store, page.id, content=marked("k1", 2))
    child = put(store, slug="b", parent=page.id, meta={"_cp_key": "k2", "_cp_rev": "4"})
    put(store, slug="c", status=Status.TRASH)
    store.delete(page.id, by=4, cause="delete")
    put(store, child.id, title="later")
    noted = {"method": "GET", "path": "/", "page_id": None, "by": None, "wait_s": None}
    store.note_request("list", "k1", {**noted, "fault": "drop"})
    store.note_delivery("deploy", "site", {"status": 201, "headers": {}, "body": "x"})


def test_a_store_opened_again_holds_the_same(tmp_path: Path) -> None:
    first = Store.in_folder(tmp_path)
    lived_in(first)
    before = everything(first)
    # Not closed: as after a kill.
    again = Store.in_folder(tmp_path)
    assert everything(again) == before
    assert put(again).id == put(first).id, "the sequence of ids goes on"
    first.close()
    again.close()


def test_a_torn_last_line_is_forgotten(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    lived_in(store)
    before = everything(store)
    store.close()
    with (tmp_path / JOURNAL_FILE).open("ab") as file:
        file.write(b'{"record":"write","at":"2026')
    again = Store.in_folder(tmp_path)
    assert everything(again) == before
    put(again, slug="next")
    again.close()
    third = Store.in_folder(tmp_path)
    assert [page.slug for page in third.slugged("next")] == ["next"]
    third.close()


@pytest.mark.parametrize(
    "line", ["nonsense", '{"record":"other"}', '{"record":"write"}', '{"record":"delete"}', "[]"]
)
def test_a_line_of_something_else_is_told_with_its_place(tmp_path: Path, line: str) -> None:
    (tmp_path / JOURNAL_FILE).write_text(f"{line}\n")
    with pytest.raises(ConfigurationError, match=f"{JOURNAL_FILE}, line 1"):
        Store.in_folder(tmp_path)


def test_a_line_that_cannot_be_written_whole_changes_nothing(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    page = put(store, slug="a", content="old")
    size = (tmp_path / JOURNAL_FILE).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, hard))
    try:
        with pytest.raises(OSError):
            put(store, page.id, content="new" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.pages[page.id].content == "old"
    assert (tmp_path / JOURNAL_FILE).stat().st_size == size
    put(store, page.id, content="newer")
    store.close()
    again = Store.in_folder(tmp_path)
    assert again.pages[page.id].content == "newer"
    again.close()


def test_slugs_lead_to_pages_as_they_are_now(store: Store) -> None:
    first, second = put(store, slug="a"), put(store, slug="a")
    assert store.slugged("a") == [first, second]
    moved = put(store, first.id, slug="b")
    assert (store.slugged("a"), store.slugged("b")) == ([second], [moved])
    store.delete(second.id, by=2, cause="delete")
    assert store.slugged("a") == []


def test_a_path_is_made_of_the_slugs_above(store: Store) -> None:
    top = put(store, slug="a")
    middle = put(store, slug="b", parent=top.id)
    leaf = put(store, slug="c", parent=middle.id)
    assert store.path_of(leaf) == "/a/b/c/"
    put(store, top.id, slug="z")
    assert store.path_of(leaf) == "/z/b/c/"
    store.delete(middle.id, by=2, cause="delete")
    assert store.path_of(store.pages[leaf.id]) == "/z/c/", "it moved up to its grandparent"


def test_a_path_of_pages_that_are_each_others_parents_ends(store: Store) -> None:
    first = put(store, slug="a")
    second = put(store, slug="b", parent=first.id)
    put(store, first.id, parent=second.id)
    assert store.path_of(store.pages[second.id]) == "/a/b/"


def test_revisions_keep_the_text_as_it_was_written(store: Store) -> None:
    page = put(store, content="1")
    assert store.revisions(page.id) == []
    put(store, page.id, content="2")
    put(store, page.id, slug="a")
    put(store, page.id, content="3")
    kept = [store.text_of(each).content for each in store.revisions(page.id)]
    assert kept == ["3", "2"]
    assert len({each.id for each in store.revisions(page.id)} | {page.id}) == 3


@pytest.mark.parametrize(
    ("content", "meta", "expected"),
    [
        (marked("k1", 7), {}, ("k1", 7)),
        ("<!-- content-pipeline page=p.1-x rev=3 hash=ff -->", {}, ("p.1-x", 3)),
        (marked("k1") + marked("k2", 2), {}, ("k1", 1)),
        ("no mark", {"_cp_key": "k3", "_cp_rev": "5", "_cp_hash": "h"}, ("k3", 5)),
        ("no mark", {"_cp_key": "k3"}, ("k3", 0)),
        ("key=k rev=x h=a", {}, None),
        ("monkey=k1 rev=1", {}, None),
    ],
)
def test_our_mark_is_read_from_content_or_fields(
    store: Store, content: str, meta: dict[str, str], expected: tuple[str, int] | None
) -> None:
    page = put(store, content=content, meta=meta)
    mark = store.changes[-1].mark
    assert (None if mark is None else (mark.key, mark.revision)) == expected
    assert store.key_of(page.id) == (expected and expected[0])


def test_the_key_of_a_page_outlives_its_mark_and_the_page(store: Store) -> None:
    page = put(store, content=marked("k1"))
    put(store, page.id, content="rewritten by hand")
    assert store.changes[-1].mark is None
    store.delete(page.id, by=4, cause="delete")
    assert store.key_of(page.id) == "k1"
    assert store.known_key("key=k1") == "k1"
    assert store.known_key("key=k2") is None


def test_lists_can_lag_behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    page = put(store, title="1")
    clock[0] += 5
    put(store, page.id, title="2")
    other = put(store, title="other")
    clock[0] += 5
    store.delete(other.id, by=2, cause="delete")
    assert titles(store, 0) == ["2"]
    assert titles(store, 1) == ["2", "other"]
    assert titles(store, 6) == ["1"]
    assert titles(store, 11) == []
    clock[0] += 1000
    put(store, title="3")
    assert titles(store, 50) == ["2"], "what is older than any lag is as it is now"


def titles(store: Store, lag_s: float) -> list[str]:
    return sorted(page.title for page in store.listed(lag_s))


def test_a_search_sees_a_page_as_it_is_now(store: Store) -> None:
    page = put(store, title="Title", content="OLD", excerpt="Short")
    put(store, content="Something else")
    assert page.searchable == "title\nshort\nold"
    for word in ("title", "shor", "ld"):
        assert list(store.listed(0, [word])) == [page]
    renewed = put(store, page.id, content="New")
    assert list(store.listed(0, ["new", "nowhere"])) == [renewed]
    assert list(store.listed(0, ["old"])) == []
    store.delete(page.id, by=2, cause="delete")
    assert list(store.listed(0, ["new"])) == []


def test_a_reset_forgets_everything(store: Store) -> None:
    lived_in(store)
    store.reset()
    assert (store.pages, store.changes, store.requests()) == ({}, [], [])
    assert put(store).id == 1
