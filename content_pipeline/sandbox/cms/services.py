"""The services told about published pages: IndexNow, deploy hooks, a cache, a webhook receiver.

What belongs here: what each of them checks and answers. What they were told is kept in the journal
with its answer, so that a test can count it.
"""

import hashlib
import json
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

from content_pipeline.sandbox.cms.rest import rest_reply
from content_pipeline.sandbox.cms.routes import Asked
from content_pipeline.sandbox.cms.site import Site
from content_pipeline.sandbox.wire import Reply

MOST_INDEXNOW_URLS = 10_000
MOST_PURGED = 100
"""Operations in one purge; Cloudflare's limit below the enterprise plan."""


def told(site: Site, ask: Asked) -> Reply:
    """The service's reply, after what it was told is in the journal."""
    match ask.operation:
        case "indexnow":
            reply = _indexnow(site, ask)
        case "deploy":
            reply = _deployed(site, ask)
        case "purge":
            reply = _purged(site, ask)
        case _:
            reply = rest_reply({"received": True})
    site.store.note_delivery(
        ask.operation,
        ask.name,
        {
            "status": reply.status,
            "method": ask.request.method,
            "headers": dict(ask.request.headers),
            "body": ask.request.body.decode(errors="replace"),
        },
    )
    return reply


def _document(ask: Asked) -> dict[str, Any] | None:
    try:
        document = json.loads(ask.request.body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _indexnow(site: Site, ask: Asked) -> Reply:
    """200 accepted; 400 unreadable; 403 the key is not at its place; 422 URLs of other hosts."""
    document = _document(ask) or {}
    host, key, urls = (document.get(name) for name in ("host", "key", "urlList"))
    if not (isinstance(host, str) and isinstance(key, str) and isinstance(urls, list) and urls):
        return Reply(status=HTTPStatus.BAD_REQUEST)
    location = document.get("keyLocation")
    place = urlsplit(location).path if isinstance(location, str) else f"/{key}.txt"
    if key != site.settings.indexnow_key or place != f"/{key}.txt":
        return Reply(status=HTTPStatus.FORBIDDEN)
    hosts = {urlsplit(str(url)).netloc for url in urls}
    if hosts != {host} or len(urls) > MOST_INDEXNOW_URLS:
        return Reply(status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return Reply(status=HTTPStatus.OK)


def _deployed(site: Site, ask: Asked) -> Reply:
    """A build for every call, whatever was asked a second ago."""
    number = sum(n for (kind, _, _), n in site.store.delivered.items() if kind == "deploy") + 1
    job = hashlib.sha256(f"{ask.name} {number}".encode()).hexdigest()[:20]
    return rest_reply({"job": {"id": job, "state": "PENDING"}}, HTTPStatus.CREATED)


def _purged(site: Site, ask: Asked) -> Reply:
    token = ask.request.headers.get("authorization", "")
    if not token or site.settings.zone_token not in ("", token.removeprefix("Bearer ")):
        return _not_purged(HTTPStatus.FORBIDDEN, 10000, "Authentication error")
    document = _document(ask)
    if document is None:
        return _not_purged(HTTPStatus.BAD_REQUEST, 6007, "Malformed JSON in request body")
    files = document.get("files")
    if document.get("purge_everything") is True:
        site.purge(None)
    elif isinstance(files, list) and 1 <= len(files) <= MOST_PURGED:
        site.purge([unquote(urlsplit(str(each)).path) for each in files])
    else:
        needed = 'Request must contain one of "purge_everything" or "files"'
        return _not_purged(HTTPStatus.BAD_REQUEST, 1012, f"{needed}, at most {MOST_PURGED}")
    result = {"id": ask.name}
    return rest_reply({"success": True, "errors": [], "messages": [], "result": result})


def _not_purged(status: HTTPStatus, code: int, message: str) -> Reply:
    errors = [{"code": code, "message": message}]
    return rest_reply({"success": False, "errors": errors, "messages": [], "result": None}, status)
