"""A visitor's request decides, not the CMS's word."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from content_pipeline.adapters.cms.page_html import render_page
from content_pipeline.adapters.cms.public_pages import CACHE_BUSTER, PublicSite
from content_pipeline.core.failures import FailureClass
from content_pipeline_tests.adapters.cms.documents import make_document


class Site(ThreadingHTTPServer):
    """Serves what a test wants: status, headers and body of every page."""

    status = 200
    body = b""
    location: str | None = None
    visited: list[str]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.visited = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.visited.append(self.path)
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@pytest.fixture
def site() -> Iterator[Site]:
    server = Site()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def public(site: Site) -> Iterator[PublicSite]:
    visitor = PublicSite(site.base_url, deadline_s=5)
    yield visitor
    visitor.close()


def test_a_page_that_carries_our_mark_is_shown(site: Site, public: PublicSite) -> None:
    document = make_document(base_url=site.base_url)
    site.body = render_page(document)
    assert public.why_not_shown(document) is None
    (visited,) = site.visited
    assert visited == f"/austria/?{CACHE_BUSTER}={document.marker.content_hash}"


@pytest.mark.parametrize("revision", [1, 3])
def test_another_revision_is_not_ours(revision: int, site: Site, public: PublicSite) -> None:
    site.body = render_page(make_document(revision=revision, base_url=site.base_url))
    failure = public.why_not_shown(make_document(revision=2, base_url=site.base_url))
    assert failure is not None
    assert failure.failure_class is FailureClass.UNCERTAIN
    assert "another page or revision" in failure.message
    assert "/austria/" in failure.message


@pytest.mark.parametrize("status", [404, 301, 403, 500, 503])
def test_any_other_status_shows_nothing(status: int, site: Site, public: PublicSite) -> None:
    document = make_document(base_url=site.base_url)
    site.status, site.body = status, render_page(document)
    site.location = f"{site.base_url}/elsewhere/" if status == 301 else None
    failure = public.why_not_shown(document)
    assert failure is not None
    assert str(status) in failure.message
    assert len(site.visited) == 1, "no redirect is followed"


def test_a_site_that_cannot_be_reached_says_so() -> None:
    visitor = PublicSite("http://127.0.0.1:9", deadline_s=2)
    failure = visitor.why_not_shown(make_document(base_url="http://127.0.0.1:9"))
    visitor.close()
    assert failure is not None
    assert failure.failure_class is FailureClass.NOT_SENT
