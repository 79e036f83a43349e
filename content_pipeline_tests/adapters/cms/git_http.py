"""A repository served over smart HTTP on loopback, by git's own back end.

What belongs here: the few lines of CGI between an HTTP server and ``git http-backend``, with basic
authentication, and switches for what goes wrong on the way.
"""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

USER, PASSWORD = "pipeline", "s3cret-passw0rd"


@dataclass(slots=True, kw_only=True)
class GitServer:
    """The server's address, what it was asked, and how it misbehaves."""

    root: Path
    port: int = 0
    asked: list[str] = field(default_factory=list)
    needs_password: bool = False
    status: int | None = None
    """Answer every request with this status instead."""
    loses_answers: int = 0
    """So many pushes are carried out, and their answers cut off."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/site.git"


class _Handler(BaseHTTPRequestHandler):
    server_version = "git"
    protocol_version = "HTTP/1.0"

    @property
    def site(self) -> GitServer:
        found: GitServer = self.server.site  # type: ignore[attr-defined]
        return found

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *args: Any) -> None:
        """Say nothing on the tests' output."""

    def _answer(self) -> None:
        site = self.site
        site.asked.append(f"{self.command} {self.path}")
        expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if site.status is not None:
            self.send_error(site.status)
        elif site.needs_password and self.headers.get("Authorization") != expected:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
        else:
            self._run_back_end()

    def _run_back_end(self) -> None:
        path, _, query = self.path.partition("?")
        body = self._body()
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=True,
            env={
                "PATH": os.environ["PATH"],  # noqa: TID251 - git is somewhere on it
                "GIT_PROJECT_ROOT": str(self.site.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REMOTE_USER": USER,
                "REMOTE_ADDR": "127.0.0.1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            },
        ).stdout
        if self.site.loses_answers and path.endswith("/git-receive-pack"):
            self.site.loses_answers -= 1
            self.close_connection = True
            return
        head, _, text = done.partition(b"\r\n\r\n")
        lines = [line.decode().partition(": ") for line in head.split(b"\r\n")]
        headers = {name: value for name, _, value in lines}
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))


@contextmanager
def serving(root: Path) -> Iterator[GitServer]:
    """All repositories below ``root``, for the time of the block."""
    site = GitServer(root=root)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.site = site  # type: ignore[attr-defined]
        server.daemon_threads = True
        site.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
