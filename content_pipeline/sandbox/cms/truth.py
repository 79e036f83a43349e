"""The truth about pages: what visitors could see when, and what was written over what.

What belongs here: pure arithmetic on the store's changes. It is held against the pipeline's own
account of itself, so nothing of that enters here.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from content_pipeline.sandbox.cms.accounts import PERSON
from content_pipeline.sandbox.cms.pages import Status
from content_pipeline.sandbox.cms.store import Change, Received

ON_THE_WAY_S = 1.0
"""After an announced wait other calls may still arrive that were decided on before it was heard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesOfKey:
    """The pages that bear one key now, by what became of them, and how many were public at once."""

    live: tuple[int, ...]
    drafts: tuple[int, ...]
    """Also pending, planned and private ones."""
    trashed: tuple[int, ...]
    deleted: tuple[int, ...]
    most_live_at_once: int
    revision: int | None
    """Of the live page with the highest one."""


def standing_at(changes: Iterable[Change], at: datetime | None = None) -> dict[int, Change]:
    """Each page's last change up to ``at``; all changes without."""
    held: dict[int, Change] = {}
    for change in changes:
        if at is not None and datetime.fromisoformat(change.at) > at:
            break
        held[change.page_id] = change
    return held


def live_at(changes: Iterable[Change], at: datetime | None = None) -> list[Change]:
    """The change that each page public at ``at`` stood by, by path."""
    live = [change for change in standing_at(changes, at).values() if change.is_public]
    return sorted(live, key=lambda change: (change.path, change.page_id))


def pages_by_key(changes: Sequence[Change]) -> dict[str, PagesOfKey]:
    """What became of the pages of every key; a page without a mark now counts by its last one."""
    keys = _last_keys(changes)
    standing: defaultdict[str, list[Change]] = defaultdict(list)
    for page_id, change in standing_at(changes).items():
        if page_id in keys:
            standing[keys[page_id]].append(change)
    most = _most_live_at_once(changes)
    return {key: _pages_of(those, most[key]) for key, those in standing.items()}


def _last_keys(changes: Iterable[Change]) -> dict[int, str]:
    return {change.page_id: change.mark.key for change in changes if change.mark}


def _pages_of(standing: Sequence[Change], most_live: int) -> PagesOfKey:
    def those(*statuses: Status | None) -> tuple[int, ...]:
        return tuple(sorted(each.page_id for each in standing if each.status in statuses))

    revisions = [each.mark.revision for each in standing if each.is_public and each.mark]
    return PagesOfKey(
        live=those(Status.PUBLISH),
        drafts=those(Status.DRAFT, Status.PENDING, Status.FUTURE, Status.PRIVATE),
        trashed=those(Status.TRASH),
        deleted=those(None),
        most_live_at_once=most_live,
        revision=max(revisions, default=None),
    )


def _most_live_at_once(changes: Iterable[Change]) -> Counter[str]:
    """By key: how many of its pages visitors ever saw at one instant."""
    live: dict[int, str] = {}
    at_once: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for change in changes:
        if change.page_id in live:
            at_once[live.pop(change.page_id)] -= 1
        if change.is_public and change.mark:
            key = live[change.page_id] = change.mark.key
            at_once[key] += 1
            most[key] = max(most[key], at_once[key])
    return most


def stale_overwrites(changes: Iterable[Change]) -> list[Change]:
    """Changes after which visitors saw an older revision of a page than before."""
    highest: dict[int, int] = {}
    stale = []
    for change in changes:
        if not (change.is_public and change.mark):
            continue
        before = highest.get(change.page_id, change.mark.revision)
        if change.mark.revision < before:
            stale.append(change)
        highest[change.page_id] = max(before, change.mark.revision)
    return stale


def edits_overwritten(changes: Iterable[Change]) -> list[tuple[Change, Change]]:
    """Texts by a person, each with the change that replaced it under another name."""
    by_hand: dict[int, Change] = {}
    lost = []
    before: dict[int, Change] = {}
    for change in changes:
        previous = before.get(change.page_id)
        if change.by == PERSON.id:
            if previous is None or previous.digest != change.digest:
                by_hand[change.page_id] = change
        elif change.page_id in by_hand and change.digest != by_hand[change.page_id].digest:
            lost.append((by_hand.pop(change.page_id), change))
        before[change.page_id] = change
    return lost


def early_requests(requests: Iterable[Received]) -> tuple[int, int]:
    """Requests before an announced wait was over: about the same page, and to the site at all.

    The site's wait counts from when everybody can have heard of it.
    """
    by_key: dict[str, datetime] = {}
    heard, until = None, None
    for_page = for_site = 0
    for each in requests:
        at = datetime.fromisoformat(each.at)
        for_page += at < by_key.get(each.key, at)
        for_site += heard is not None and until is not None and heard <= at < until
        if each.wait_s:
            end = at + timedelta(seconds=each.wait_s)
            by_key[each.key] = max(end, by_key.get(each.key, end))
            if until is None or end > until:
                heard, until = at + timedelta(seconds=ON_THE_WAY_S), end
    return for_page, for_site
