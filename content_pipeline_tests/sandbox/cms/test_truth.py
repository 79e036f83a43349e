"""The arithmetic of truth: what visitors saw when, and what was written over what."""

from datetime import datetime
from typing import Any

import pytest

from content_pipeline.sandbox.cms.accounts import PERSON, PIPELINE
from content_pipeline.sandbox.cms.pages import Mark, Status
from content_pipeline.sandbox.cms.store import Change, Received
from content_pipeline.sandbox.cms.truth import (
    early_requests,
    edits_overwritten,
    live_at,
    pages_by_key,
    stale_overwrites,
)


def at(second: float) -> str:
    return datetime.fromtimestamp(1_800_000_000 + second).astimezone().isoformat()


def change(
    second: float,
    page_id: int,
    status: Status | None = Status.PUBLISH,
    *,
    key: str | None = "k",
    revision: int = 1,
    by: int = PIPELINE.id,
    digest: str | None = None,
) -> Change:
    return Change(
        at=at(second),
        page_id=page_id,
        by=by,
        cause="update",
        path=f"/page-{page_id}/",
        status=status,
        mark=Mark(key=key, revision=revision, content_hash="h") if key else None,
        digest=digest or f"{key} {revision}",
    )


def test_the_pages_of_a_key_are_told_by_what_became_of_them() -> None:
    changes = [
        change(0, 1, Status.DRAFT),
        change(1, 1, revision=2),
        change(2, 2, Status.TRASH),
        change(3, 3, Status.DRAFT),
        change(4, 4, Status.PENDING),
        change(5, 5),
        change(6, 5, None, key=None),
        change(7, 6, key="other"),
        change(8, 7, key=None),
    ]
    pages = pages_by_key(changes)
    assert set(pages) == {"k", "other"}
    found = pages["k"]
    assert (found.live, found.drafts, found.trashed, found.deleted) == ((1,), (3, 4), (2,), (5,))
    assert (found.revision, found.most_live_at_once) == (2, 2)
    assert pages["other"].live == (6,)


def test_two_pages_of_a_key_that_were_public_at_once_are_remembered() -> None:
    apart = [change(0, 1), change(1, 1, Status.TRASH), change(2, 2), change(3, 2, Status.DRAFT)]
    assert pages_by_key(apart)["k"].most_live_at_once == 1
    together = [change(0, 1), change(1, 2), change(2, 2, Status.TRASH)]
    assert pages_by_key(together)["k"].most_live_at_once == 2
    drafts = [change(0, 1, Status.DRAFT), change(1, 2, Status.DRAFT)]
    assert pages_by_key(drafts)["k"].most_live_at_once == 0


def test_what_was_public_at_an_instant_can_be_told() -> None:
    changes = [
        change(0, 2),
        change(10, 1, Status.DRAFT),
        change(20, 1),
        change(30, 2, Status.TRASH),
        change(40, 1, None),
    ]
    seen = {
        second: [each.page_id for each in live_at(changes, datetime.fromisoformat(at(second)))]
        for second in (-1, 0, 15, 20, 35, 45)
    }
    assert seen == {-1: [], 0: [2], 15: [2], 20: [1, 2], 35: [1], 45: []}
    assert live_at(changes) == []


@pytest.mark.parametrize(
    ("revisions", "stale"),
    [
        ([1, 2, 3], []),
        ([1, 1], []),
        ([1, 3, 2], [2]),
        ([2, 1, 1, 2], [1, 1]),
        ([5, 3, 4, 6], [3, 4]),
    ],
)
def test_an_older_revision_over_a_newer_one_is_stale(
    revisions: list[int], stale: list[int]
) -> None:
    changes = [change(second, 1, revision=each) for second, each in enumerate(revisions)]
    found = [each.mark.revision for each in stale_overwrites(changes) if each.mark]
    assert found == stale


def test_drafts_and_other_pages_make_nothing_stale() -> None:
    changes = [
        change(0, 1, revision=3),
        change(1, 2, revision=1),
        change(2, 1, Status.DRAFT, revision=2),
        change(3, 1, key=None),
    ]
    assert stale_overwrites(changes) == []


def edited(second: float, **more: Any) -> Change:
    return change(second, 1, by=PERSON.id, **more)


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ([change(0, 1), edited(1, digest="hand"), change(2, 1, revision=2)], [(1, 2)]),
        ([change(0, 1), edited(1, digest="hand"), change(2, 1, digest="hand")], []),
        ([change(0, 1), edited(1, digest="k 1"), change(2, 1, revision=2)], []),
        ([edited(0, digest="hand"), change(1, 2, revision=2)], []),
        ([edited(0, digest="a"), edited(1, digest="b"), change(2, 1), change(3, 1)], [(1, 2)]),
    ],
    ids=["replaced", "kept", "only renamed by hand", "another page", "the last edit"],
)
def test_a_text_by_hand_that_was_replaced_is_told(
    changes: list[Change], lost: list[tuple[int, int]]
) -> None:
    found = [(edit.at, by.at) for edit, by in edits_overwritten(changes)]
    assert found == [(at(edit), at(by)) for edit, by in lost]


def request(second: float, key: str, wait_s: float | None = None) -> Received:
    return Received(at=at(second), key=key, wait_s=wait_s)


@pytest.mark.parametrize(
    ("requests", "early"),
    [
        ([request(0, "a"), request(1, "a")], (0, 0)),
        ([request(0, "a", 10), request(10, "a")], (0, 0)),
        ([request(0, "a", 10), request(5, "a")], (1, 1)),
        ([request(0, "a", 10), request(0.5, "b")], (0, 0)),
        ([request(0, "a", 10), request(5, "b"), request(9, "c")], (0, 2)),
        ([request(0, "a", 10), request(2, "b", 2), request(5, "a")], (1, 2)),
    ],
)
def test_requests_before_an_announced_wait_is_over_are_counted(
    requests: list[Received], early: tuple[int, int]
) -> None:
    assert early_requests(requests) == early
