"""The documents' example receiver in a thread of this process, and the hands of its people."""

import base64
import http.client
import importlib.util
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from content_pipeline.adapters.cms.webhook import WebhookCMS
from content_pipeline.adapters.cms.webhook_endpoint import WebhookEndpoint
from content_pipeline.adapters.cms.webhook_signature import SigningKey
from content_pipeline.core.cms import CMSCapabilities
from content_pipeline_tests.operations.small_site import clock

ROOT = Path(__file__).parent.parent.parent.parent
KEY = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
HOST = "127.0.0.1"

EVERYTHING = dict.fromkeys(
    ("client_id", "compare_and_swap", "drafts", "marker_look_up", "trash", "inventory"), True
)
THE_LEAST = {**EVERYTHING, "drafts": False, "trash": False, "inventory": False}
"""Of what this receiver can be told not to do."""


def _example() -> ModuleType:
    file = ROOT / "docs" / "examples" / "webhook_receiver.py"
    specification = importlib.util.spec_from_file_location("webhook_receiver", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


EXAMPLE = _example()


@dataclass(slots=True, kw_only=True)
class WebhookSite:
    """A running receiver."""

    port: int
    pages: Any
    said: list[tuple[str, Any, Any]] = field(default_factory=list)
    """Target, request and answer of everything that was understood."""

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def visible(self, path: str) -> str | None:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=20)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        return text if answer.status == 200 else None


@contextmanager
def receiving(capabilities: Mapping[str, bool]) -> Iterator[WebhookSite]:
    """A receiver that holds nothing yet, to the end of the block."""
    receiver = EXAMPLE.Receiver(EXAMPLE.Pages(dict(capabilities)), "the example receiver")
    said: list[tuple[str, Any, Any]] = []
    answer = receiver.answer

    def listen(method: str, target: str, body: bytes) -> Any:
        told = answer(method, target, body)
        said.append((target, json.loads(body) if body else None, {"contract": 1, **told}))
        return told

    receiver.answer = listen
    server = EXAMPLE.server(receiver, base64.b64decode(KEY), 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield WebhookSite(port=server.server_address[1], pages=receiver.pages, said=said)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def connect(
    site_url: str,
    *,
    key: str = KEY,
    declared: CMSCapabilities | None = None,
    base_url: str | None = None,
    at: datetime | None = None,
    deadline_s: float = 20,
) -> WebhookCMS:
    """The adapter for the receiver at ``site_url``. Close it."""
    endpoint = WebhookEndpoint(
        f"{site_url}/cms",
        key=SigningKey.parse(f"whsec_{key}"),
        deadline_s=deadline_s,
        clock=clock if at is None else lambda: at,
    )
    return WebhookCMS(endpoint, base_url=base_url or site_url, declared=declared)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookBench:
    """What a law works on."""

    site: WebhookSite
    cms: WebhookCMS

    @property
    def base_url(self) -> str:
        return self.site.url

    def edit(self, path: str) -> None:
        page = self.site.pages.at(path)
        body = page.document["body_html"] + "\n<p>A person was here.</p>"
        page.document = {**page.document, "body_html": body}
        self.site.pages.changed(page)

    def occupy(self, path: str) -> None:
        theirs = {"title": "Theirs", "body_html": "<p>Ours it is not.</p>"}
        self.site.pages.create(path, "published", theirs, None)

    def delete(self, path: str) -> None:
        self.site.pages.drop(self.site.pages.at(path))

    def trash(self, path: str) -> None:
        self.site.pages.hide(self.site.pages.at(path), "trashed")

    def hide(self, path: str) -> None:
        self.site.pages.hide(self.site.pages.at(path), "hidden")

    def rename(self, path: str, to: str) -> None:
        page = self.site.pages.at(path)
        page.path = to
        self.site.pages.changed(page)

    def visible(self, path: str) -> str | None:
        return self.site.visible(path)
