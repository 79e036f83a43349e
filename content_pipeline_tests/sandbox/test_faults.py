from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from content_pipeline.sandbox.faults import (
    BEFORE_GENERATING,
    Fault,
    FaultKind,
    FaultPlan,
    Incoming,
    RunningPlan,
)


def plan(*rules: dict[str, Any], seed: int = 0) -> RunningPlan:
    return RunningPlan(FaultPlan.model_validate({"seed": seed, "rules": rules}))


def rule(kind: str = "drop_after", times: int | None = None, **match: Any) -> dict[str, Any]:
    return {"fault": {"kind": kind}, "match": match, "times": times}


def incoming(number: int, operation: str = "create", **fields: Any) -> Incoming:
    given: dict[str, Any] = {"metadata": {}, "key": f"attempt-{number}"} | fields
    return Incoming(operation=operation, **given)


def hit(running: RunningPlan, requests: int = 12) -> list[int]:
    """Numbers of those of the first ``requests`` requests that something happens to."""
    return [n for n in range(1, requests + 1) if running.fault_for(incoming(n)) is not None]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], []),
        ([rule()], list(range(1, 13))),
        ([rule(nth=3)], [3]),
        ([rule(every=4)], [4, 8, 12]),
        ([rule(times=2)], [1, 2]),
        ([rule(every=3, times=2)], [3, 6]),
        ([rule(nth=2), rule(nth=5)], [2, 5]),
        ([rule(every=2, nth=4)], [4]),
        ([rule(probability=0.0)], []),
        ([rule(probability=1.0)], list(range(1, 13))),
        ([rule(metadata={"page_job_id": "x"})], []),
        ([rule("status", operation="list")], []),
    ],
)
def test_a_rule_hits_exactly_these_requests(rules: list[Any], expected: list[int]) -> None:
    assert hit(plan(*rules)) == expected


def test_the_first_matching_rule_decides() -> None:
    running = plan(rule("hang", nth=2), rule("empty", every=2), rule("html"))
    kinds = [fault.kind for n in range(1, 5) if (fault := running.fault_for(incoming(n)))]
    assert kinds == ["html", "hang", "html", "empty"]


def test_a_used_up_rule_gives_way_to_the_next() -> None:
    running = plan(rule("hang", times=1), rule("empty", times=1))
    faults = [running.fault_for(incoming(n)) for n in range(3)]
    assert [fault and fault.kind for fault in faults] == ["hang", "empty", None]


def test_requests_are_counted_per_operation() -> None:
    running = plan(rule(operation="list", nth=1, kind="status"), rule(nth=2))
    assert running.fault_for(incoming(1)) is None
    assert running.fault_for(incoming(1, "list")) is not None
    assert running.fault_for(incoming(2)) is not None


@pytest.mark.parametrize(
    ("match", "request_fields", "matches"),
    [
        ({"metadata": {"a": "1"}}, {"metadata": {"a": "1", "b": "2"}}, True),
        ({"metadata": {"a": "1", "b": "2"}}, {"metadata": {"a": "1"}}, False),
        ({"metadata": {"a": "1"}}, {"metadata": {"a": "2"}}, False),
        ({"prompt_contains": "Peru"}, {"prompt": "Write about Peru."}, True),
        ({"prompt_contains": "peru"}, {"prompt": "Write about Peru."}, False),
    ],
)
def test_a_rule_can_look_at_metadata_and_prompt(
    match: dict[str, Any], request_fields: dict[str, Any], matches: bool
) -> None:
    assert (plan(rule(**match)).fault_for(incoming(1, **request_fields)) is not None) is matches


def test_chance_does_not_depend_on_the_order_of_arrival() -> None:
    def struck(numbers: list[int]) -> set[int]:
        running = plan(rule(probability=0.3), seed=5)
        return {n for n in numbers if running.fault_for(incoming(n)) is not None}

    numbers = list(range(400))
    assert struck(numbers) == struck(numbers[::-1])
    assert 90 < len(struck(numbers)) < 150


def test_another_seed_strikes_other_requests() -> None:
    assert hit(plan(rule(probability=0.5), seed=1), 60) != hit(plan(rule(probability=0.5)), 60)


def test_a_repeated_attempt_is_a_new_draw() -> None:
    running = plan(rule(probability=0.5))
    outcomes = Counter(running.fault_for(incoming(1)) is None for _ in range(60))
    assert min(outcomes[True], outcomes[False]) > 10


def test_two_rules_draw_independently() -> None:
    both, faults = plan(rule(probability=0.5), rule("html", probability=0.5)), []
    for number in range(400):
        if fault := both.fault_for(incoming(number)):
            faults.append(fault.kind)
    assert 70 < Counter(faults)[FaultKind.HTML] < 130


@pytest.mark.parametrize("kind", FaultKind)
def test_only_faults_before_generating_are_free(kind: FaultKind) -> None:
    assert Fault(kind=kind).bills is (kind not in BEFORE_GENERATING)
    assert Fault(kind=kind, billed=True).bills


@pytest.mark.parametrize(
    "wrong",
    [
        {"rules": [{"fault": {"kind": "explode"}}]},
        {"rules": [{"fault": {"kind": "hang", "seconds": -1}}]},
        {"rules": [{"fault": {"kind": "status", "status": 99}}]},
        {"rules": [rule(nth=0)]},
        {"rules": [rule(every=0)]},
        {"rules": [rule(probability=1.1)]},
        {"rules": [rule(times=0)]},
        {"rules": [rule(page="x")]},
        {"rules": [rule(operation="delete")]},
        {"rules": [rule("hang", operation="list")]},
        {"rules": [{"match": {}}]},
        {"rule": []},
    ],
)
def test_a_plan_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FaultPlan.model_validate(wrong)
