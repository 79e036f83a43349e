"""A run is given up only when its worker was silent for long, by a second look, and hears of it."""

import pytest
from sqlalchemy import Connection, text

from content_pipeline.ledger import run_signs
from content_pipeline.ledger.database import Ledger

SITE = "towns"


@pytest.fixture(autouse=True)
def no_signs(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        connection.execute(text("DELETE FROM content_pipeline.run_signs"))


def show(connection: Connection, run_id: str = "r1") -> bool:
    return run_signs.show(connection, run_id=run_id, site=SITE, worker="w")


def pass_time(connection: Connection, seconds: float) -> None:
    connection.execute(
        text(
            "UPDATE content_pipeline.run_signs SET seen_at = seen_at - make_interval(secs => :s), "
            "suspected_at = suspected_at - make_interval(secs => :s), "
            "told_at = told_at - make_interval(secs => :s)"
        ),
        {"s": seconds},
    )


def look(connection: Connection, silence_s: float = 0.05) -> bool:
    """Look once; whether the run is given up."""
    run_signs.give_up_silent(connection, SITE, silence_s=silence_s)
    (sign,) = run_signs.of_site(connection, SITE)
    return sign.given_up_at is not None


def test_a_silent_run_is_given_up_by_the_second_look(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        assert show(connection)
        pass_time(connection, 100)
        assert not look(connection)
        pass_time(connection, 20)
        assert look(connection)
        assert not show(connection), "its worker hears of it, should it live"


def test_two_looks_at_once_are_one_look(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        show(connection)
        pass_time(connection, 100)
        assert [look(connection) for _ in range(3)] == [False, False, False]


def test_looks_that_are_far_apart_are_first_looks(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        show(connection)
        pass_time(connection, 100)
        assert not look(connection)
        pass_time(connection, 1_000)  # nobody looked: the database was away, for the worker as well
        assert not look(connection)
        pass_time(connection, 20)
        assert look(connection)


def test_a_sign_between_the_looks_saves_the_run(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        show(connection)
        for _ in range(5):
            pass_time(connection, 100)
            assert not look(connection)
            assert show(connection)


def test_a_database_that_just_started_heard_nobody_before(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        up_s = connection.execute(
            text("SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())")
        ).scalar_one()
        show(connection)
        pass_time(connection, 100_000)
        for _ in range(3):
            assert not look(connection, silence_s=float(up_s) + 1_000)
            pass_time(connection, 20)


def test_a_run_that_ends_in_order_leaves_nothing(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        show(connection)
        run_signs.forget(connection, "r1")
        assert run_signs.of_site(connection, SITE) == []
        assert show(connection), "a step that is tried again begins anew"


def test_a_run_that_is_over_is_told_once_and_its_worker_hears_of_it_for_days(
    ledger: Ledger,
) -> None:
    with ledger.begin() as connection:
        show(connection)
        run_signs.is_over(connection, "r1")
        run_signs.forget(connection, "r1")  # its worker lives and ends in order all the same
        assert len(run_signs.of_site(connection, SITE)) == 1
        run_signs.told(connection, "r1")
        assert run_signs.of_site(connection, SITE) == []
        pass_time(connection, 6 * 86_400)
        run_signs.told(connection, "another")
        assert not show(connection)
        pass_time(connection, 8 * 86_400)
        run_signs.told(connection, "another")
        assert show(connection)


def test_other_sites_runs_are_left_alone(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        run_signs.show(connection, run_id="r2", site="hills", worker="w")
        pass_time(connection, 100)
        run_signs.give_up_silent(connection, SITE, silence_s=1)
        pass_time(connection, 20)
        run_signs.give_up_silent(connection, SITE, silence_s=1)
        (sign,) = run_signs.of_site(connection, "hills")
        assert sign.given_up_at is None
