"""A page as the contract of the webhook writes it, and as the publish protocol sees it.

What belongs here: documents to JSON, and JSON to ``RemotePage``. Whatever lacks a field of its type
raises ValueError and counts as no answer.
"""

from typing import Any

from content_pipeline.adapters.cms.json_service import Json, text_in, text_or_empty
from content_pipeline.core.cms import (
    CMSCapabilities,
    Document,
    Glance,
    Marker,
    RemoteContent,
    RemotePage,
    RemoteStatus,
    capabilities_of,
)
from content_pipeline.core.identity import content_hash, digest

CONTRACT = 1
"""Said in every answer of a receiver, so that no other endpoint's is taken for one."""


def written(document: Document) -> dict[str, Any]:
    """The document as it is sent."""
    return {
        "revision": document.marker.revision,
        "content_hash": document.marker.content_hash,
        "path": document.path,
        "url": document.url,
        "language": document.language,
        "site_title": document.site_title,
        "title": document.title,
        "meta_description": document.meta_description,
        "body_html": document.body_html,
        "json_ld": dict(document.json_ld),
    }


def page_in(found: Json, base_url: str) -> RemotePage:
    """The page that ``found`` describes."""
    content, marker, path = content_in(found), _marker_in(found), text_in(found, "path")
    held = content_hash(content.title, content.meta_description, content.body_html)
    return RemotePage(
        remote_id=text_in(found, "remote_id"),
        path=path,
        url=base_url + path,
        status=RemoteStatus(text_in(found, "status")),
        marker=marker,
        fingerprint=digest("webhook", content.title, content.meta_description, content.body_html),
        version=text_in(found, "version"),
        intact=marker is not None and held == marker.content_hash,
    )


def content_in(found: Json) -> RemoteContent:
    """The text of the page that ``found`` describes."""
    return RemoteContent(
        title=text_in(found, "title"),
        meta_description=text_or_empty(found, "meta_description"),
        body_html=text_in(found, "body_html"),
    )


def glance_in(found: Json) -> Glance:
    """What a listing tells of a page."""
    return Glance(
        remote_id=text_in(found, "remote_id"),
        path=text_in(found, "path"),
        status=RemoteStatus(text_in(found, "status")),
        version=text_in(found, "version"),
    )


def capabilities_in(found: Json) -> CMSCapabilities:
    """What a receiver declares; what it does not mention it cannot do."""
    named = found.get("capabilities")
    if not isinstance(named, dict):
        raise ValueError("no capabilities are declared")
    return capabilities_of([name for name in named if named[name] is True])


def _marker_in(found: Json) -> Marker | None:
    """Our mark, which is there whole or not at all."""
    if found.get("page_id") is None:
        return None
    revision = found.get("revision")
    if not isinstance(revision, int) or isinstance(revision, bool) or revision < 1:
        raise ValueError("the page has our id and no revision")
    return Marker(
        page_id=text_in(found, "page_id"),
        revision=revision,
        content_hash=text_in(found, "content_hash"),
    )
