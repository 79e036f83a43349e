from collections import Counter

import pytest

from content_pipeline.chaos.cms_plan import LATE_S, LISTING_LAG_S, draw_cms_plan, write_shares
from content_pipeline.chaos.project import LATE_QUIET_S, QUIET_S
from content_pipeline.core.site import LaneSettings
from content_pipeline.sandbox.cms.faults import Fault, FaultKind, Incoming, RunningPlan

WRITES = 20_000
STATED = 0.19
"""Share of all writes that a fault befalls."""


def asked(seed: int, writes: int = WRITES, *, late: bool = False) -> list[Fault | None]:
    """What befalls so many writes, each of a page of its own."""
    running = RunningPlan(draw_cms_plan(seed, late=late))
    return [
        running.fault_for(Incoming(operation="create", key=f"page-{number}", path="/", fields={}))
        for number in range(writes)
    ]


def test_a_seed_always_draws_the_same_faults_and_another_one_others() -> None:
    assert asked(7, 500) == asked(7, 500)
    assert asked(7, 500) != asked(8, 500)


@pytest.mark.parametrize("late", [False, True])
def test_the_shares_add_up_to_what_is_stated_and_befall_so_many_writes(late: bool) -> None:
    assert sum(part.share for part in write_shares(late=late)) == pytest.approx(STATED)
    befallen = asked(1, late=late)
    assert sum(fault is not None for fault in befallen) / WRITES == pytest.approx(STATED, abs=0.012)
    counted = Counter(map(repr, befallen))
    for part in write_shares(late=late):
        # three standard deviations of the rarest share
        assert counted[repr(part.fault)] / WRITES == pytest.approx(part.share, abs=0.006)


@pytest.mark.parametrize("operation", ["list", "read", "me", "root", "front"])
def test_what_only_looks_is_answered(operation: str) -> None:
    running = RunningPlan(draw_cms_plan(1, late=True))
    befallen = [
        running.fault_for(Incoming(operation=operation, key=str(number), path="/", fields={}))
        for number in range(200)
    ]
    assert befallen == [None] * 200


def test_waits_are_announced_and_left_unsaid() -> None:
    busy = [part.fault for part in write_shares(late=False) if part.fault.status == 429]
    assert {fault.announced_s is None for fault in busy} == {True, False}


def test_a_lost_write_is_late_only_where_that_is_asked_for() -> None:
    def kinds(*, late: bool) -> set[FaultKind]:
        return {part.fault.kind for part in write_shares(late=late)}

    assert FaultKind.LATE in kinds(late=True)
    assert FaultKind.LATE not in kinds(late=False)
    lost = [part.fault for part in write_shares(late=False) if part.fault.kind is FaultKind.DROP]
    assert {fault.committed for fault in lost} == {True, False}


def test_the_quiet_period_outlasts_late_writes_and_lists_that_are_behind() -> None:
    assert LATE_QUIET_S > LATE_S + LISTING_LAG_S - 1
    assert max(LATE_S, LISTING_LAG_S) < LATE_QUIET_S
    assert QUIET_S < LATE_QUIET_S < LaneSettings().publish_quiet_s, "no site should copy these"
