"""What to do about a page of the CMS after looking at it: one decision, as a value.

What belongs here: the pure rule between a look-up, our last proved publish and the revision in
hand. It is the only place that allows a write; the promise "never an older draft over a newer one,
never over a person's edit" stands and falls here.
"""

from dataclasses import dataclass
from enum import StrEnum

from content_pipeline.core.ports import Marker, PageLookUp, RemotePage, RemoteStatus, Verdict


class PublishAction(StrEnum):
    """What the look-up allows."""

    CREATE = "create"
    REPLACE = "replace"
    CONFIRM = "confirm"
    """The CMS already holds exactly this revision: nothing is written."""
    SUPERSEDED = "superseded"
    """The CMS holds a newer revision of ours."""
    CONFLICT = "conflict"
    """The page is somebody else's, or was edited since our last publish."""
    UNKNOWN = "unknown"
    """The look-up says nothing: no write may follow."""


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


def decide_publish(
    look_up: PageLookUp, *, wanted: Marker, baseline: Baseline | None
) -> PublishDecision:
    """What may be done to publish the revision of ``wanted``."""
    page = look_up.page
    if look_up.verdict is Verdict.UNKNOWN or (look_up.verdict is Verdict.PRESENT) != (
        page is not None
    ):
        return PublishDecision(
            action=PublishAction.UNKNOWN, reason="the CMS could not say what it holds"
        )
    if page is None:
        return PublishDecision(action=PublishAction.CREATE, reason="the CMS has no such page")
    if page.marker is None or page.marker.page_id != wanted.page_id:
        return PublishDecision(
            action=PublishAction.CONFLICT,
            reason=f"a page that is not ours stands at {page.path}",
        )
    return _decide_ours(page, page.marker, wanted, baseline)


def _decide_ours(
    page: RemotePage, marker: Marker, wanted: Marker, baseline: Baseline | None
) -> PublishDecision:
    if marker.revision > wanted.revision:
        return PublishDecision(
            action=PublishAction.SUPERSEDED,
            reason=f"the CMS holds revision {marker.revision}, newer than {wanted.revision}",
        )
    touched = _touched_by_somebody(page, marker, baseline)
    if touched:
        return PublishDecision(action=PublishAction.CONFLICT, reason=touched)
    if holds(page, wanted):
        return PublishDecision(
            action=PublishAction.CONFIRM, reason=f"the CMS already holds revision {wanted.revision}"
        )
    return PublishDecision(
        action=PublishAction.REPLACE, reason=f"the CMS holds our revision {marker.revision}"
    )


def _touched_by_somebody(page: RemotePage, marker: Marker, baseline: Baseline | None) -> str | None:
    """What a person did to our page; None when all that is there can be our own doing."""
    if page.status is RemoteStatus.TRASHED:
        return f"the page at {page.path} was taken off the site"
    if baseline is None or marker.revision > baseline.revision:
        return None
    if marker.revision < baseline.revision:
        return (
            f"the page was set back to revision {marker.revision} since we published "
            f"revision {baseline.revision}"
        )
    if page.fingerprint != baseline.fingerprint:
        return f"the page was edited on the site since we published revision {marker.revision}"
    return None


def holds(page: RemotePage, wanted: Marker) -> bool:
    """Whether visitors see exactly the revision of ``wanted``."""
    return page.status is RemoteStatus.PUBLISHED and page.marker == wanted
