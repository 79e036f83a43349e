"""Recent changes on WordPress: what is listed again, and what a point remembers."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from content_pipeline.adapters.cms.wordpress import WordPressCMS
from content_pipeline.core.cms import RecentChanges
from content_pipeline_tests.adapters.cms.test_wordpress_pages import page
from content_pipeline_tests.adapters.cms.test_wordpress_rest import connect
from content_pipeline_tests.adapters.llm.loopback import Received, Server, Wire, answer, serving

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
DATE = {"Date": "Mon, 30 Nov 2026 12:30:00 GMT"}


def written(number: int, *, seconds: float = 0, revision: int = 1, **more: Any) -> dict[str, Any]:
    """A page written ``seconds`` after noon."""
    at = (NOON + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    links = {"predecessor-version": [{"id": revision, "href": "x"}]}
    return page(id=number, slug=f"p{number}", modified_gmt=at, _links=links, **more)


@contextmanager
def holding(pages: list[dict[str, Any]]) -> Iterator[tuple[WordPressCMS, Server]]:
    """A WordPress with ``pages``, which a test may change while it runs."""

    def behaviour(wire: Wire, request: Received) -> None:
        asked = {k: v[0] for k, v in parse_qs(urlsplit(request.target).query).items()}
        since = asked.get("modified_after", "").removesuffix("Z")
        found = [each for each in pages if each["modified_gmt"] > since]
        by = "id" if asked["orderby"] == "id" else "modified_gmt"
        found.sort(key=lambda each: each[by], reverse=asked["order"] == "desc")
        first = 100 * (int(asked["page"]) - 1)
        totals = {"X-WP-TotalPages": str(-(-len(found) // 100))}
        answer(200, found[first : first + 100], {**DATE, **totals})(wire, request)

    with serving(behaviour) as server:
        cms = connect(f"http://127.0.0.1:{server.port}")
        try:
            yield cms, server
        finally:
            cms.close()


def ids(told: RecentChanges) -> list[int]:
    return sorted(int(changed.remote_id) for changed in told.pages)


def test_the_last_minute_is_listed_once_and_then_only_when_it_looks_different() -> None:
    pages = [written(1, seconds=-300), written(2, seconds=-30), written(3)]
    with holding(pages) as (cms, server):
        begun = cms.recent_changes(None)
        assert (begun.pages, len(server.received)) == ((), 1)
        told = cms.recent_changes(begun.point)
        assert (ids(told), len(server.received)) == ([2, 3], 3)
        for _ in range(2):
            again = cms.recent_changes(told.point)
            assert again == RecentChanges(pages=(), point=told.point)
        assert len(server.received) == 5


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (written(3, revision=2), [2, 3]),
        (written(3, status="draft"), [2, 3]),
        (written(3) | {"slug": "renamed"}, [2, 3]),
        (written(3, seconds=40), [2, 3]),
        (written(3, seconds=4000), [2, 3]),
    ],
    ids=["text in the same second", "status", "slug", "soon", "later"],
)
def test_every_change_since_is_told(changed: dict[str, Any], told: list[int]) -> None:
    pages = [written(1, seconds=-300), written(2, seconds=-30), written(3)]
    with holding(pages) as (cms, _):
        point = cms.recent_changes(cms.recent_changes(None).point).point
        pages[2] = changed
        assert ids(cms.recent_changes(point)) == told


def test_a_write_that_waited_for_the_database_shows_with_its_old_time() -> None:
    pages = [written(1, seconds=-300), written(3)]
    with holding(pages) as (cms, _):
        point = cms.recent_changes(cms.recent_changes(None).point).point
        pages.append(written(4, seconds=-50))
        assert ids(cms.recent_changes(point)) == [3, 4]


def test_a_point_moves_on_and_what_is_older_than_a_minute_is_left_behind() -> None:
    pages = [written(1), written(2, seconds=10)]
    with holding(pages) as (cms, _):
        point = cms.recent_changes(cms.recent_changes(None).point).point
        pages[1] = written(2, seconds=500, revision=2)
        moved = cms.recent_changes(point)
        assert moved.point.startswith("2026-11-30T12:08:20")
        assert cms.recent_changes(moved.point).pages == ()
        pages[1] = written(2, seconds=500, revision=3)
        assert ids(cms.recent_changes(moved.point)) == [2]


def test_many_pages_of_one_minute_are_read_once() -> None:
    pages = [written(number, seconds=number / 10) for number in range(1, 251)]
    with holding(pages) as (cms, server):
        told = cms.recent_changes(cms.recent_changes(None).point)
        assert ids(told) == list(range(1, 251))
        before = len(server.received)
        assert cms.recent_changes(told.point).pages == ()
        assert len(server.received) == before + 1


def test_a_site_that_was_emptied_keeps_the_point() -> None:
    pages = [written(1)]
    with holding(pages) as (cms, _):
        point = cms.recent_changes(cms.recent_changes(None).point).point
        pages.clear()
        emptied = cms.recent_changes(point)
        assert emptied.pages == ()
        assert emptied.point.startswith("2026-11-30T12:00:00")


def test_a_page_dated_ahead_is_told_once_and_moves_no_point() -> None:
    pages = [written(1), written(2, seconds=86_400)]
    with holding(pages) as (cms, _):
        told = cms.recent_changes(cms.recent_changes(None).point)
        assert ids(told) == [1, 2]
        assert told.point.startswith("2026-11-30T12:00:00")
        assert cms.recent_changes(told.point).pages == ()
        pages[0] = written(1, seconds=30, revision=2)
        assert ids(cms.recent_changes(told.point)) == [1, 2]
