"""A page as WordPress's REST API tells it, and as the publish protocol sees it.

What belongs here: the fields that are asked for, and JSON to ``RemotePage`` and back. Nothing is
requested here; whatever lacks a field of its type raises ValueError and counts as no answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from content_pipeline.adapters.cms.wordpress_content import compose, take_apart
from content_pipeline.core.cms import (
    Document,
    Glance,
    RemoteContent,
    RemotePage,
    RemoteStatus,
)
from content_pipeline.core.identity import content_hash, digest

Json = Mapping[str, Any]

EXCERPT = "excerpt"

VERSION_FIELD = "content_pipeline_version"
"""Added to every page by the companion plugin."""

GLANCE_FIELDS = (
    "id,slug,status,permalink_template,modified_gmt,"
    f"_links.version-history,_links.predecessor-version,{VERSION_FIELD}"
)

PAGE_FIELDS = f"{GLANCE_FIELDS},author,title.raw,excerpt.raw,content.raw"
"""Raw fields only: what visitors get rendered can differ between two reads."""

_TRASHED = "__trashed"
"""WordPress appends it to the slug of what goes into the trash, to free the address."""

_STATUSES = {"publish": RemoteStatus.PUBLISHED, "trash": RemoteStatus.TRASHED}
"""Everything else (draft, pending, private, future, a plugin's own) no visitor sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageForm:
    """How documents of one site become pages of its WordPress, and pages are read."""

    base_url: str
    """Canonical base of the site's URLs."""
    home_path: str
    """Path of the address at which WordPress serves the site; empty at the root of a host."""
    description_in: str = EXCERPT
    """Where the meta description stands: the excerpt, or the name of a registered meta field."""
    json_ld: bool = False

    @property
    def page_fields(self) -> str:
        """The fields of a whole page."""
        if self.description_in == EXCERPT:
            return PAGE_FIELDS
        return f"{PAGE_FIELDS},meta.{self.description_in}"

    def written(self, document: Document) -> dict[str, Any]:
        """The fields that make a page hold the text of ``document``."""
        text: dict[str, Any] = {
            "title": document.title,
            "content": compose(document, json_ld=self.json_ld),
        }
        if self.description_in == EXCERPT:
            return text | {"excerpt": document.meta_description}
        return text | {"meta": {self.description_in: document.meta_description}}

    def page(self, found: Json) -> RemotePage:
        """The page that ``found``, asked for with ``page_fields``, describes."""
        content = self.content(found)
        marker = take_apart(_raw(found, "content")).marker
        held = content_hash(content.title, content.meta_description, content.body_html)
        path = self.path(found)
        return RemotePage(
            remote_id=str(_number(found, "id")),
            path=path,
            url=self.base_url + path,
            status=status_of(found),
            marker=marker,
            fingerprint=digest(
                "wordpress", content.title, content.meta_description, _raw(found, "content")
            ),
            version=_version(found),
            intact=marker is not None and held == marker.content_hash,
        )

    def content(self, found: Json) -> RemoteContent:
        """The text of a page, without what we added to it."""
        return RemoteContent(
            title=_raw(found, "title"),
            meta_description=self._description(found),
            body_html=take_apart(_raw(found, "content")).body_html,
        )

    def glance(self, found: Json) -> Glance:
        """What a listing tells of a page."""
        return Glance(
            remote_id=str(_number(found, "id")),
            path=self.path(found),
            status=status_of(found),
            version=_version(found),
        )

    def path(self, found: Json) -> str:
        """Where a page stands, will stand, or stood before it went into the trash."""
        slug = _text(found, "slug")
        if status_of(found) is RemoteStatus.TRASHED:
            slug = slug.removesuffix(_TRASHED)
        template = urlsplit(_text(found, "permalink_template"))
        if not slug or "%" not in template.path:
            # A draft that never got a slug, or a site without permalinks: editors see it there.
            return f"/?page_id={_number(found, 'id')}"
        path = template.path.removeprefix(self.home_path)
        return path.replace("%pagename%", slug).replace("%postname%", slug)

    def _description(self, found: Json) -> str:
        if self.description_in == EXCERPT:
            return _raw(found, "excerpt")
        meta = found.get("meta")
        # An unregistered field is dropped without a word, and the whole of meta is then a list.
        value = meta.get(self.description_in) if isinstance(meta, Mapping) else None
        return value if isinstance(value, str) else ""


def status_of(found: Json) -> RemoteStatus:
    """Where a page stands for a visitor."""
    return _STATUSES.get(_text(found, "status"), RemoteStatus.HIDDEN)


def was_never_edited(found: Json) -> bool:
    """Whether a page is as it was created: WordPress keeps a revision of every change of a text.

    False where revisions are switched off, for nobody can tell there.
    """
    return _links(found, "version-history").get("count") == 0


def modified_at(found: Json) -> datetime:
    """When a page was last written, by WordPress's own clock."""
    return datetime.fromisoformat(_text(found, "modified_gmt")).replace(tzinfo=UTC)


def _version(found: Json) -> str:
    """The plugin's digest, else the second of the last write and the newest revision's id.

    Either alone misses edits: two in one second, or one of the slug, which makes no revision.
    """
    digest_by_plugin = found.get(VERSION_FIELD)
    if isinstance(digest_by_plugin, str) and digest_by_plugin:
        return digest_by_plugin
    newest = _links(found, "predecessor-version").get("id", 0)
    return f"{_text(found, 'modified_gmt')}/{newest}"


def _links(found: Json, name: str) -> Json:
    links = found.get("_links")
    named = links.get(name) if isinstance(links, Mapping) else None
    first = named[0] if isinstance(named, list) and named else None
    return first if isinstance(first, Mapping) else {}


def _raw(found: Json, name: str) -> str:
    field = found.get(name)
    raw = field.get("raw") if isinstance(field, Mapping) else None
    if not isinstance(raw, str):
        raise ValueError(f"the page has no raw {name}")
    return raw


def _text(found: Json, name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise ValueError(f"the page has no {name}")
    return value


def _number(found: Json, name: str) -> int:
    value = found.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"the page has no {name}")
    return value
