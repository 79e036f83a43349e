"""What to do about a page of the CMS after looking at it: one decision, as a value.

What belongs here: the pure rule between a look-up, our last proved publish, the site's policy and
the revision in hand. It is the only place that allows a write; the promise "never an older draft
over a newer one, never over a person's edit" stands and falls here.
"""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from content_pipeline.core.cms import (
    CMSCapabilities,
    Marker,
    PageLookUp,
    RemotePage,
    RemoteStatus,
)
from content_pipeline.core.ports import Verdict


class PublishAction(StrEnum):
    """What the look-up allows."""

    CREATE = "create"
    REPLACE = "replace"
    CONFIRM = "confirm"
    """The CMS already holds exactly this revision: nothing is written."""
    AWAIT = "await"
    """The CMS has accepted this revision and will show it without anybody's doing."""
    SUPERSEDED = "superseded"
    """The CMS holds a newer revision of ours."""
    LEAVE = "leave"
    """The site was changed by a person, and its policy is to let that stand."""
    CONFLICT = "conflict"
    """The page is somebody else's, or was changed since our last publish."""
    UNKNOWN = "unknown"
    """The look-up says nothing: no write may follow."""


class SiteChange(StrEnum):
    """What a person, or a restored backup, did to a page that we had published."""

    MISSING = "missing"
    """It is gone for good."""
    TRASHED = "trashed"
    UNPUBLISHED = "unpublished"
    """It is kept, and hidden from visitors."""
    RENAMED = "renamed"
    """It has another address beside the old one: its last part was changed."""
    MOVED = "moved"
    """It has an address elsewhere: its parent was changed."""
    REVERTED = "reverted"
    """It shows an older revision of ours."""
    EDITED = "edited"
    FOREIGN = "foreign"
    """A page that is not ours stands at the address, or our mark was taken off."""


OFF_THE_SITE = frozenset(
    {
        SiteChange.MISSING,
        SiteChange.TRASHED,
        SiteChange.UNPUBLISHED,
        SiteChange.RENAMED,
        SiteChange.MOVED,
        SiteChange.FOREIGN,
    }
)
"""Nothing of ours is at the page's address: it is announced no more."""


class Reaction(StrEnum):
    """What a site wants done about a change."""

    ASK = "ask"
    """Nothing is written; a person decides."""
    RESTORE = "restore"
    """Ours is put back."""
    LEAVE = "leave"
    """Theirs stands, and nobody is asked."""


class ReactionPolicy(BaseModel):
    """Per kind of change what the site wants done; never over a person's work by default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # A page that is gone without a trace was most often lost with a restored backup.
    missing: Reaction = Reaction.RESTORE
    trashed: Reaction = Reaction.ASK
    unpublished: Reaction = Reaction.ASK
    renamed: Reaction = Reaction.ASK
    moved: Reaction = Reaction.ASK
    reverted: Reaction = Reaction.ASK
    edited: Reaction = Reaction.ASK
    accept_altered_text: bool = False
    """For a CMS that rewrites what it is sent: what it makes of our text is as good as ours."""

    def to(self, change: SiteChange) -> Reaction:
        """What to do about ``change``; a stranger's page is never written over unasked."""
        if change is SiteChange.FOREIGN:
            return Reaction.ASK
        reaction: Reaction = getattr(self, change.value)
        return reaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the CMS returned when our last publish of the page was proved."""

    revision: int
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishDecision:
    """The action and, for people, why."""

    action: PublishAction
    reason: str
    change: SiteChange | None = None
    """What was found changed on the site, if anything."""


def decide_publish(
    look_up: PageLookUp,
    *,
    wanted: Marker,
    path: str,
    baseline: Baseline | None,
    policy: ReactionPolicy,
    may_overwrite: str | None = None,
) -> PublishDecision:
    """What may be done to publish the revision of ``wanted`` at ``path``.

    ``may_overwrite``: the one standing of the page that a person said to overwrite, if any.
    """
    page = look_up.page
    if look_up.verdict is Verdict.UNKNOWN or (look_up.verdict is Verdict.PRESENT) != (
        page is not None
    ):
        return PublishDecision(
            action=PublishAction.UNKNOWN, reason="the CMS could not say what it holds"
        )
    if page is not None and page.marker is not None and page.marker.page_id == wanted.page_id:
        marker = page.marker
        if marker.revision > wanted.revision:
            return PublishDecision(
                action=PublishAction.SUPERSEDED,
                reason=f"the CMS holds revision {marker.revision}, newer than {wanted.revision}",
            )
        found = change_of(page, page_id=wanted.page_id, path=path, baseline=baseline)
        if found is None and not policy.accept_altered_text:
            found = _altered(page, marker, baseline)
        if found is None:
            return _decide_untouched(page, marker, wanted)
    elif page is None and baseline is None:
        return PublishDecision(action=PublishAction.CREATE, reason="the CMS has no such page")
    else:
        found = change_of(page, page_id=wanted.page_id, path=path, baseline=baseline)
        assert found is not None
    change, reason = found
    told = may_overwrite == standing_of(page)
    return PublishDecision(
        action=_reaction(page, Reaction.RESTORE if told else policy.to(change)),
        reason=reason,
        change=change,
    )


def _decide_untouched(page: RemotePage, marker: Marker, wanted: Marker) -> PublishDecision:
    """What to do about a page of ours that can only be our own doing."""
    if holds(page, wanted):
        return PublishDecision(
            action=PublishAction.CONFIRM, reason=f"the CMS already holds revision {wanted.revision}"
        )
    if page.status is RemoteStatus.ACCEPTED and marker == wanted:
        return PublishDecision(
            action=PublishAction.AWAIT,
            reason=f"the CMS has accepted revision {wanted.revision} and does not show it yet",
        )
    return PublishDecision(
        action=PublishAction.REPLACE, reason=f"the CMS holds our revision {marker.revision}"
    )


def _reaction(page: RemotePage | None, reaction: Reaction) -> PublishAction:
    match reaction:
        case Reaction.ASK:
            return PublishAction.CONFLICT
        case Reaction.LEAVE:
            return PublishAction.LEAVE
        case Reaction.RESTORE:
            return PublishAction.CREATE if page is None else PublishAction.REPLACE


def change_of(
    page: RemotePage | None, *, page_id: str, path: str, baseline: Baseline | None
) -> tuple[SiteChange, str] | None:
    """How the page differs from all that can be our own doing, and that in words; None: not."""
    if page is None:
        if baseline is None:
            return None
        return SiteChange.MISSING, f"the page is no longer on the site, at {path} or elsewhere"
    if page.marker is None or page.marker.page_id != page_id:
        return SiteChange.FOREIGN, f"a page that is not ours stands at {page.path}"
    if page.status is RemoteStatus.TRASHED:
        return SiteChange.TRASHED, f"the page at {page.path} was put into the trash"
    return _change_of_ours(page, page.marker, path, baseline)


def _change_of_ours(
    page: RemotePage, marker: Marker, path: str, baseline: Baseline | None
) -> tuple[SiteChange, str] | None:
    proved = baseline is not None and marker.revision <= baseline.revision
    if page.path != path:
        if baseline is None:
            return SiteChange.FOREIGN, f"{path} is taken: the CMS gave our page {page.path} instead"
        if _parent(page.path) != _parent(path):
            return SiteChange.MOVED, f"the page was moved from {path} to {page.path}"
        return SiteChange.RENAMED, f"the page was renamed from {path} to {page.path}"
    if baseline is None or not proved:
        return None
    if page.status is RemoteStatus.HIDDEN:
        return SiteChange.UNPUBLISHED, f"the page at {path} was taken off the site and is kept"
    if marker.revision < baseline.revision:
        return SiteChange.REVERTED, (
            f"the page was set back to revision {marker.revision} since we published "
            f"revision {baseline.revision}"
        )
    if page.fingerprint != baseline.fingerprint:
        return SiteChange.EDITED, (
            f"the page was edited on the site since we published revision {marker.revision}"
        )
    return None


def _altered(
    page: RemotePage, marker: Marker, baseline: Baseline | None
) -> tuple[SiteChange, str] | None:
    """A public page that was never proved and holds another text than its mark says."""
    proved = baseline is not None and marker.revision <= baseline.revision
    if page.intact or proved or page.status is not RemoteStatus.PUBLISHED:
        return None
    return SiteChange.EDITED, (
        f"the page at {page.path} holds another text than revision {marker.revision} has: the CMS "
        "altered what it was sent, or a person edited it before it could be proved"
    )


def standing_of(page: RemotePage | None) -> str:
    """The page's standing; a page that is gone has one as well."""
    return SiteChange.MISSING if page is None else page.standing


def _parent(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0]


def holds(page: RemotePage, wanted: Marker) -> bool:
    """Whether visitors see exactly the revision of ``wanted``."""
    return page.status is RemoteStatus.PUBLISHED and page.marker == wanted


def is_draft_of(page: RemotePage | None, wanted: Marker) -> bool:
    """Whether the CMS keeps exactly the revision of ``wanted``, hidden from visitors."""
    return page is not None and page.status is RemoteStatus.HIDDEN and page.marker == wanted


def guarantee(offers: CMSCapabilities) -> tuple[str, ...]:
    """What the protocol promises on a CMS that offers this, for people."""
    if offers.client_id:
        twice = "never two pages: the CMS itself refuses a second one for the same key"
    elif offers.drafts and offers.marker_look_up:
        twice = (
            "never two public pages: a page is created hidden, found again by our mark, and "
            "published by its id; a write that takes effect late leaves a hidden draft at most, "
            "which is removed"
        )
    else:
        twice = (
            "two pages are possible when a lost write takes effect after the quiet period; they "
            "are found and reported"
        )
    edits = (
        "never over a person's edit: the CMS refuses a write over anything but what was seen"
        if offers.compare_and_swap
        else "a person's edit is seen before each write; one made within the second of our write "
        "can be overwritten, for the CMS has no compare-and-swap"
    )
    return twice, edits
