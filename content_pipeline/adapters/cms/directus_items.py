"""An item of a Directus collection, and the page that it is for the publish protocol.

What belongs here: which field holds what, and JSON to ``RemotePage`` and back. The id is derived
from our page id, so that an item can be made once only. Whatever lacks a field of its type raises
ValueError and counts as no answer.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from content_pipeline.adapters.cms.json_service import Json, text_in, text_or_empty
from content_pipeline.core.cms import (
    Document,
    Glance,
    Marker,
    RemoteContent,
    RemotePage,
    RemoteStatus,
)
from content_pipeline.core.identity import content_hash, digest
from content_pipeline.core.service_settings import DirectusCMSSettings, DirectusFieldSettings

_NAMESPACE = uuid.UUID("6f1d8a52-6c0c-5d3b-9a51-2f0d3f3f9c11")
"""Of the ids that are made here; it never changes, for the ids would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemForm:
    """How documents of one site become items, and items are read."""

    base_url: str
    names: DirectusFieldSettings
    published: str
    draft: str
    archived: str | None
    slashes: bool

    @classmethod
    def of(cls, settings: DirectusCMSSettings, *, base_url: str) -> "ItemForm":
        """The form that a site's file asks for."""
        return cls(
            base_url=base_url,
            names=settings.fields,
            published=settings.published,
            draft=settings.draft,
            archived=settings.archived if settings.fields.status else None,
            slashes=settings.slashes,
        )

    @property
    def asked(self) -> tuple[str, ...]:
        """The fields of a whole item that are read."""
        names = self.names.model_dump(exclude={"json_ld", "updated"})
        return tuple(dict.fromkeys(name for name in names.values() if name is not None))

    def written(self, document: Document, *, status: str) -> dict[str, Any]:
        """The fields that make an item hold ``document``, without its id."""
        names, marker = self.names, document.marker
        fields: dict[str | None, Any] = {
            names.path: self.held_path(document.path),
            names.title: document.title,
            names.meta_description: document.meta_description,
            names.body: document.body_html,
            names.key: marker.page_id,
            names.revision: marker.revision,
            names.content_hash: marker.content_hash,
            names.status: status,
            names.json_ld: dict(document.json_ld),
        }
        return {name: value for name, value in fields.items() if name is not None}

    def held_path(self, path: str) -> str:
        """``path`` as the collection holds it."""
        return path if self.slashes else path.strip("/")

    def page(self, found: Json) -> RemotePage:
        """The page that ``found``, asked for with all fields, is."""
        content, marker, path = self.content(found), self._marker(found), self._path(found)
        held = content_hash(content.title, content.meta_description, content.body_html)
        return RemotePage(
            remote_id=_id(found, self.names.id),
            path=path,
            url=self.base_url + path,
            status=self.status(found),
            marker=marker,
            fingerprint=digest(
                "directus", content.title, content.meta_description, content.body_html
            ),
            version=self._version(found),
            intact=marker is not None and held == marker.content_hash,
        )

    def content(self, found: Json) -> RemoteContent:
        """The text of an item."""
        return RemoteContent(
            title=text_or_empty(found, self.names.title),
            meta_description=text_or_empty(found, self.names.meta_description),
            body_html=text_or_empty(found, self.names.body),
        )

    def glance(self, found: Json) -> Glance:
        """What a listing with all fields tells of an item."""
        return Glance(
            remote_id=_id(found, self.names.id),
            path=self._path(found),
            status=self.status(found),
            version=self._version(found),
        )

    def status(self, found: Json) -> RemoteStatus:
        """Where an item stands for a visitor: what is neither public nor archived is hidden."""
        if self.names.status is None:
            return RemoteStatus.PUBLISHED
        status = text_or_empty(found, self.names.status)
        if status == self.published:
            return RemoteStatus.PUBLISHED
        return RemoteStatus.TRASHED if status == self.archived else RemoteStatus.HIDDEN

    def _path(self, found: Json) -> str:
        held = text_or_empty(found, self.names.path)
        return held if self.slashes else f"/{held}/"

    def _marker(self, found: Json) -> Marker | None:
        """Our mark; None when a part of it was taken off."""
        key, revision = found.get(self.names.key), found.get(self.names.revision)
        held = found.get(self.names.content_hash)
        if not isinstance(key, str) or not isinstance(held, str) or type(revision) is not int:
            return None
        return Marker(page_id=key, revision=revision, content_hash=held)

    def _version(self, found: Json) -> str:
        """Of all that is read: Directus's own time moves with writes that change nothing."""
        return digest("directus", [found.get(name) for name in self.asked])


def item_id_of(page_id: str) -> str:
    """The primary key of the item of our page: the same whenever it is made."""
    return str(uuid.uuid5(_NAMESPACE, page_id))


def is_item_id(text: str | None) -> bool:
    """Whether ``text`` may be asked for as a primary key; another one can be an error."""
    try:
        return str(uuid.UUID(text or "")) == text
    except ValueError:
        return False


def _id(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return str(value) if isinstance(value, int) else text_in(found, name)
