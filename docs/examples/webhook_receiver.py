"""A receiver of the webhook: the whole contract on a dictionary, with nothing but Python itself.

Take it as a pattern for an endpoint of your own, with your site's store in the place of ``Pages``.
To try it out::

    WEBHOOK_SIGNING_KEY=whsec_... python webhook_receiver.py 8099

Its pages can be seen at their paths on the same port. The contract: docs/webhook-contract.md.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

CONTRACT = 1
TOLERANCE_S = 300
"""A request that was signed longer ago, or so far ahead, is refused."""
ENDPOINT = "/cms"
SLICE = 100
LONGEST_BODY = 8 * 1024 * 1024


class Refused(Exception):
    """The request is not done; ``code`` is one of the contract's."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def verify(key: bytes, method: str, target: str, headers: Any, body: bytes, now_s: float) -> None:
    """Raises Refused unless the request was signed with our key, for this target, just now."""
    request_id = headers.get("webhook-id", "")
    sent_at = headers.get("webhook-timestamp", "")
    made = hashlib.sha256(f"{method} {target}\n".encode() + body).hexdigest()[:32]
    if request_id != f"msg_{made}":
        raise Refused(401, "signature", "the id is not this request's")
    if not sent_at.isdecimal() or abs(now_s - int(sent_at)) > TOLERANCE_S:
        raise Refused(401, "signature", "the timestamp is missing or too far off")
    mac = hmac.new(key, f"{request_id}.{sent_at}.".encode() + body, hashlib.sha256).digest()
    wanted = f"v1,{base64.b64encode(mac).decode()}"
    # Several signatures, by a space between, stand there while keys are changed.
    given = headers.get("webhook-signature", "").split(" ")
    if not any(hmac.compare_digest(wanted, each) for each in given):
        raise Refused(401, "signature", "the signature is not ours")


@dataclass
class Page:
    """What is held of one page."""

    remote_id: str
    path: str
    status: str
    version: int
    """Grows with every write of anybody, over all pages."""
    document: dict[str, Any] = field(default_factory=dict)
    page_id: str | None = None

    def told(self) -> dict[str, Any]:
        """The page as the contract writes it."""
        ours = self.page_id is not None
        return {
            **self.glance(),
            "page_id": self.page_id,
            "revision": self.document["revision"] if ours else None,
            "content_hash": self.document["content_hash"] if ours else None,
            "title": self.document["title"],
            "meta_description": self.document.get("meta_description", ""),
            "body_html": self.document["body_html"],
        }

    def glance(self) -> dict[str, Any]:
        """The little that a listing tells."""
        names = ("remote_id", "path", "status")
        return {name: getattr(self, name) for name in names} | {"version": str(self.version)}


class Pages:
    """The store: every write is one step under a lock, as it would be in one transaction."""

    def __init__(self, capabilities: dict[str, bool]) -> None:
        self.capabilities = capabilities
        self._pages: dict[str, Page] = {}
        self._version = 0
        self.lock = threading.RLock()

    def all(self) -> list[Page]:
        """Every page, trashed ones too, in a lasting order."""
        return sorted(self._pages.values(), key=lambda page: int(page.remote_id))

    def at(self, path: str) -> Page | None:
        """The page at ``path``, visible or not."""
        return next((p for p in self.all() if p.path == path and p.status != "trashed"), None)

    def changed(self, page: Page) -> None:
        """Give ``page`` a version that no page had before."""
        self._version += 1
        page.version = self._version

    def create(self, path: str, status: str, document: dict[str, Any], page_id: str | None) -> Page:
        """A new page. Refused when we hold one of that id, or one stands at the path."""
        if page_id is not None and any(page.page_id == page_id for page in self.all()):
            raise Refused(409, "exists", "a page with that page_id exists")
        if self.at(path) is not None:
            raise Refused(409, "taken", "another page stands at that path")
        page = Page(
            remote_id=str(self._version + 1),
            path=path,
            status=status,
            version=0,
            document=document,
            page_id=page_id,
        )
        self.changed(page)
        self._pages[page.remote_id] = page
        return page

    def seen(self, replaces: dict[str, Any]) -> Page:
        """The page that ``replaces`` names, if it is still what was seen."""
        page = self._pages.get(str(replaces["remote_id"]))
        if page is None:
            raise Refused(409, "changed", "there is no such page any more")
        if str(page.version) != replaces["version"]:
            raise Refused(409, "changed", "the page was changed since")
        return page

    def replace(self, page: Page, document: dict[str, Any], page_id: str) -> None:
        """Publish ``document`` as ``page``."""
        there = self.at(document["path"])
        if there is not None and there is not page:
            raise Refused(409, "taken", "another page stands at that path")
        page.path, page.document, page.page_id = document["path"], document, page_id
        page.status = "published"
        self.changed(page)

    def hide(self, page: Page, status: str) -> None:
        """Take ``page`` off the site and keep it."""
        page.status = status
        self.changed(page)

    def drop(self, page: Page) -> None:
        """Forget ``page``."""
        del self._pages[page.remote_id]


class Receiver:
    """Answers requests that were verified."""

    def __init__(self, pages: Pages, name: str) -> None:
        self.pages = pages
        self._name = name

    def answer(self, method: str, target: str, body: bytes) -> dict[str, Any]:
        """What the contract wants as an answer. Raises Refused."""
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        asked = {name: values[0] for name, values in query.items()}
        with self.pages.lock:
            if method == "PUT" and path.startswith("pages/"):
                return self._write(path.removeprefix("pages/"), json.loads(body))
            if method == "GET" and path in ("", "pages", "inventory", "changes"):
                reader = getattr(self, f"_{path or 'describe'}")
                told: dict[str, Any] = reader(asked)
                return told
        raise Refused(404, "unsupported", "the contract has no such request")

    def _describe(self, _asked: dict[str, str]) -> dict[str, Any]:
        return {"name": self._name, "capabilities": self.pages.capabilities}

    def _pages(self, asked: dict[str, str]) -> dict[str, Any]:
        page_id, path, remote_id = (asked.get(n) for n in ("page_id", "path", "remote_id"))
        found = [
            page
            for page in self.pages.all()
            if (page_id is not None and page.page_id == page_id)
            or page.remote_id == remote_id
            or (page.path == path and page.status != "trashed")
        ]
        return {"pages": [page.told() for page in found]}

    def _inventory(self, asked: dict[str, str]) -> dict[str, Any]:
        after = int(asked.get("after", "0"))
        rest = [page for page in self.pages.all() if int(page.remote_id) > after]
        here = rest[:SLICE]
        following = here[-1].remote_id if len(rest) > SLICE else None
        return {"pages": [page.glance() for page in here], "next": following}

    def _changes(self, asked: dict[str, str]) -> dict[str, Any]:
        newest = max((page.version for page in self.pages.all()), default=0)
        since = int(asked.get("since", newest + 1))
        found = [page for page in self.pages.all() if page.version >= since]
        return {"pages": [page.told() for page in found], "point": str(max(newest, 0))}

    def _write(self, page_id: str, sent: dict[str, Any]) -> dict[str, Any]:
        if sent["page_id"] != page_id:
            raise Refused(422, "unsupported", "the address names another page than the body")
        can, action, replaces = self.pages.capabilities, sent["type"], sent["replaces"]
        if action in ("page.draft", "page.withdraw") and not can["drafts"]:
            raise Refused(422, "unsupported", "there are no drafts here")
        if action == "page.draft" or (action == "page.publish" and replaces is None):
            status, document = "hidden" if action == "page.draft" else "published", sent["document"]
            return {"page": self.pages.create(document["path"], status, document, page_id).told()}
        page = self.pages.seen(replaces)
        if action == "page.publish":
            self.pages.replace(page, sent["document"], page_id)
        elif action == "page.withdraw":
            self.pages.hide(page, "hidden")
        elif can["trash"]:
            self.pages.hide(page, "trashed")
        else:
            self.pages.drop(page)
            return {"page": None}
        return {"page": page.told()}


def server(receiver: Receiver, key: bytes, port: int) -> ThreadingHTTPServer:
    """The endpoint at ENDPOINT on loopback, and the pages at their paths."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self.path.startswith(ENDPOINT):
                self._answer("GET", b"")
                return
            page = receiver.pages.at(self.path)
            if page is None or page.status != "published":
                self._send(404, "text/html", b"<h1>Not found</h1>")
            else:
                body = f"<h1>{page.document['title']}</h1>\n{page.document['body_html']}"
                self._send(200, "text/html; charset=utf-8", body.encode())

        def do_PUT(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            if length > LONGEST_BODY:
                self._send(413, "text/plain", b"")
                return
            self._answer("PUT", self.rfile.read(length))

        def _answer(self, method: str, body: bytes) -> None:
            target = self.path.removeprefix(ENDPOINT).removeprefix("/")
            try:
                verify(key, method, target, self.headers, body, time.time())
                status, told = 200, receiver.answer(method, target, body)
            except Refused as refused:
                error = {"code": refused.code, "message": str(refused)}
                status, told = refused.status, {"error": error}
            self._send(
                status, "application/json", json.dumps({"contract": CONTRACT, **told}).encode()
            )

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Say nothing: what is published is nobody's business here."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    return Server(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    signing_key = base64.b64decode(os.environ["WEBHOOK_SIGNING_KEY"].removeprefix("whsec_"))
    everything = dict.fromkeys(
        ("client_id", "compare_and_swap", "drafts", "marker_look_up", "trash", "inventory"), True
    )
    held = Receiver(Pages(everything), "the example receiver")
    server(held, signing_key, int(sys.argv[1])).serve_forever()
