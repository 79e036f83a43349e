"""A page as the CMS holds it: one row, its statuses, and our marks inside it.

What belongs here: values and what can be read off them. Who may change them is in ``writing``.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Status(StrEnum):
    """Where a page stands; only the first is shown to visitors."""

    PUBLISH = "publish"
    FUTURE = "future"
    DRAFT = "draft"
    PENDING = "pending"
    PRIVATE = "private"
    TRASH = "trash"


UNSLUGGED = frozenset({Status.DRAFT, Status.PENDING})
"""Statuses in which a page may stay without a slug, and its date moves with every save."""

HAS_PERMALINK = frozenset({Status.PUBLISH, Status.PRIVATE})

TRASHED_SUFFIX = "__trashed"

META_KEYS = ("_cp_key", "_cp_rev", "_cp_hash")
"""The fields that the companion plugin registers; without it they are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The pipeline's mark on a page."""

    key: str
    revision: int
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One row; times are WordPress's: UTC, whole seconds, without a zone."""

    id: int
    title: str = field(default="", repr=False)
    content: str = field(default="", repr=False)
    excerpt: str = field(default="", repr=False)
    slug: str = ""
    status: Status = Status.DRAFT
    date_gmt: str = ""
    date_is_set: bool = False
    """False: the date moves with every save until the page is published."""
    modified_gmt: str = ""
    author: int = 0
    parent: int = 0
    menu_order: int = 0
    template: str = ""
    desired_slug: str = ""
    """While in the trash: the slug to go back to."""
    meta: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_public(self) -> bool:
        """Whether a visitor sees it."""
        return self.status is Status.PUBLISH

    @property
    def searchable(self) -> str:
        """What a search looks at, in lower case."""
        return "\n".join((self.title, self.excerpt, self.content)).lower()

    @property
    def digest(self) -> str:
        """Changes with what a reader sees of the page itself."""
        text = "\x00".join((self.title, self.content, self.excerpt))
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]

    @property
    def etag(self) -> str:
        """As the companion plugin sends it, quotes included."""
        parent = str(self.parent)
        parts = (self.title, self.content, self.slug, self.status, self.excerpt, parent)
        return f'"{hashlib.sha256(chr(0).join(parts).encode(errors="replace")).hexdigest()[:40]}"'


def mark_of(page: Page, pattern: re.Pattern[str]) -> Mark | None:
    """The first mark in the content, else that of the companion's fields; None without one.

    ``pattern`` has the groups ``key``, ``rev`` and ``hash``.
    """
    found = pattern.search(page.content)
    if found:
        return Mark(key=found["key"], revision=int(found["rev"]), content_hash=found["hash"])
    key, revision, content_hash = (page.meta.get(name, "") for name in META_KEYS)
    if not key:
        return None
    number = int(revision) if revision.isascii() and revision.isdigit() else 0
    return Mark(key=key, revision=number, content_hash=content_hash)
