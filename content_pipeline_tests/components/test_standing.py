"""Where a page stands on each asset."""

from typing import Any

import pytest

from content_pipeline.components.standing import (
    Standing,
    in_order,
    is_news,
    reached_by,
    standing,
)
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import MOVES, PageJobState, Stage
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline_tests.components.page_reports import NOON, attempt, page

S = PageJobState
DONE, WAITING, FAILED, STOPPED = Standing.DONE, Standing.WAITING, Standing.FAILED, Standing.STOPPED
PUBLISH = AttemptKind.PUBLISH
WITHDRAW = AttemptKind.WITHDRAW


@pytest.mark.parametrize(
    ("state", "facts", "draft", "valid", "artifact"),
    [
        (S.QUEUED, {}, WAITING, WAITING, WAITING),
        (S.RESERVED, {}, WAITING, WAITING, WAITING),
        (S.GENERATING, {}, WAITING, WAITING, WAITING),
        (S.GENERATION_UNCERTAIN, {}, WAITING, WAITING, WAITING),
        (S.GENERATED, {"revision": 1}, DONE, WAITING, WAITING),
        (S.VALIDATING, {"revision": 1}, DONE, WAITING, WAITING),
        (S.READY_TO_PUBLISH, {"revision": 1}, DONE, DONE, WAITING),
        (S.PUBLISHING, {"revision": 1}, DONE, DONE, WAITING),
        (S.PUBLISH_UNCERTAIN, {"revision": 1}, DONE, DONE, WAITING),
        (S.PUBLISHED, {"revision": 1}, DONE, DONE, DONE),
        (S.FAILED_RETRYABLE, {}, WAITING, WAITING, WAITING),
        (S.FAILED_RETRYABLE, {"revision": 1}, DONE, DONE, WAITING),
        (S.FAILED_TERMINAL, {}, FAILED, FAILED, FAILED),
        (S.FAILED_TERMINAL, {"revision": 1}, DONE, FAILED, FAILED),
        (S.DEAD_LETTERED, {}, FAILED, FAILED, FAILED),
        (S.CANCELLED, {}, STOPPED, STOPPED, STOPPED),
        (S.CANCELLED, {"revision": 1}, DONE, STOPPED, STOPPED),
        (S.SUPERSEDED, {}, STOPPED, STOPPED, STOPPED),
        (S.WITHDRAWING, {"revision": 1}, DONE, DONE, WAITING),
        (S.WITHDRAWN, {"revision": 1}, DONE, DONE, STOPPED),
        (S.FAILED_TERMINAL, {"topic_is_retired": True}, STOPPED, STOPPED, STOPPED),
        (
            S.FAILED_TERMINAL,
            {"topic_is_retired": True, "revision": 1, "attempts": (attempt(WITHDRAW),)},
            DONE,
            FAILED,
            FAILED,
        ),
    ],
)
def test_each_state_has_a_colour_on_each_asset(
    state: PageJobState,
    facts: dict[str, Any],
    draft: Standing,
    valid: Standing,
    artifact: Standing,
) -> None:
    seen = page(state, **facts)
    assert [standing(seen, stage) for stage in Stage] == [draft, valid, artifact]


def test_every_state_is_in_the_table_above() -> None:
    table = test_each_state_has_a_colour_on_each_asset.pytestmark[0].args[1]
    assert {row[0] for row in table} == set(S)


def test_a_page_that_failed_to_publish_was_valid() -> None:
    tried = (attempt(), attempt(PUBLISH, state="failed"))
    seen = page(S.DEAD_LETTERED, revision=1, attempts=tried)
    assert [standing(seen, stage) for stage in Stage] == [DONE, DONE, FAILED]


def test_a_publish_of_an_older_revision_says_nothing_of_the_new_draft() -> None:
    tried = (attempt(), attempt(PUBLISH, revision=1), attempt(number=2, revision=2))
    seen = page(S.FAILED_TERMINAL, revision=2, attempts=tried)
    assert standing(seen, Stage.PAGE) is FAILED


@pytest.mark.parametrize("halting", [FailureClass.AUTH, FailureClass.QUOTA])
def test_a_page_that_waits_for_the_account_to_be_mended_needs_a_person(
    halting: FailureClass,
) -> None:
    seen = page(S.FAILED_RETRYABLE, failure_class=halting)
    assert standing(seen, Stage.DRAFT) is FAILED


def _moves(*pairs: tuple[PageJobState, PageJobState], worker: str = "me") -> list[Any]:
    return [{"from_state": a.value, "to_state": b.value, "worker": worker} for a, b in pairs]


WAY = (
    (S.QUEUED, S.RESERVED),
    (S.RESERVED, S.GENERATING),
    (S.GENERATING, S.GENERATED),
    (S.GENERATED, S.VALIDATING),
    (S.VALIDATING, S.READY_TO_PUBLISH),
    (S.READY_TO_PUBLISH, S.PUBLISHING),
    (S.PUBLISHING, S.PUBLISHED),
)


@pytest.mark.parametrize(
    ("steps", "reached"),
    [
        (WAY, set(Stage)),
        (WAY[:3], {Stage.DRAFT}),
        (WAY[3:5], {Stage.PAGE}),
        (WAY[5:], {Stage.ARTIFACT}),
        (((S.GENERATION_UNCERTAIN, S.GENERATED),), {Stage.DRAFT}),
        (((S.PUBLISH_UNCERTAIN, S.PUBLISHED),), {Stage.ARTIFACT}),
        (((S.FAILED_RETRYABLE, S.READY_TO_PUBLISH),), set()),
        (((S.SUPERSEDED, S.GENERATED),), set()),
        ((), set()),
    ],
)
def test_a_worker_reached_a_stage_when_it_made_the_move_that_ends_it(
    steps: tuple[tuple[PageJobState, PageJobState], ...], reached: set[Stage]
) -> None:
    assert set(steps) <= MOVES.keys()
    assert reached_by("me", _moves(*steps)) == reached
    assert reached_by("somebody else", _moves(*steps)) == set()


@pytest.mark.parametrize(
    ("state", "facts", "news"),
    [
        (S.PUBLISHED, {}, False),
        (S.PUBLISHED, {"site_change": SiteChange.EDITED}, True),
        (S.PUBLISHING, {"site_change": SiteChange.EDITED}, False),
        (S.WITHDRAWN, {"withdrawn_at": NOON}, True),
        (S.WITHDRAWN, {}, False),
    ],
)
def test_only_the_artifact_has_news_of_the_site(
    state: S, facts: dict[str, Any], news: bool
) -> None:
    seen = page(state, revision=1, **facts)
    assert {stage: is_news(seen, stage) for stage in Stage} == {
        Stage.DRAFT: False,
        Stage.PAGE: False,
        Stage.ARTIFACT: news,
    }


def test_stages_come_in_the_order_of_a_pages_way() -> None:
    assert in_order(frozenset({Stage.ARTIFACT, Stage.DRAFT})) == [Stage.DRAFT, Stage.ARTIFACT]
