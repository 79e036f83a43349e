import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.adapters.cms.git_deployed import MOST_BYTES, deployed_commit
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SHA256 = "0123456789abcdef" * 4


class Site(HTTPServer):
    """A web server that gives one answer to everything."""

    status = 200
    body = b""
    asked: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append(self.headers.get("Cache-Control", ""))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *args: Any) -> None:
        """Say nothing on the tests' output."""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def url_of(site: Site) -> str:
    return f"http://127.0.0.1:{site.server_address[1]}/deployed.txt"


@pytest.mark.parametrize(
    ("text", "commit"),
    [
        (f"{COMMIT}\n", COMMIT),
        (f'{{"commit": "{COMMIT}", "at": "2026-01-02"}}', COMMIT),
        (f"deployed {SHA256}", SHA256),
    ],
)
def test_the_commit_is_read_from_a_file_and_over_http(
    text: str, commit: str, site: Site, tmp_path: Path
) -> None:
    (tmp_path / "deployed.txt").write_text(text)
    assert deployed_commit(str(tmp_path / "deployed.txt")) == commit
    site.body = text.encode()
    assert deployed_commit(url_of(site)) == commit
    assert site.asked == ["no-cache"]


@pytest.mark.parametrize(
    "text", [b"", b"main", COMMIT[:-1].encode(), b"x" * MOST_BYTES + COMMIT.encode(), b"\xff" * 9]
)
def test_a_text_without_a_commit_is_none(text: bytes, site: Site, tmp_path: Path) -> None:
    (tmp_path / "deployed.txt").write_bytes(text)
    site.body = text
    for where in (str(tmp_path / "deployed.txt"), url_of(site)):
        with pytest.raises(CallFailed, match="no commit id stands there") as failed:
            deployed_commit(where)
        assert failed.value.failure.failure_class is FailureClass.TRANSIENT


@pytest.mark.parametrize("status", [404, 500, 503])
def test_an_error_of_the_site_is_no_answer(status: int, site: Site) -> None:
    site.status, site.body = status, COMMIT.encode()
    with pytest.raises(CallFailed, match="let the deployment write"):
        deployed_commit(url_of(site))


@pytest.mark.parametrize("where", ["http://127.0.0.1:1/", "http://[bad/", "/nowhere/x", "/"])
def test_what_is_not_there_is_no_answer(where: str) -> None:
    with pytest.raises(CallFailed):
        deployed_commit(where)
