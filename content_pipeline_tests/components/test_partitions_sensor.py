"""Topics become partitions tick by tick: the new ones at once, and lost ones in time."""

import dagster as dg
import pytest
from sqlalchemy import text

from content_pipeline.components import partitions_sensor
from content_pipeline.components.partitions_sensor import Cursor, Registered, run_once
from content_pipeline.components.sensor_ticks import kept_cursor
from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of, write_table
from content_pipeline_tests.components.test_due_work import sensor_of


def ticked(site: TownSite, cursor: Cursor, budget_s: float = 60) -> Registered:
    return run_once(site.instance, site.ledger, site.assets, cursor, budget_s=budget_s)


def partitions(site: TownSite) -> list[str]:
    return list(site.instance.get_dynamic_partitions(site.assets.partitions_name))


def change(site: TownSite, count: int, **known_for: str) -> None:
    """Write another table and take it in."""
    assert site.site.table is not None
    write_table(site.site.table, rows_of(count, **known_for))
    site.submit()


@pytest.fixture
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions_sensor, "SLICE", 2)


def test_it_is_on_because_it_pays_for_nothing_and_starts_no_run(make_site: MakeSite) -> None:
    sensor = sensor_of(make_site(rows_of(1)), "partitions_sensor")
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    assert not sensor.has_jobs


def test_dagster_keeps_how_far_it_has_come(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    sensor = sensor_of(site, "partitions_sensor")
    cursor = None
    for said in ("No topic is new.", "3 new or changed topics are partitions.", "No topic is new."):
        with dg.build_sensor_context(instance=site.instance, cursor=cursor) as context:
            answer = sensor.evaluate_tick(context)
        assert (answer.skip_message, answer.run_requests) == (said, [])
        cursor = answer.cursor
        site.submit()
    assert partitions(site) == ["t01", "t02", "t03"]


def test_pages_wanted_elsewhere_become_partitions_in_the_order_of_the_table(
    make_site: MakeSite,
) -> None:
    site = make_site(list(reversed(rows_of(3))))
    assert ticked(site, Cursor()) == Registered(noted=0, cursor=Cursor(), more=False)
    site.submit()
    first = ticked(site, Cursor())
    assert (first.noted, first.more) == (3, False)
    assert partitions(site) == ["t03", "t02", "t01"]
    change(site, 4, t02="its harbour")
    second = ticked(site, first.cursor)
    assert second.said == "2 new or changed topics are partitions."
    assert partitions(site) == ["t03", "t02", "t01", "t04"]
    assert ticked(site, second.cursor).noted == 0


@pytest.mark.usefixtures("two_at_once")
def test_a_tick_whose_time_is_over_leaves_the_rest_to_the_next(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    site.submit()
    first = ticked(site, Cursor(), budget_s=0)
    assert first.said == "2 new or changed topics are partitions; the next tick goes on."
    assert partitions(site) == ["t01", "t02"]
    second = ticked(site, first.cursor, budget_s=0)
    assert partitions(site) == ["t01", "t02", "t03"]
    assert not ticked(site, second.cursor, budget_s=0).more


@pytest.mark.usefixtures("two_at_once")
def test_within_its_time_a_tick_registers_all(make_site: MakeSite) -> None:
    site = make_site(rows_of(5))
    site.submit()
    assert ticked(site, Cursor()).said == "5 new or changed topics are partitions."
    assert len(partitions(site)) == 5


@pytest.mark.usefixtures("two_at_once")
def test_a_partition_that_somebody_deleted_comes_back_when_the_round_reaches_it(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(6))
    site.submit()
    cursor = ticked(site, Cursor()).cursor
    site.instance.delete_dynamic_partition(site.assets.partitions_name, "t02")
    rounds = 0
    while "t02" not in partitions(site):
        cursor, rounds = ticked(site, cursor).cursor, rounds + 1
        assert rounds <= 4, "three slices of two, and the end that begins anew"
    assert rounds > 1, "one slice a tick"


@pytest.mark.parametrize("stored", ["not json", "[]", '{"seen": 3}', "null", '"x"'])
def test_a_cursor_of_another_kind_begins_anew(stored: str) -> None:
    assert kept_cursor(Cursor, stored) == Cursor()


def test_a_ledger_that_was_restored_is_read_from_its_start(make_site: MakeSite) -> None:
    site = make_site(rows_of(2))
    site.submit()
    later = Cursor(newest=10**12, compared=10**12)
    assert ticked(site, later).noted == 2
    assert partitions(site) == ["t01", "t02"]


def test_a_topic_that_left_the_table_before_it_was_seen_is_shown_when_it_comes_back(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(2))
    site.submit()
    change(site, 1)
    first = ticked(site, Cursor())
    assert partitions(site) == ["t01"]
    change(site, 2)
    assert ticked(site, first.cursor).noted == 1
    assert partitions(site) == ["t01", "t02"]


def test_a_tick_that_was_lost_is_repeated_without_harm(make_site: MakeSite) -> None:
    site = make_site(rows_of(2))
    site.submit()
    assert ticked(site, Cursor()) == ticked(site, Cursor())
    assert partitions(site) == ["t01", "t02"]


def test_partitions_are_looked_up_and_never_all_read(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_site(rows_of(2))
    site.submit()

    def refuse(*_: object) -> list[str]:
        raise AssertionError("a million names would be read")

    monkeypatch.setattr(type(site.instance), "get_dynamic_partitions", refuse)
    assert ticked(site, Cursor()).noted == 2


def test_the_numbers_follow_the_table_and_a_changed_row_has_a_new_one(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    site.submit()
    change(site, 3, t01="its harbour")
    with site.ledger.begin() as connection:
        keys = connection.execute(
            text("SELECT topic_key FROM content_pipeline.topics WHERE site = :site ORDER BY noted"),
            {"site": site.assets.name},
        ).scalars()
        assert list(keys) == ["t02", "t03", "t01"]
