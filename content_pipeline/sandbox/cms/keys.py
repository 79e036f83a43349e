"""Which page a request is about, told by the key of our mark.

What belongs here: reading the key out of a body, an id, a search, a slug or a public path. It is
what faults draw by and what requests are counted by; nothing is answered by it.
"""

from collections.abc import Mapping
from typing import Any

from content_pipeline.sandbox.cms.pages import META_KEYS
from content_pipeline.sandbox.cms.permalinks import at_path
from content_pipeline.sandbox.cms.routes import SERVICES, Asked
from content_pipeline.sandbox.cms.site import Site
from content_pipeline.sandbox.cms.slugs import sanitised_slug


def key_of(site: Site, ask: Asked, fields: Mapping[str, Any]) -> str:
    """The key of the page that is meant, or else the best name there is for it."""
    if ask.page_id is not None:
        return site.store.key_of(ask.page_id) or _in_body(site, fields) or f"id:{ask.page_id}"
    if ask.operation in SERVICES:
        return f"{ask.operation}:{ask.name}"
    if ask.operation == "create":
        return _in_body(site, fields) or f"slug:{fields.get('slug', '')}"
    if ask.operation == "list":
        return _in_query(site, ask)
    page = at_path(site.store, ask.request.path) if ask.operation == "front" else None
    return (site.store.key_of(page.id) if page else None) or ask.request.path


def _in_body(site: Site, fields: Mapping[str, Any]) -> str | None:
    content, meta = fields.get("content"), fields.get("meta")
    if isinstance(content, dict):
        content = content.get("raw")
    found = site.pattern.search(content) if isinstance(content, str) else None
    if found:
        return found["key"]
    key = meta.get(META_KEYS[0]) if isinstance(meta, dict) else None
    return key if isinstance(key, str) else None


def _in_query(site: Site, ask: Asked) -> str:
    query = dict(ask.request.query)
    search = query.get("search", "")
    if asked_key := query.get("cp_key") or site.store.known_key(search):
        return asked_key
    slug = sanitised_slug(query.get("slug", "").partition(",")[0])
    for page in site.store.slugged(slug):
        if key := site.store.key_of(page.id):
            return key
    return f"search:{search}" if search else f"slug:{slug}"
