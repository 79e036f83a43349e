"""A plain client of WordPress's REST API, for the sandbox and for a real one alike.

It follows no redirect, repeats nothing and knows nothing of pages: every test says what it sends.
"""

import base64
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from content_pipeline.sandbox.cms.accounts import ADMIN, AUTHOR, PIPELINE
from content_pipeline.sandbox.cms.client import CMSClient

PAGES = "/wp-json/wp/v2/pages"
EVERY_STATUS = "publish,future,draft,pending,private,trash"
TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def code(self) -> str:
        """Of an error of the API."""
        return str(self.json["code"])


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPress:
    """One site and who may log in: by role, a login and an application password."""

    base_url: str
    logins: Mapping[str, tuple[str, str]] = field(repr=False)
    is_sandbox: bool = True
    timeout_s: float = TIMEOUT_S

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        who: str | None = "editor",
        password: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own; ``body`` is sent as JSON unless it is bytes."""
        connection = http.client.HTTPConnection(
            urlsplit(self.base_url).netloc, timeout=self.timeout_s
        )
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        all_headers = {"accept": "application/json", **self._credentials(who, password)}
        if sent is not None:
            all_headers["content-type"] = "application/json"
        try:
            connection.request(method, path, sent, {**all_headers, **(headers or {})})
            response = connection.getresponse()
            return Answer(
                status=response.status,
                headers={name.lower(): value for name, value in response.getheaders()},
                body=response.read(),
            )
        finally:
            connection.close()

    def _credentials(self, who: str | None, password: str | None) -> dict[str, str]:
        if who is None:
            return {}
        login, right = self.logins[who]
        pair = base64.b64encode(f"{login}:{password or right}".encode()).decode()
        return {"authorization": f"Basic {pair}"}

    def created(self, **fields: Any) -> dict[str, Any]:
        """A new page; the answer must be 201."""
        answer = self.ask("POST", PAGES, fields)
        assert answer.status == 201, answer.body
        page: dict[str, Any] = answer.json
        return page

    def updated(self, page: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
        """The page after an update; the answer must be 200."""
        answer = self.ask("POST", f"{PAGES}/{page['id']}", fields)
        assert answer.status == 200, answer.body
        changed: dict[str, Any] = answer.json
        return changed

    def trashed(self, page: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.ask("DELETE", f"{PAGES}/{page['id']}")
        assert answer.status == 200, answer.body
        gone: dict[str, Any] = answer.json
        return gone

    def deleted(self, page: Mapping[str, Any]) -> None:
        answer = self.ask("DELETE", f"{PAGES}/{page['id']}?force=true")
        assert answer.status == 200, answer.body

    def found(self, **query: str) -> list[dict[str, Any]]:
        """The pages of a list in the context ``edit``; the answer must be 200."""
        answer = self.ask("GET", f"{PAGES}?{urlencode({'context': 'edit', **query})}")
        assert answer.status == 200, answer.body
        pages: list[dict[str, Any]] = answer.json
        return pages

    def read(self, page: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.ask("GET", f"{PAGES}/{page['id']}?context=edit")
        assert answer.status == 200, answer.body
        held: dict[str, Any] = answer.json
        return held

    def visit(self, path: str) -> Answer:
        """What somebody without an account sees."""
        return self.ask("GET", path, who=None, headers={"accept": "text/html"})


def sandbox_site(client: CMSClient) -> WordPress:
    """The sandbox as a site."""
    accounts = {"administrator": ADMIN, "editor": PIPELINE, "author": AUTHOR}
    return WordPress(
        base_url=client.base_url,
        logins={role: (each.login, each.app_password) for role, each in accounts.items()},
    )


def real_site(document: Mapping[str, Any]) -> WordPress:
    """A real WordPress, from ``url`` and ``users`` with their roles and application passwords."""
    return WordPress(
        base_url=document["url"],
        logins={
            user["role"]: (login, user["app_password"]) for login, user in document["users"].items()
        },
        is_sandbox=False,
    )


def marked(key: str, revision: int = 1, text: str = "Text.") -> str:
    """A content that bears our mark."""
    return f"<p>{text}</p><!-- cp:key={key} rev={revision} h=abc123 -->"
