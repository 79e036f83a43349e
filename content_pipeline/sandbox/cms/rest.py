"""The REST API of pages: what each endpoint does for whom.

What belongs here: from an understood request to a reply, with WordPress's order of refusals:
parameters first, then rights, then what is asked itself. A write is prepared first and committed
later; what happens in between is the caller's.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from content_pipeline.sandbox.cms.accounts import Account, account_document
from content_pipeline.sandbox.cms.companion import refuse_changed, refuse_known_key, refuse_mistyped
from content_pipeline.sandbox.cms.documents import narrowed, page_document, revision_document
from content_pipeline.sandbox.cms.pages import META_KEYS, Page
from content_pipeline.sandbox.cms.queries import (
    Parameters,
    checked_query,
    context_of,
    page_of,
    selected,
)
from content_pipeline.sandbox.cms.refusals import RestError, forbidden, invalid_id, no_route
from content_pipeline.sandbox.cms.routes import Asked, body_fields
from content_pipeline.sandbox.cms.site import Site
from content_pipeline.sandbox.cms.writing import changed, checked_fields, trashed
from content_pipeline.sandbox.wire import Reply

JSON_TYPE = "application/json; charset=UTF-8"


def rest_reply(
    document: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Reply:
    """A reply of the API."""
    body = json.dumps(document, separators=(",", ":")).encode()
    return Reply(status=status, headers={"content-type": JSON_TYPE, **(headers or {})}, body=body)


def refusal_reply(error: RestError) -> Reply:
    """A refusal of the API."""
    return rest_reply(error.document, error.status)


# --- reading ----------------------------------------------------------------------------------


def read(site: Site, ask: Asked) -> Reply:
    """The reply to any request of the API that changes nothing. Raises RestError."""
    match ask.operation:
        case "root":
            return _root(ask)
        case "me":
            return _me(ask)
        case "list":
            return _list(site, ask)
        case "read":
            return _read(site, ask)
        case "revisions":
            return _revisions(site, ask)
    raise no_route()


def _root(ask: Asked) -> Reply:
    authorize = f"{ask.home}/wp-admin/authorize-application.php"
    passwords = {"application-passwords": {"endpoints": {"authorization": authorize}}}
    return rest_reply(
        {
            "name": "Sandbox",
            "description": "",
            "url": ask.home,
            "home": ask.home,
            "gmt_offset": "0",
            "timezone_string": "",
            "namespaces": ["wp/v2"],
            "authentication": passwords,
            "routes": {"/wp/v2/pages": {"namespace": "wp/v2", "methods": ["GET", "POST"]}},
        }
    )


def _me(ask: Asked) -> Reply:
    context = context_of(ask.given)
    if ask.who is None:
        raise RestError(401, "rest_not_logged_in", "You are not currently logged in.")
    return rest_reply(account_document(ask.who, ask.home, for_editing=context == "edit"))


def _list(site: Site, ask: Asked) -> Reply:
    query = checked_query(ask.given, ask.who, companion=site.settings.companion)
    pages = site.store.listed(site.settings.listing_lag_s, query.wanted)
    found = selected(pages, query)
    shown, total_pages = page_of(found, query)
    fields = _fields(ask.given)
    documents = [
        narrowed(_document(site, page, ask, query.context), fields)
        for page in shown
        # Only the companion's look-up finds what the asker may not see; the totals still count it.
        if page.is_public or (ask.who and ask.who.edits_pages)
    ]
    return rest_reply(documents, headers=_totals(ask, len(found), query.page, total_pages))


def _read(site: Site, ask: Asked) -> Reply:
    context = context_of(ask.given)
    page = _page(site, ask)
    may_edit = ask.who is not None and ask.who.edits_pages
    if context == "edit" and not may_edit:
        raise forbidden(ask.who, "rest_forbidden_context", "edit this post")
    if not (page.is_public or may_edit):
        raise forbidden(ask.who, "rest_forbidden", "do that")
    return _single(site, page, ask, context)


def _revisions(site: Site, ask: Asked) -> Reply:
    context = context_of(ask.given)
    page = site.store.pages.get(ask.page_id or 0)
    if page is None:
        raise RestError(404, "rest_post_invalid_parent", "Invalid post parent ID.")
    if not (ask.who and ask.who.edits_pages):
        raise forbidden(ask.who, "rest_cannot_read", "view revisions of this post")
    kept = site.store.revisions(page.id)
    if ask.revision_id is not None:
        for each in kept:
            if each.id == ask.revision_id:
                document = revision_document(site.store, page.id, each, ask.home, context=context)
                return rest_reply(document)
        raise RestError(404, "rest_post_invalid_id", "Invalid revision ID.")
    number = int(ask.given.get("page", ("1",))[-1])
    # Unlike a list of pages, all revisions come at once unless a number is asked for.
    size = int(ask.given.get("per_page", (str(max(len(kept), 1)),))[-1])
    shown = kept[(number - 1) * size : number * size]
    documents = [
        revision_document(site.store, page.id, each, ask.home, context=context) for each in shown
    ]
    return rest_reply(documents, headers=_totals(ask, len(kept), number, -(-len(kept) // size)))


def _page(site: Site, ask: Asked) -> Page:
    page = site.store.pages.get(ask.page_id or 0)
    if page is None:
        raise invalid_id()
    return page


def _fields(given: Parameters) -> tuple[str, ...]:
    return tuple(name.strip() for value in given.get("_fields", ()) for name in value.split(","))


def _totals(ask: Asked, total: int, page: int, pages: int) -> dict[str, str]:
    headers = {"X-WP-Total": str(total), "X-WP-TotalPages": str(pages), "allow": "GET, POST"}
    links = []
    for number, relation in ((page - 1, "prev"), (page + 1, "next")):
        if 1 <= number <= pages:
            rest = [(name, value) for name, value in ask.request.query if name != "page"]
            query = urlencode([*rest, ("page", str(number))])
            links.append(f'<{ask.home}{ask.request.path}?{query}>; rel="{relation}"')
    return {**headers, "link": ", ".join(links)} if links else headers


def _document(site: Site, page: Page, ask: Asked, context: str) -> dict[str, Any]:
    companion = site.settings.companion
    return page_document(
        site.store, page, ask.home, context=context, who=ask.who, companion=companion
    )


def _single(site: Site, page: Page, ask: Asked, context: str, status: int = 200) -> Reply:
    headers = {"etag": page.etag} if site.settings.companion else {}
    if status == 201:
        headers["location"] = f"{ask.home}/wp-json/wp/v2/pages/{page.id}"
    document = narrowed(_document(site, page, ask, context), _fields(ask.given))
    return rest_reply(document, status, headers)


# --- writing ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A write that was let in and worked out, and is not stored yet."""

    ask: Asked
    who: Account
    page: Page
    """The row to store; of a deletion the one to remove."""
    key: str
    """Of the companion plugin's lock; empty without it."""


def new_key(site: Site, ask: Asked) -> str:
    """The key a create brings along for the companion plugin; empty for anything else."""
    if ask.operation != "create" or not site.settings.companion:
        return ""
    return (checked_fields(body_fields(ask.request)).meta or {}).get(META_KEYS[0], "")


def prepare(site: Site, ask: Asked, *, filtered: bool) -> Prepared:
    """Check a write and work out its row. Raises RestError; nothing is stored yet."""
    if ask.operation in ("trash", "delete"):
        return _prepare_removal(site, ask)
    body = body_fields(ask.request)
    fields = checked_fields(body)
    if site.settings.companion:
        refuse_mistyped(body.get("meta"))
    else:
        fields = replace(fields, meta=None)
    if ask.operation == "create" and body.get("id"):
        raise RestError(400, "rest_post_exists", "Cannot create existing post.")
    old = None if ask.operation == "create" else _page(site, ask)
    if not (ask.who and ask.who.edits_pages):
        if old is None:
            raise forbidden(ask.who, "rest_cannot_create", "create posts as this user")
        raise forbidden(ask.who, "rest_cannot_edit", "edit this post")
    key = new_key(site, ask)
    if key:
        refuse_known_key(site.store, key, site.busy_keys)
    if old and site.settings.companion:
        refuse_changed(old, ask.request.headers)
    page = changed(
        site.store,
        old,
        fields,
        author=ask.who.id,
        now_gmt=site.now_gmt,
        unfiltered=site.settings.unfiltered_html and not filtered,
    )
    site.busy_keys |= {key} - {""}
    return Prepared(ask=ask, who=ask.who, page=page, key=key)


def _prepare_removal(site: Site, ask: Asked) -> Prepared:
    page = _page(site, ask)
    if not (ask.who and ask.who.edits_pages):
        raise forbidden(ask.who, "rest_cannot_delete", "delete this post")
    if ask.operation == "trash":
        page = trashed(site.store, page, site.now_gmt)
    return Prepared(ask=ask, who=ask.who, page=page, key="")


def commit(site: Site, write: Prepared) -> Reply:
    """Store a prepared write, and its reply. Raises RestError when its page is gone meanwhile."""
    ask, page = write.ask, write.page
    site.busy_keys.discard(write.key)
    if page.id and page.id not in site.store.pages:
        raise invalid_id()
    if ask.operation == "delete":
        previous = _document(site, page, ask, "edit")
        site.store.delete(page.id, by=write.who.id, cause=ask.operation)
        return rest_reply({"deleted": True, "previous": previous})
    page = site.stored(page, by=write.who.id, cause=ask.operation)
    return _single(site, page, ask, "edit", 201 if ask.operation == "create" else 200)
