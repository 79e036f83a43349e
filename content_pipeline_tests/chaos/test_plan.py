from collections import Counter

import pytest

from content_pipeline.chaos.plan import (
    KILL_SHARES,
    POISON_PAGES,
    REFUSED_BY_POLICY,
    ChaosPlan,
    draw_kills,
    draw_plan,
    poison_in,
    shares,
)
from content_pipeline.chaos.project import names_of
from content_pipeline.sandbox.faults import (
    Fault,
    FaultKind,
    FaultPlan,
    Incoming,
    Match,
    Rule,
    RunningPlan,
)

NAMES = tuple(names_of(200).values())
DEADLINE_S = 3.0
ATTEMPTS = 20_000
STATED = 0.29
"""Share of all attempts that a fault befalls."""


def drawn(seed: int, *, kills: int = 1) -> ChaosPlan:
    return draw_plan(seed, NAMES, kills=kills, deadline_s=DEADLINE_S)


def asked(plan: ChaosPlan, attempts: int = ATTEMPTS, *, prompt: str = "") -> list[Fault | None]:
    """What befalls so many attempts, each with an id of its own."""
    running = RunningPlan(plan.faults)
    return [
        running.fault_for(
            Incoming(operation="create", key=f"attempt-{number}", metadata={}, prompt=prompt)
        )
        for number in range(attempts)
    ]


def test_a_seed_always_draws_the_same_plan() -> None:
    assert drawn(7, kills=3) == drawn(7, kills=3)
    assert asked(drawn(7), 500) == asked(drawn(7), 500)


def test_seeds_draw_different_faults_poison_and_kills() -> None:
    one, other = drawn(1), drawn(2)
    assert asked(one, 500) != asked(other, 500)
    assert one.poison != other.poison
    assert one.kill_shares != other.kill_shares


def test_the_shares_add_up_to_what_is_stated() -> None:
    assert sum(part.share for part in shares(DEADLINE_S)) == pytest.approx(STATED)


def test_faults_befall_their_share_of_all_attempts() -> None:
    befallen = asked(drawn(1))
    assert sum(fault is not None for fault in befallen) / ATTEMPTS == pytest.approx(
        STATED, abs=0.015
    )
    counted = Counter(fault for fault in map(repr, befallen) if fault != "None")
    for part in shares(DEADLINE_S):
        # three standard deviations of the rarest share
        assert counted[repr(part.fault)] / ATTEMPTS == pytest.approx(part.share, abs=0.006)
        assert counted[repr(part.fault)] > 0


@pytest.mark.parametrize("style", ["seconds", "float", "ms", "http_date"])
def test_waits_are_announced_in_every_style(style: str) -> None:
    faults = [part.fault for part in shares(DEADLINE_S) if part.fault.status == 429]
    assert style in {fault.retry_after_style for fault in faults if fault.announced_s}


def test_unusable_waits_are_announced_too() -> None:
    said = {part.fault.headers.get("retry-after") for part in shares(DEADLINE_S)}
    assert {"0", "-3", "nan", "soon"} < said


@pytest.mark.parametrize(
    "kind",
    ["drop_after", "cut_body", "hang", "slow", "drop_before", "length", "broken_json", "html"],
)
def test_kinds_of_faults_that_every_plan_holds(kind: str) -> None:
    assert kind in {part.fault.kind for part in shares(DEADLINE_S)}


def test_late_answers_come_after_the_deadline_and_hangs_outlast_it() -> None:
    by_kind = {part.fault.kind: part.fault for part in shares(DEADLINE_S)}
    assert by_kind[FaultKind.SLOW].seconds > DEADLINE_S
    assert by_kind[FaultKind.HANG].seconds > DEADLINE_S


def test_poison_pages_are_refused_at_every_attempt() -> None:
    plan = drawn(1)
    assert len(plan.poison) == POISON_PAGES
    assert plan.poison < set(NAMES)
    for name in plan.poison:
        befallen = asked(plan, 20, prompt=f"Write a page about {name}.")
        assert len(set(map(repr, befallen))) == 1
        assert befallen[0] is not None


def test_nobody_else_is_refused_by_policy() -> None:
    for part in shares(DEADLINE_S):
        assert part.fault.kind not in (FaultKind.REFUSAL, FaultKind.CONTENT_FILTER)
        assert part.fault.code != REFUSED_BY_POLICY


def test_half_of_a_tiny_site_is_left_unpoisoned() -> None:
    names = list(names_of(2).values())
    assert len(draw_plan(1, names, kills=0, deadline_s=DEADLINE_S).poison) == 1


@pytest.mark.parametrize("kills", [0, 1, 5])
def test_kills_are_drawn_in_order_and_while_there_is_work(kills: int) -> None:
    drawn_shares = draw_kills(3, kills)
    assert len(drawn_shares) == kills
    assert list(drawn_shares) == sorted(drawn_shares)
    assert all(KILL_SHARES[0] <= share <= KILL_SHARES[1] for share in drawn_shares)


def test_no_name_is_part_of_another() -> None:
    assert not any(one in other for one in NAMES for other in NAMES if one != other)


REFUSED = Fault(kind=FaultKind.REFUSAL)


@pytest.mark.parametrize(
    ("fault", "match", "poisoned"),
    [
        (REFUSED, Match(prompt_contains="00007"), {"Harbour 00007"}),
        (Fault(kind=FaultKind.CONTENT_FILTER), Match(prompt_contains="0000"), 9),
        (
            Fault(kind=FaultKind.STATUS, status=400, code=REFUSED_BY_POLICY),
            Match(prompt_contains="Harbour 00003"),
            {"Harbour 00003"},
        ),
        (Fault(kind=FaultKind.STATUS, status=429), Match(prompt_contains="00007"), set()),
        (REFUSED, Match(prompt_contains="00007", probability=0.5), set()),
        (REFUSED, Match(nth=3), set()),
    ],
)
def test_a_written_plan_names_its_poison_itself(
    fault: Fault, match: Match, poisoned: set[str] | int
) -> None:
    found = poison_in(FaultPlan(rules=(Rule(fault=fault, match=match),)), NAMES)
    assert (len(found) if isinstance(poisoned, int) else found) == poisoned


def test_a_drawn_plan_names_the_poison_that_was_drawn() -> None:
    plan = drawn(5)
    assert poison_in(plan.faults, NAMES) == plan.poison
