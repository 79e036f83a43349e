"""The life of a page job, held against what it promises: every state has a way on and a way out."""

import itertools
from collections import defaultdict

import pytest

from content_pipeline.core.states import (
    ALL_STAGES,
    CANCELLABLE,
    FINAL,
    MOVES,
    NEEDS_PERSON,
    NEXT,
    WORKABLE,
    PageJobState,
    PublicStatus,
    Stage,
    public_status,
    states_of,
)
from content_pipeline.operations.steps import STEPS

S = PageJobState

WAYS_OUT: dict[PageJobState, set[PageJobState]] = defaultdict(set)
for _from, _to in MOVES:
    WAYS_OUT[_from].add(_to)

CALL_IS_OUT = (S.GENERATING, S.GENERATION_UNCERTAIN, S.PUBLISHING, S.PUBLISH_UNCERTAIN)


def reachable(start: PageJobState, *, within: frozenset[PageJobState]) -> set[PageJobState]:
    """All states that moves out of states ``within`` lead to from ``start``."""
    found, waiting = {start}, [start]
    while waiting:
        state = waiting.pop()
        for to in WAYS_OUT[state] if state in within else ():
            if to not in found:
                found.add(to)
                waiting.append(to)
    return found


def test_the_vocabulary_is_closed() -> None:
    assert [state.value for state in S] == [
        "queued",
        "reserved",
        "generating",
        "generated",
        "validating",
        "ready_to_publish",
        "publishing",
        "published",
        "withdrawing",
        "failed_retryable",
        "generation_uncertain",
        "publish_uncertain",
        "failed_terminal",
        "dead_lettered",
        "cancelled",
        "withdrawn",
        "superseded",
    ]


def test_every_state_is_reachable_from_queued() -> None:
    assert reachable(S.QUEUED, within=frozenset(S)) == set(S)


def test_no_state_moves_to_itself() -> None:
    assert [state for state, to in MOVES if state is to] == []


def test_the_way_without_trouble_is_one_move_after_the_other() -> None:
    way = [
        S.QUEUED,
        S.RESERVED,
        S.GENERATING,
        S.GENERATED,
        S.VALIDATING,
        S.READY_TO_PUBLISH,
        S.PUBLISHING,
        S.PUBLISHED,
    ]
    assert set(itertools.pairwise(way)) <= MOVES.keys()


@pytest.mark.parametrize("state", sorted(WORKABLE))
def test_a_workable_state_has_a_step_and_can_come_to_every_kind_of_end(
    state: PageJobState,
) -> None:
    assert state in STEPS
    ends = reachable(state, within=WORKABLE) & FINAL
    assert {S.PUBLISHED, S.FAILED_TERMINAL, S.SUPERSEDED} <= ends


def test_only_workable_states_have_a_step() -> None:
    assert STEPS.keys() == WORKABLE


@pytest.mark.parametrize(
    ("state", "ways_out"),
    [
        (S.PUBLISHED, {S.SUPERSEDED, S.READY_TO_PUBLISH, S.WITHDRAWING}),
        (S.WITHDRAWN, {S.GENERATED}),
        (S.SUPERSEDED, {S.QUEUED, S.GENERATED, S.GENERATION_UNCERTAIN}),
        (
            S.FAILED_TERMINAL,
            {S.QUEUED, S.GENERATED, S.GENERATION_UNCERTAIN, S.WITHDRAWING, S.SUPERSEDED},
        ),
        (S.DEAD_LETTERED, {S.QUEUED, S.GENERATED, S.GENERATION_UNCERTAIN, S.WITHDRAWING}),
        (S.CANCELLED, {S.QUEUED, S.GENERATED, S.GENERATION_UNCERTAIN}),
    ],
)
def test_a_final_state_is_left_only_as_documented(
    state: PageJobState, ways_out: set[PageJobState]
) -> None:
    assert state in FINAL
    assert WAYS_OUT[state] == ways_out


def test_states_are_final_or_workable_and_never_both() -> None:
    assert set(S) == FINAL | WORKABLE
    assert not FINAL & WORKABLE
    assert NEEDS_PERSON <= FINAL


@pytest.mark.parametrize("state", CALL_IS_OUT)
def test_a_page_whose_call_is_out_cannot_be_cancelled(state: PageJobState) -> None:
    assert (state, S.CANCELLED) not in MOVES


def test_a_wish_to_cancel_is_accepted_until_a_publish_begins() -> None:
    assert {S.PUBLISHING, S.PUBLISH_UNCERTAIN, S.WITHDRAWING} == WORKABLE - CANCELLABLE


@pytest.mark.parametrize("state", sorted(CANCELLABLE))
def test_where_a_wish_to_cancel_is_accepted_it_can_come_true_without_a_publish(
    state: PageJobState,
) -> None:
    assert S.CANCELLED in reachable(state, within=frozenset(CANCELLABLE))


def test_every_other_workable_state_can_be_cancelled() -> None:
    for state in WORKABLE - set(CALL_IS_OUT) - {S.WITHDRAWING}:
        assert (state, S.CANCELLED) in MOVES, state


def test_money_is_spent_in_one_state_that_only_a_reservation_leads_to() -> None:
    assert [state for state, to in MOVES if to is S.GENERATING] == [S.RESERVED]
    assert [state for state, to in MOVES if to is S.RESERVED] == [S.QUEUED]


def test_a_page_waits_after_a_try_or_for_money_and_for_nothing_else() -> None:
    assert {state for state, to in MOVES if to is S.FAILED_RETRYABLE} == {
        S.QUEUED,
        S.GENERATING,
        S.PUBLISHING,
    }


def test_a_publish_follows_a_validated_draft_or_a_proof_and_nothing_else() -> None:
    assert [state for state, to in MOVES if to is S.PUBLISHING] == [S.READY_TO_PUBLISH]
    assert {state for state, to in MOVES if to is S.PUBLISHED} == {
        S.PUBLISHING,
        S.PUBLISH_UNCERTAIN,
    }
    assert {state for state, to in MOVES if to is S.READY_TO_PUBLISH} == {
        S.VALIDATING,
        S.FAILED_RETRYABLE,
        S.PUBLISH_UNCERTAIN,
        S.PUBLISHED,
        S.WITHDRAWING,
    }


def test_a_stored_draft_is_always_validated_again_after_a_person_or_newer_input() -> None:
    for state in FINAL:
        # What was published was valid, and is published again as it is.
        assert state is S.PUBLISHED or S.READY_TO_PUBLISH not in WAYS_OUT[state]
        assert S.PUBLISHING not in WAYS_OUT[state]


def test_an_uncertain_outcome_is_never_left_by_sending_again() -> None:
    assert S.GENERATING not in WAYS_OUT[S.GENERATION_UNCERTAIN]
    assert S.PUBLISHING not in WAYS_OUT[S.PUBLISH_UNCERTAIN]
    assert S.FAILED_RETRYABLE not in WAYS_OUT[S.GENERATION_UNCERTAIN]
    assert S.FAILED_RETRYABLE not in WAYS_OUT[S.PUBLISH_UNCERTAIN]


def test_every_move_says_why() -> None:
    for move, why in MOVES.items():
        assert why.strip() == why, move
        assert len(why.split()) >= 3, move


PUBLIC = {
    S.QUEUED: PublicStatus.QUEUED,
    S.RESERVED: PublicStatus.RUNNING,
    S.GENERATING: PublicStatus.RUNNING,
    S.GENERATED: PublicStatus.RUNNING,
    S.VALIDATING: PublicStatus.RUNNING,
    S.READY_TO_PUBLISH: PublicStatus.RUNNING,
    S.PUBLISHING: PublicStatus.RUNNING,
    S.PUBLISHED: PublicStatus.SUCCEEDED,
    S.WITHDRAWING: PublicStatus.RUNNING,
    S.WITHDRAWN: PublicStatus.SUCCEEDED,
    S.FAILED_RETRYABLE: PublicStatus.RETRY_WAIT,
    S.GENERATION_UNCERTAIN: PublicStatus.RETRY_WAIT,
    S.PUBLISH_UNCERTAIN: PublicStatus.RETRY_WAIT,
    S.FAILED_TERMINAL: PublicStatus.FAILED,
    S.DEAD_LETTERED: PublicStatus.FAILED,
    S.CANCELLED: PublicStatus.CANCELLED,
    S.SUPERSEDED: PublicStatus.SUCCEEDED,
}


@pytest.mark.parametrize("state", S)
def test_people_are_shown_one_of_seven_states(state: PageJobState) -> None:
    assert public_status(state, cancel_requested=False) is PUBLIC[state]


@pytest.mark.parametrize("state", S)
def test_a_wish_to_cancel_shows_until_the_end_is_known(state: PageJobState) -> None:
    shown = public_status(state, cancel_requested=True)
    assert shown is (PUBLIC[state] if state in FINAL else PublicStatus.CANCEL_REQUESTED)


def test_the_stages_cover_exactly_the_workable_states() -> None:
    assert states_of(ALL_STAGES) == WORKABLE
    assert frozenset(Stage) == ALL_STAGES
    assert states_of(frozenset()) == frozenset()


@pytest.mark.parametrize(
    ("stage", "states"),
    [
        (
            Stage.DRAFT,
            {S.QUEUED, S.RESERVED, S.GENERATING, S.GENERATION_UNCERTAIN, S.FAILED_RETRYABLE},
        ),
        (Stage.PAGE, {S.GENERATED, S.VALIDATING}),
        (
            Stage.ARTIFACT,
            {
                S.READY_TO_PUBLISH,
                S.PUBLISHING,
                S.PUBLISH_UNCERTAIN,
                S.WITHDRAWING,
                S.FAILED_RETRYABLE,
            },
        ),
    ],
)
def test_a_stage_takes_jobs_out_of_its_own_states(stage: Stage, states: set[PageJobState]) -> None:
    assert states_of(frozenset({stage})) == states


def test_work_on_drafts_alone_neither_validates_nor_publishes() -> None:
    drafts_only = states_of(frozenset({Stage.DRAFT}))
    assert S.PUBLISHED not in reachable(S.QUEUED, within=drafts_only)
    assert S.GENERATED in reachable(S.QUEUED, within=drafts_only)


@pytest.mark.parametrize("state", S)
def test_people_are_told_what_happens_next(state: PageJobState) -> None:
    assert len(NEXT[state].split()) >= 3


def test_nothing_is_told_of_states_that_do_not_exist() -> None:
    assert NEXT.keys() == set(S)
