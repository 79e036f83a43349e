"""A page or post as Ghost's Admin API tells it, and as the publish protocol sees it.

What belongs here: the fields that are asked for, and JSON to ``RemotePage`` and back. The text is
one HTML card, the only form that Ghost keeps to the letter; our mark stands in the code that the
page injects into its head, where editors do not meet it and a filter finds it. Whatever lacks a
field of its type raises ValueError and counts as no answer.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from content_pipeline.adapters.cms.json_service import Json, text_in, text_or_empty
from content_pipeline.adapters.cms.page_marker import (
    META_NAME,
    format_marker,
    mark_of,
    parse_marker,
)
from content_pipeline.core.cms import Document, Glance, RemoteContent, RemotePage, RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.identity import content_hash, digest

GLANCE_FIELDS = "id,slug,status,updated_at,url"
PAGE_FIELDS = (
    f"{GLANCE_FIELDS},created_at,published_at,title,meta_description,codeinjection_head,lexical"
)

_SLUG = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
"""What Ghost keeps as it is; anything else it rewrites without a word, so it is refused."""

_LONGEST_SLUG = 185
"""Ghost cuts there."""

_JSON_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
"""No ``<`` inside a script element, so that none can end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GhostForm:
    """How documents of one site become pages of its Ghost, and pages are read."""

    base_url: str
    """Canonical base of the site's URLs."""
    home_path: str
    """Path of the address at which Ghost serves the site; empty at the root of a host."""
    below: str = "/"
    """Where slugs stand: ``/``, or the path of the collection that posts belong to."""
    json_ld: bool = False

    def slug_of(self, path: str) -> str:
        """The slug of the page at ``path``. Raises CallFailed (invalid_input) when none can be."""
        slug = path.removeprefix(self.below).removesuffix("/")
        fits = path == f"{self.below}{slug}/" and _SLUG.fullmatch(slug)
        if not fits or len(slug) > _LONGEST_SLUG:
            raise CallFailed(
                Failure(
                    failure_class=FailureClass.INVALID_INPUT,
                    message=f"the path {path[:80]!a} cannot stand in Ghost, which has no pages "
                    f"below others: it must be {self.below} and one part of lower-case letters, "
                    f"digits, - and _ (at most {_LONGEST_SLUG}); correct it in the table, or set "
                    "cms.below",
                )
            )
        return slug

    def written(self, document: Document) -> dict[str, Any]:
        """The fields that make a page hold ``document`` at its path. Raises CallFailed."""
        mark = f'<meta name="{META_NAME}" content="{format_marker(document.marker)}">'
        return {
            "title": document.title,
            "slug": self.slug_of(document.path),
            "lexical": _card(document.body_html),
            "meta_description": document.meta_description,
            "codeinjection_head": mark + (_script(document.json_ld) if self.json_ld else ""),
        }

    def page(self, found: Json) -> RemotePage:
        """The page that ``found``, asked for with PAGE_FIELDS, describes."""
        head, text = text_or_empty(found, "codeinjection_head"), text_or_empty(found, "lexical")
        title, description = text_in(found, "title"), text_or_empty(found, "meta_description")
        marker, body = parse_marker(mark_of(head.encode())), _body_in(text)
        path = self.path(found)
        held = None if body is None else content_hash(title, description, body)
        return RemotePage(
            remote_id=text_in(found, "id"),
            path=path,
            url=self.base_url + path,
            status=status_of(found),
            marker=marker,
            # A card keeps more than its text, which changes when an editor merely opens the page.
            fingerprint=digest("ghost", title, description, head, text if body is None else body),
            version=text_in(found, "updated_at"),
            intact=marker is not None and held == marker.content_hash,
        )

    def content(self, found: Json) -> RemoteContent:
        """The text of a page; ``found`` has ``html`` as well, for what is no single card."""
        body = _body_in(text_or_empty(found, "lexical"))
        return RemoteContent(
            title=text_in(found, "title"),
            meta_description=text_or_empty(found, "meta_description"),
            body_html=text_or_empty(found, "html") if body is None else body,
        )

    def glance(self, found: Json) -> Glance:
        """What a listing tells of a page."""
        return Glance(
            remote_id=text_in(found, "id"),
            path=self.path(found),
            status=status_of(found),
            version=text_in(found, "updated_at"),
        )

    def path(self, found: Json) -> str:
        """Where a page stands, or will stand: the address of a draft tells nothing."""
        if status_of(found) is RemoteStatus.PUBLISHED:
            return urlsplit(text_in(found, "url")).path.removeprefix(self.home_path)
        return f"{self.below}{text_in(found, 'slug')}/"


def status_of(found: Json) -> RemoteStatus:
    """Where a page stands for a visitor; drafts, scheduled and only mailed ones are hidden."""
    is_public = text_in(found, "status") == "published"
    return RemoteStatus.PUBLISHED if is_public else RemoteStatus.HIDDEN


def written_at(found: Json) -> datetime:
    """When the page was written last, by Ghost's clock, in whole seconds."""
    return datetime.fromisoformat(text_in(found, "updated_at"))


def was_never_touched(found: Json) -> bool:
    """Whether a page is as it was created, as far as whole seconds tell, and was never public."""
    created = text_in(found, "created_at") == text_in(found, "updated_at")
    return created and found.get("published_at") is None


def search_token(page_id: str) -> str:
    """What the head of every page with our mark for ``page_id`` holds."""
    return f"page={page_id} "


def _card(body_html: str) -> str:
    root = {"children": [{"type": "html", "version": 1, "html": body_html}]}
    frame = {"direction": None, "format": "", "indent": 0, "type": "root", "version": 1}
    return json.dumps({"root": root | frame}, ensure_ascii=False)


def _body_in(lexical: str) -> str | None:
    """The text of the single HTML card that ``lexical`` is; None when it is anything else."""
    try:
        (only,) = json.loads(lexical)["root"]["children"]
        card = only if isinstance(only, Mapping) and only.get("type") == "html" else {}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    html = card.get("html")
    return html if isinstance(html, str) else None


def _script(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True).translate(_JSON_IN_SCRIPT)
    return f'\n<script type="application/ld+json">{text}</script>'
