import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from content_pipeline.adapters.hooks.sitemap import MAX_BYTES, MAX_URLS, SitemapFile
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import SiteHook
from content_pipeline_tests.adapters.hooks.listings import (
    FIRST_MODIFIED_AT,
    listed,
    listing,
    numbered,
    renames,
)

NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
W3C_DATETIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)")
FOREIGN = b'<?xml version="1.0"?>\n<urlset><!-- by hand --></urlset>\n'


def entries(file: Path, root_element: str = "urlset") -> list[tuple[str, str]]:
    """Location and time of each entry, the file checked against the rules of sitemaps.org."""
    data = file.read_bytes()
    assert data.startswith(b'<?xml version="1.0" encoding="UTF-8"?>')
    root = ET.fromstring(data)
    assert root.tag == NAMESPACE + root_element
    assert len(root) <= MAX_URLS
    assert len(data) <= MAX_BYTES
    found = []
    for entry in root:
        assert entry.tag == NAMESPACE + {"urlset": "url", "sitemapindex": "sitemap"}[root_element]
        assert [child.tag for child in entry] == [NAMESPACE + "loc", NAMESPACE + "lastmod"]
        location, modified = (child.text or "" for child in entry)
        assert location.isascii()
        assert len(location) < 2048
        assert W3C_DATETIME.fullmatch(modified)
        found.append((location, modified))
    return found


def state(root: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in root.glob("*.xml")}


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if not path.name.startswith("."))


def test_the_sitemap_is_a_hook_of_its_kind(tmp_path: Path) -> None:
    hook: SiteHook = SitemapFile(tmp_path)
    assert hook.kind == "sitemap"


def test_every_page_is_listed_with_the_time_of_its_last_change(tmp_path: Path) -> None:
    pages = [
        listed("Austria", modified_at=datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)),
        listed(
            "Belgium",
            modified_at=datetime(2026, 1, 2, 1, 0, tzinfo=timezone(timedelta(hours=2))),
        ),
    ]
    announcement = SitemapFile(tmp_path).announce(listing(pages))
    assert announcement.changed
    assert announcement.location == str(tmp_path / "sitemap.xml")
    assert entries(tmp_path / "sitemap.xml") == [
        ("https://example.com/austria/", "2026-01-02T03:04:05Z"),
        ("https://example.com/belgium/", "2026-01-01T23:00:00Z"),
    ]


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("https://example.com/a&b/", "https://example.com/a&b/"),
        ("https://example.com/o'neil\"s/", "https://example.com/o'neil%22s/"),
        ("https://example.com/<a>/", "https://example.com/%3Ca%3E/"),
        ("https://example.com/österreich/", "https://example.com/%C3%B6sterreich/"),
        ("https://example.com/caf%C3%A9/", "https://example.com/caf%C3%A9/"),
        ("https://example.com/日本/", "https://example.com/%E6%97%A5%E6%9C%AC/"),
        ("https://example.com:8443/x/?a=1&b=2", "https://example.com:8443/x/?a=1&b=2"),
        ("https://example.com/]]>/", "https://example.com/]]%3E/"),
    ],
)
def test_urls_are_encoded_and_escaped(tmp_path: Path, url: str, written: str) -> None:
    SitemapFile(tmp_path).announce(listing([listed("A", url=url)]))
    assert [location for location, _ in entries(tmp_path / "sitemap.xml")] == [written]


def test_a_site_without_pages_has_an_empty_sitemap(tmp_path: Path) -> None:
    SitemapFile(tmp_path).announce(listing([]))
    assert entries(tmp_path / "sitemap.xml") == []


def test_an_unchanged_listing_writes_nothing(tmp_path: Path) -> None:
    hook = SitemapFile(tmp_path, max_urls=2)
    assert hook.announce(listing(numbered(5))).changed
    before = state(tmp_path)
    assert len(before) == 4
    assert not hook.announce(listing(numbered(5))).changed
    assert state(tmp_path) == before


def test_a_changed_page_rewrites_only_its_own_file_and_the_index(tmp_path: Path) -> None:
    hook = SitemapFile(tmp_path, max_urls=2)
    pages = numbered(6)
    hook.announce(listing(pages))
    before = state(tmp_path)
    pages[3] = listed("P003", modified_at=FIRST_MODIFIED_AT + timedelta(days=300))
    assert hook.announce(listing(pages)).changed
    after = state(tmp_path)
    rewritten = {name for name in after if after[name] != before[name]}
    assert rewritten == {"sitemap-2.xml", "sitemap.xml"}


# --- limits -------------------------------------------------------------------------------------


def test_beyond_the_limit_of_urls_an_index_lists_numbered_files(tmp_path: Path) -> None:
    SitemapFile(tmp_path, max_urls=2).announce(listing(numbered(5)))
    assert entries(tmp_path / "sitemap.xml", "sitemapindex") == [
        ("https://example.com/sitemap-1.xml", "2026-03-02T12:00:00Z"),
        ("https://example.com/sitemap-2.xml", "2026-03-04T12:00:00Z"),
        ("https://example.com/sitemap-3.xml", "2026-03-05T12:00:00Z"),
    ]
    located = [
        location
        for number in (1, 2, 3)
        for location, _ in entries(tmp_path / f"sitemap-{number}.xml")
    ]
    assert located == [page.url for page in numbered(5)]


@pytest.mark.parametrize("count", [1, 2])
def test_exactly_the_limit_still_fits_into_one_file(tmp_path: Path, count: int) -> None:
    SitemapFile(tmp_path, max_urls=2).announce(listing(numbered(count)))
    assert names(tmp_path) == ["sitemap.xml"]
    assert len(entries(tmp_path / "sitemap.xml")) == count


def test_no_file_is_larger_than_the_limit_of_bytes(tmp_path: Path) -> None:
    SitemapFile(tmp_path).announce(listing(numbered(3)))
    exactly = (tmp_path / "sitemap.xml").stat().st_size
    SitemapFile(tmp_path, max_bytes=exactly).announce(listing(numbered(3)))
    assert names(tmp_path) == ["sitemap.xml"]
    SitemapFile(tmp_path, max_bytes=exactly - 1).announce(listing(numbered(3)))
    assert names(tmp_path) == ["sitemap-1.xml", "sitemap-2.xml", "sitemap.xml"]
    SitemapFile(tmp_path, max_bytes=exactly).announce(listing(numbered(9)))
    assert names(tmp_path) == [*(f"sitemap-{number}.xml" for number in (1, 2, 3)), "sitemap.xml"]
    for number in (1, 2, 3):
        assert (tmp_path / f"sitemap-{number}.xml").stat().st_size == exactly


def test_the_defaults_are_the_limits_of_the_protocol() -> None:
    assert (MAX_URLS, MAX_BYTES) == (50_000, 52_428_800)


def test_the_index_is_written_after_the_files_it_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = renames(monkeypatch)
    SitemapFile(tmp_path, max_urls=1).announce(listing(numbered(2)))
    assert renamed == ["sitemap-1.xml", "sitemap-2.xml", "sitemap.xml"]


def test_files_no_longer_needed_are_removed(tmp_path: Path) -> None:
    hook = SitemapFile(tmp_path, max_urls=2)
    hook.announce(listing(numbered(7)))
    assert names(tmp_path) == [*(f"sitemap-{number}.xml" for number in range(1, 5)), "sitemap.xml"]
    hook.announce(listing(numbered(3)))
    assert names(tmp_path) == ["sitemap-1.xml", "sitemap-2.xml", "sitemap.xml"]
    assert hook.announce(listing(numbered(2))).changed
    assert names(tmp_path) == ["sitemap.xml"]
    assert len(entries(tmp_path / "sitemap.xml")) == 2


def test_a_leftover_file_alone_is_a_change(tmp_path: Path) -> None:
    hook = SitemapFile(tmp_path, max_urls=2)
    hook.announce(listing(numbered(3)))
    leftover = (tmp_path / "sitemap-1.xml").read_bytes()
    hook.announce(listing(numbered(1)))
    (tmp_path / "sitemap-1.xml").write_bytes(leftover)
    assert hook.announce(listing(numbered(1))).changed
    assert names(tmp_path) == ["sitemap.xml"]


# --- files of other people ----------------------------------------------------------------------


def test_a_sitemap_written_by_hand_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "sitemap.xml").write_bytes(FOREIGN)
    hook = SitemapFile(tmp_path, max_urls=1)
    with pytest.raises(CallFailed, match="move it away") as error:
        hook.announce(listing(numbered(2)))
    assert error.value.failure.failure_class is FailureClass.CONFLICT
    assert (tmp_path / "sitemap.xml").read_bytes() == FOREIGN
    assert names(tmp_path) == ["sitemap.xml"]


def test_a_numbered_file_written_by_hand_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "sitemap-9.xml").write_bytes(FOREIGN)
    (tmp_path / "sitemap-news.xml").write_bytes(FOREIGN)
    SitemapFile(tmp_path).announce(listing(numbered(1)))
    assert names(tmp_path) == ["sitemap-9.xml", "sitemap-news.xml", "sitemap.xml"]


def test_our_own_sitemap_is_written_anew_after_an_edit(tmp_path: Path) -> None:
    hook = SitemapFile(tmp_path)
    hook.announce(listing(numbered(1)))
    wanted = (tmp_path / "sitemap.xml").read_bytes()
    (tmp_path / "sitemap.xml").write_bytes(wanted + b"<!-- edited -->")
    assert hook.announce(listing(numbered(1))).changed
    assert (tmp_path / "sitemap.xml").read_bytes() == wanted


def test_a_folder_in_the_way_is_a_storage_failure(tmp_path: Path) -> None:
    (tmp_path / "sitemap.xml").mkdir()
    with pytest.raises(CallFailed) as error:
        SitemapFile(tmp_path).announce(listing(numbered(1)))
    assert error.value.failure.failure_class is FailureClass.STORAGE
