"""A tick is planned once, as a whole, and its runs are read in order from wherever one stopped."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from content_pipeline.ledger import nightly_plans
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.nightly_plans import PlannedRun

SITE = "towns"
TICK = "2026-03-01T02:00Z"


@pytest.fixture(autouse=True)
def no_plans(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        connection.execute(text("DELETE FROM content_pipeline.nightly_plans"))


def run(number: int, *partitions: str, is_range: bool = False) -> PlannedRun:
    return PlannedRun(
        number=number,
        partitions=partitions or (f"t{number}",),
        is_range=is_range,
        pages=3,
        expected_usd=Decimal("0.01"),
        worst_usd=Decimal("0.12345678"),
    )


def keep(
    connection: Connection, *runs: PlannedRun, site: str = SITE, tick: str = TICK, by: str = "r1"
) -> bool:
    return nightly_plans.keep(
        connection, site, tick=tick, run_id=by, told=f"{len(runs)} runs", runs=runs
    )


def plan_id_of(connection: Connection, site: str = SITE) -> int:
    found = nightly_plans.newest(connection, site)
    assert found is not None
    return found.plan_id


def test_a_plan_is_found_as_it_was_kept(ledger: Ledger) -> None:
    runs = [run(1, "t01", "t99", is_range=True), run(2, "t100", "t105", "t200")]
    with ledger.begin() as connection:
        assert keep(connection, *runs)
        found = nightly_plans.newest(connection, SITE)
        assert found is not None
        assert (found.tick, found.run_id, found.told, found.runs) == (TICK, "r1", "2 runs", 2)
        assert found.age_s >= 0
        assert nightly_plans.runs_after(connection, found.plan_id, 0, most=9) == runs
        of_tick = nightly_plans.of_tick(connection, SITE, TICK)
        assert of_tick is not None
        assert of_tick.plan_id == found.plan_id


def test_a_tick_that_is_planned_again_keeps_its_first_plan(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        assert keep(connection, run(1))
        assert not keep(connection, run(1), run(2), by="r2")
        found = nightly_plans.of_tick(connection, SITE, TICK)
        assert found is not None
        assert (found.run_id, found.runs) == ("r1", 1)
        assert nightly_plans.runs_after(connection, found.plan_id, 0, most=9) == [run(1)]


def test_of_two_that_plan_a_tick_at_once_one_plan_is_kept(ledger: Ledger) -> None:
    def plan(by: str) -> bool:
        with ledger.begin() as connection:
            return keep(connection, run(1, by), by=by)

    with ThreadPoolExecutor(4) as pool:
        kept = list(pool.map(plan, ["r1", "r2", "r3", "r4"]))
    assert kept.count(True) == 1
    with ledger.begin() as connection:
        found = nightly_plans.newest(connection, SITE)
        assert found is not None
        (only,) = nightly_plans.runs_after(connection, found.plan_id, 0, most=9)
        assert only.partitions == (found.run_id,), "its runs are those of one of them"


def test_runs_are_read_on_from_where_one_stopped(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        keep(connection, *(run(number) for number in range(1, 6)))
        plan = plan_id_of(connection)

        def numbers(after: int, most: int) -> list[int]:
            found = nightly_plans.runs_after(connection, plan, after, most=most)
            return [each.number for each in found]

        assert numbers(0, 2) == [1, 2]
        assert numbers(2, 9) == [3, 4, 5]
        assert numbers(5, 9) == []
        assert numbers(0, 0) == []


def test_the_newest_plan_of_a_site_is_its_own(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        assert nightly_plans.newest(connection, SITE) is None
        keep(connection, run(1))
        keep(connection, run(1), tick="2026-03-02T02:00Z")
        keep(connection, run(1), site="rivers", tick="2026-03-03T02:00Z")
        found = nightly_plans.newest(connection, SITE)
        assert found is not None
        assert found.tick == "2026-03-02T02:00Z"
        assert nightly_plans.of_tick(connection, "rivers", TICK) is None


def test_a_plan_without_runs_is_a_plan(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        assert keep(connection)
        assert not keep(connection, run(1)), "the tick had nothing to do, whoever asks again"
        assert nightly_plans.runs_after(connection, plan_id_of(connection), 0, most=9) == []


def test_plans_of_a_month_ago_are_forgotten_with_their_runs(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        keep(connection, run(1))
        keep(connection, run(1), site="rivers")
        connection.execute(
            text(
                "UPDATE content_pipeline.nightly_plans "
                "SET created_at = created_at - interval '31 days'"
            )
        )
        old = plan_id_of(connection)
        keep(connection, run(1), tick="2026-04-02T02:00Z")
        assert nightly_plans.of_tick(connection, SITE, TICK) is None
        assert nightly_plans.runs_after(connection, old, 0, most=9) == []
        assert nightly_plans.of_tick(connection, "rivers", TICK) is not None, "another site's"


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (run(1, "t1", "t2", "t3", is_range=True), "a_range_has_two_ends"),
        (run(0), "numbered_and_not_empty"),
    ],
)
def test_the_database_refuses_runs_that_mean_nothing(
    broken: PlannedRun, rule: str, ledger: Ledger
) -> None:
    with pytest.raises(IntegrityError, match=rule), ledger.begin() as connection:
        keep(connection, broken)
    with ledger.begin() as connection:
        assert nightly_plans.newest(connection, SITE) is None, "nor its plan"
