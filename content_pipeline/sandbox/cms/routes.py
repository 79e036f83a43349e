"""Which operation a request is: the addresses of the API, the services and the public site.

What belongs here: from method and path to a name and its particulars, and what a body holds.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from content_pipeline.sandbox.cms.accounts import Account, asker
from content_pipeline.sandbox.cms.queries import Parameters, parameters
from content_pipeline.sandbox.cms.refusals import RestError
from content_pipeline.sandbox.wire import Request

API = "/wp-json"
_PAGES = re.compile(r"/wp-json/wp/v2/pages(?:/(?P<id>\d+)(?:/revisions(?:/(?P<rev>\d+))?)?)?")
_SERVICES = (
    ("indexnow", re.compile(r"/indexnow")),
    ("deploy", re.compile(r"/hooks/deploy/(?P<name>[^/]+)")),
    ("receive", re.compile(r"/hooks/receive/(?P<name>[^/]+)")),
    ("purge", re.compile(r"/client/v4/zones/(?P<name>[^/]+)/purge_cache")),
)
SERVICES = frozenset(name for name, _ in _SERVICES)
_CHANGING = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request understood: what is asked, by whom, about what."""

    operation: str
    request: Request = field(repr=False)
    who: Account | None
    given: Parameters
    """The query's parameters."""
    page_id: int | None = None
    revision_id: int | None = None
    name: str = ""
    """Of a hook or a zone."""

    @property
    def home(self) -> str:
        """The site's address as the client knows it."""
        return f"http://{self.request.headers.get('host', 'localhost')}"


def asked(request: Request, *, anonymous: bool = False) -> Asked:
    """What ``request`` asks for; ``anonymous`` leaves its credentials unread."""
    operation, particulars = _operation(request)
    return Asked(
        operation=operation,
        request=request,
        who=None if anonymous else asker(request),
        given=parameters(request.query),
        **particulars,
    )


def _operation(request: Request) -> tuple[str, dict[str, Any]]:
    path = request.path
    if path == API or path.startswith(f"{API}/"):
        return _api_operation(request.method, path.rstrip("/"), dict(request.query))
    for name, pattern in _SERVICES:
        found = pattern.fullmatch(path)
        if found:
            return name, {"name": found.groupdict().get("name") or ""}
    if path.startswith("/wp-sitemap"):
        return "sitemap", {}
    return "front", {}


def _api_operation(method: str, path: str, query: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    if path in (API, f"{API}/wp/v2") and method == "GET":
        return "root", {}
    if path == f"{API}/wp/v2/users/me" and method == "GET":
        return "me", {}
    found = _PAGES.fullmatch(path)
    if found is None:
        return "unknown", {}
    if found["id"] is None:
        return {"GET": "list", "POST": "create"}.get(method, "unknown"), {}
    particulars: dict[str, Any] = {"page_id": int(found["id"])}
    if "/revisions" in path:
        if found["rev"]:
            particulars["revision_id"] = int(found["rev"])
        return "revisions" if method == "GET" else "unknown", particulars
    if method in _CHANGING:
        return "update", particulars
    if method == "DELETE":
        return "delete" if query.get("force") in ("true", "1") else "trash", particulars
    return "read" if method == "GET" else "unknown", particulars


def body_fields(request: Request) -> dict[str, Any]:
    """The fields of a JSON or form body; a JSON list holds none. Raises RestError."""
    if not request.body:
        return {}
    if "json" not in request.headers.get("content-type", ""):
        return dict(parse_qsl(request.body.decode(errors="replace"), keep_blank_values=True))
    try:
        document = json.loads(request.body)
    except ValueError:
        data = {"json_error_code": 4, "json_error_message": "Syntax error"}
        raise RestError(400, "rest_invalid_json", "Invalid JSON body passed.", data) from None
    return document if isinstance(document, dict) else {}
