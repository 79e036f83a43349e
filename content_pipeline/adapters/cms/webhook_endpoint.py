"""The requests that the contract of the webhook knows, one method each.

What belongs here: routes, parameters and the shape of answers, as ``docs/webhook-contract.md`` has
them. What a page means to the publish protocol is ``webhook``'s to say.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from content_pipeline.adapters.cms.json_service import Json, JSONService
from content_pipeline.adapters.cms.webhook_errors import failure_in
from content_pipeline.adapters.cms.webhook_pages import CONTRACT
from content_pipeline.adapters.cms.webhook_signature import SigningKey
from content_pipeline.adapters.http_calls import Answer, Call, HTTPService
from content_pipeline.core.cms import RemotePage


class WebhookEndpoint:
    """One receiver; safe for many threads."""

    def __init__(
        self,
        url: str,
        *,
        key: SigningKey,
        deadline_s: float,
        clock: Callable[[], datetime],
        at_once: int | None = None,
    ) -> None:
        parts = urlsplit(url)
        name = f"the webhook at {parts.netloc}"

        def sign(method: str, target: str, body: bytes) -> Mapping[str, str]:
            below = target.removeprefix(parts.path)
            return key.headers(method, below.removeprefix("/"), body, now=clock())

        service = HTTPService(
            url,
            name=name,
            headers={"Accept": "application/json"},
            deadline_s=deadline_s,
            at_once=at_once,
            sign=sign,
        )
        self.json = JSONService(
            service, lambda answer, call: failure_in(answer, call, service=name, now=clock())
        )

    def describe(self) -> Json:
        """What the receiver is and can."""
        return self._ask("asking what it can", "")

    def find(
        self, *, page_id: str | None, path: str, remote_id: str | None, doing: str
    ) -> tuple[Json, ...]:
        """Pages with our id, the page with that remote id, and the one at the path."""
        asked = {"page_id": page_id, "path": path, "remote_id": remote_id}
        return self._pages(
            doing, "/pages", {name: value for name, value in asked.items() if value is not None}
        )[0]

    def put(
        self,
        action: str,
        page_id: str,
        *,
        replaces: RemotePage | None,
        document: Json | None,
        doing: str,
    ) -> Json | None:
        """Have ``action`` done to a page; the page afterwards, None when there is none."""
        body: dict[str, Any] = {"type": f"page.{action}", "page_id": page_id, "replaces": None}
        if replaces is not None:
            body["replaces"] = {"remote_id": replaces.remote_id, "version": replaces.version}
        if document is not None:
            body["document"] = document
        call = Call(doing=doing, method="PUT", path=f"/pages/{page_id}", document=body)
        answer = self.json.send(call)
        page = self._told(answer, call).get("page", "")
        if page is not None and not isinstance(page, dict):
            raise self.json.failed(answer, call)
        return page

    def inventory(self, after: str | None, *, doing: str) -> tuple[tuple[Json, ...], str | None]:
        """One slice of all pages, and where the next begins."""
        pages, told = self._pages(doing, "/inventory", {} if after is None else {"after": after})
        following = told.get("next")
        return pages, following if isinstance(following, str) else None

    def changes(self, since: str | None, *, doing: str) -> tuple[tuple[Json, ...], str]:
        """Pages that changed since that point, and the point to ask from next."""
        pages, told = self._pages(doing, "/changes", {} if since is None else {"since": since})
        return pages, str(told.get("point", ""))

    def _pages(
        self, doing: str, path: str, params: Mapping[str, str]
    ) -> tuple[tuple[Json, ...], Json]:
        call = Call(doing=doing, method="GET", path=path, params=params)
        answer = self.json.send(call)
        told = self._told(answer, call)
        return self.json.objects_under("pages", answer, call), told

    def _ask(self, doing: str, path: str) -> Json:
        call = Call(doing=doing, method="GET", path=path)
        return self._told(self.json.send(call), call)

    def _told(self, answer: Answer, call: Call) -> Json:
        found = self.json.object_in(answer, call)
        if found.get("contract") != CONTRACT:
            raise self.json.failed(answer, call)
        return found
