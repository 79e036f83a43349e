"""The seam to a content management system: the port, and the values that pass through it.

What belongs here: what the publish protocol needs from any CMS, in words of no vendor. What may be
done after a look stands in ``publishing``; how a vendor is asked stands in the adapters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from content_pipeline.core.failures import Failure
from content_pipeline.core.ports import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """Our mark on a page of the CMS: tells whose it is, which revision, and with what content."""

    page_id: str
    revision: int
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What the CMS is asked to hold: one revision of one page, already sanitised."""

    marker: Marker
    site_title: str
    language: str
    path: str
    """Canonical path below the site's base: starts with and ends in a slash."""
    url: str
    """Canonical absolute URL."""
    title: str
    meta_description: str
    body_html: str
    """Sanitised HTML of the article without the title."""
    json_ld: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteContent:
    """The text of a page as the CMS holds it, for people to compare."""

    title: str
    meta_description: str
    body_html: str


class RemoteStatus(StrEnum):
    """Where a page of the CMS stands for a visitor."""

    PUBLISHED = "published"
    ACCEPTED = "accepted"
    """Will be public without anybody's doing: committed to a repository and not deployed yet."""
    HIDDEN = "hidden"
    """Held, and no visitor sees it: a draft, pending, private or scheduled."""
    TRASHED = "trashed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePage:
    """One page as the CMS holds it now."""

    remote_id: str
    """The CMS's own id; opaque to us."""
    path: str
    """Where it stands, canonical like ``Document.path``; of a trashed page where it stood."""
    url: str
    status: RemoteStatus
    marker: Marker | None
    """None: the page does not carry our mark."""
    fingerprint: str
    """Digest of title, description and body as the server returns them: changes with every edit of
    the text, by whomever, and with nothing else."""
    version: str = ""
    """The CMS's own word for this state (ETag, updated_at, blob id), echoed when it is replaced;
    changes at least with every edit. Empty when the CMS has none."""
    intact: bool = True
    """False when the server holds another text than our mark on it says: it altered what was sent,
    or a person did."""

    @property
    def standing(self) -> str:
        """All that a person can change about the page, as one comparable word."""
        return f"{self.status}:{self.path}:{self.fingerprint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLookUp:
    """Answer to "what do you hold for this page?". Only a parsed answer says present or absent."""

    verdict: Verdict
    page: RemotePage | None = None
    twins: tuple[RemotePage, ...] = ()
    """Further pages with our mark, left by writes that took effect late."""
    failure: Failure | None = None
    """Why nothing can be said when ``verdict`` is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """What a listing tells cheaply of one page, ours or not."""

    remote_id: str
    path: str
    status: RemoteStatus
    version: str
    """As ``RemotePage.version``; a listing of a CMS without versions gives a digest instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """One slice of everything the CMS holds, trashed pages included."""

    glances: tuple[Glance, ...]
    next_slice: str | None
    """Where the next slice begins; None at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentChanges:
    """Pages that changed since a point in time or history that only the CMS understands."""

    pages: tuple[RemotePage, ...]
    """As they stand now; a page deleted for good does not show here."""
    point: str
    """Hand it back to hear of what changes from here on. Changes at the point itself may show
    twice and are never left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CMSCheck:
    """What a preflight found: who we are for the CMS, and what keeps us from working."""

    identity: str
    """The account and the version of the CMS, for people; empty when it could not be asked."""
    problems: tuple[str, ...] = ()
    """Each says what is wrong and what to do; empty when pages can be published."""
    notes: tuple[str, ...] = field(default=())
    """What people should know although it stops nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CMSCapabilities:
    """What a CMS offers; the publish protocol picks the strongest."""

    client_id: bool
    """We choose the id, or the CMS keeps our key unique: creating twice cannot make two pages."""
    compare_and_swap: bool
    """A write names the version it replaces and is refused when that changed."""
    drafts: bool
    """A page can be created invisible and published by id afterwards."""
    marker_look_up: bool
    """A page can be found by our marker wherever it was moved."""
    trash: bool
    """A page taken off the site can be brought back by a person."""


class PublicPages(Protocol):
    """The site as a visitor gets it, caches and all."""

    def why_not_shown(self, document: Document) -> Failure | None:
        """Why a visitor does not get ``document`` at its URL; None when one does. Never raises."""
        ...


@runtime_checkable
class FindsOurs(Protocol):
    """What a CMS may offer beside ``look_up`` when that takes it several requests."""

    def find_ours(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:
        """As ``CMS.look_up``, but absent says nothing about a stranger at ``path``.

        For a page that is then created: its draft stands elsewhere when the path is taken.
        """
        ...


class CMS(Protocol):
    """Where pages are published. Every method raises CallFailed and nothing else."""

    @property
    def capabilities(self) -> CMSCapabilities:
        """What the publish protocol may build on."""
        ...

    def look_up(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:
        """What the CMS holds for our page: by stored id, else by marker, else at the path.

        A page of ours is found before a stranger's at its path. Never raises for a failing service.
        """
        ...

    def create_draft(self, document: Document) -> RemotePage:
        """Create the page invisible; only called when ``capabilities.drafts``.

        The page returned may stand at another path than asked when the CMS found it taken.
        """
        ...

    def publish(self, document: Document, *, replacing: RemotePage | None) -> RemotePage:
        """Make ``document`` the page's public content at its path, over what ``replacing`` saw.

        ``replacing`` is None when the page does not exist yet; it may be hidden, trashed or moved.
        Raises CallFailed of class conflict when the CMS can tell that the page is not what
        ``replacing`` saw.
        """
        ...

    def withdraw(self, page: RemotePage) -> None:
        """Let visitors see exactly ``page`` no longer: hidden where drafts exist, else removed.

        Harmless to repeat. Raises CallFailed as ``publish``.
        """
        ...

    def remove(self, page: RemotePage) -> None:
        """Take exactly ``page`` away: into the trash where there is one. Harmless to repeat."""
        ...

    def content_of(self, page: RemotePage) -> RemoteContent:
        """The text that ``page`` holds now, for people to compare."""
        ...

    def inventory(self, next_slice: str | None) -> Inventory:
        """One slice of all pages, cheaply; None begins at the first."""
        ...

    def recent_changes(self, point: str | None) -> RecentChanges:
        """What changed since ``point``; None: nothing, and the point that is now."""
        ...

    def check(self) -> CMSCheck:
        """Whether credentials, rights and settings allow publishing; changes nothing.

        Never raises: a service that fails is a problem among the others.
        """
        ...
