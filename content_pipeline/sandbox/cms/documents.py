"""Pages and revisions as JSON documents of the REST API.

What belongs here: what is shown in which context. Only ``edit`` shows raw texts; ``rendered`` is
the raw text without WordPress's typography.
"""

import html
import re
from collections.abc import Iterable, Mapping
from typing import Any

from content_pipeline.sandbox.cms.accounts import Account
from content_pipeline.sandbox.cms.pages import META_KEYS, Page, Status
from content_pipeline.sandbox.cms.permalinks import link_of
from content_pipeline.sandbox.cms.slugs import sanitised_slug
from content_pipeline.sandbox.cms.store import Revision, Store

_BARE_AMPERSAND = re.compile(r"&(?!#?\w+;)")


def page_document(
    store: Store, page: Page, home: str, *, context: str, who: Account | None, companion: bool
) -> dict[str, Any]:
    """The page as ``who`` sees it in ``context``."""
    for_editing = context == "edit"
    title = _shown(page.title)
    if page.status is Status.PRIVATE:
        title = f"Private: {title}"
    meta = {name: page.meta.get(name, "") for name in META_KEYS} if companion else []
    document: dict[str, Any] = {
        "id": page.id,
        "date": page.date_gmt,
        "date_gmt": page.date_gmt,
        "guid": _text(f"{home}/?page_id={page.id}", for_editing=for_editing),
        "modified": page.modified_gmt,
        "modified_gmt": page.modified_gmt,
        "slug": page.slug,
        "status": page.status.value,
        "type": "page",
        "link": link_of(store, page, home),
        "title": _text(page.title, title, for_editing=for_editing),
        "content": {
            **_text(page.content, _block(page.content), for_editing=for_editing),
            "protected": False,
        },
        "excerpt": {
            **_text(page.excerpt, _block(page.excerpt), for_editing=for_editing),
            "protected": False,
        },
        "author": page.author,
        "featured_media": 0,
        "parent": page.parent,
        "menu_order": page.menu_order,
        "comment_status": "closed",
        "ping_status": "closed",
        "template": page.template,
        "meta": meta,
        "_links": _links(store, page, home, who if for_editing else None),
    }
    if for_editing:
        document["password"] = ""
        document["content"]["block_version"] = 0
        above = store.path_of(page).rstrip("/").rpartition("/")[0]
        document["permalink_template"] = f"{home}{above}/%pagename%/"
        document["generated_slug"] = sanitised_slug(html.unescape(page.title))
    return document


def revision_document(
    store: Store, page_id: int, revision: Revision, home: str, *, context: str
) -> dict[str, Any]:
    """A kept version of a page's text, with the account that wrote it."""
    kept = store.text_of(revision)
    for_editing = context == "edit"
    return {
        "author": revision.author,
        "date": kept.modified_gmt,
        "date_gmt": kept.modified_gmt,
        "id": revision.id,
        "modified": kept.modified_gmt,
        "modified_gmt": kept.modified_gmt,
        "parent": page_id,
        "slug": f"{page_id}-revision-v1",
        "guid": _text(f"{home}/?p={revision.id}", for_editing=for_editing),
        "title": _text(kept.title, _shown(kept.title), for_editing=for_editing),
        "content": _text(kept.content, _block(kept.content), for_editing=for_editing),
        "excerpt": _text(kept.excerpt, _block(kept.excerpt), for_editing=for_editing),
        "_links": {"parent": [{"href": f"{home}/wp-json/wp/v2/pages/{page_id}"}]},
    }


def narrowed(document: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """``document`` with the top-level fields that ``_fields`` asks for; all without any."""
    wanted = {name.partition(".")[0] for name in fields}
    return {k: v for k, v in document.items() if not wanted or k in wanted}


def _links(store: Store, page: Page, home: str, who: Account | None) -> dict[str, Any]:
    api = f"{home}/wp-json/wp/v2"
    own = f"{api}/pages/{page.id}"
    revisions = store.revisions(page.id)
    history = {"count": len(revisions), "href": f"{own}/revisions"}
    links: dict[str, Any] = {
        "self": [{"href": own}],
        "collection": [{"href": f"{api}/pages"}],
        "about": [{"href": f"{api}/types/page"}],
        "author": [{"embeddable": True, "href": f"{api}/users/{page.author}"}],
        "version-history": [history],
    }
    if revisions:
        newest = revisions[0].id
        links["predecessor-version"] = [{"id": newest, "href": f"{own}/revisions/{newest}"}]
    if page.parent:
        links["up"] = [{"embeddable": True, "href": f"{api}/pages/{page.parent}"}]
    if who:
        links["wp:action-publish"] = [{"href": own}]
    return links


def _text(raw: str, rendered: str | None = None, *, for_editing: bool) -> dict[str, Any]:
    shown = {"rendered": raw if rendered is None else rendered}
    return {"raw": raw, **shown} if for_editing else shown


def _shown(title: str) -> str:
    return _BARE_AMPERSAND.sub("&#038;", title)


def _block(text: str) -> str:
    return f"{text.strip()}\n" if text.strip() else ""
