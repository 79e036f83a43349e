"""The connection to the ledger: transactions as a whole, dead connections replaced, no leaks."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert, text
from sqlalchemy.exc import IntegrityError

from content_pipeline.ledger.database import (
    CONNECTIONS,
    Ledger,
    create_ledger_engine,
)
from content_pipeline.ledger.schema import sites
from content_pipeline_tests.ledger.wanting import leased, rows_where, wanted
from content_pipeline_tests.operations.small_site import rows_of

PID = text("SELECT pg_backend_pid()")
COMMITS = text("SELECT current_setting('synchronous_commit')")


@pytest.fixture
def own(ledger_url: str) -> Iterator[Ledger]:
    """A ledger with connections that no other test uses."""
    ledger = Ledger(create_ledger_engine(ledger_url))
    yield ledger
    ledger.dispose()


def add_site(ledger: Ledger, name: str, *, then_fail: bool = False) -> None:
    with ledger.begin() as connection:
        connection.execute(
            insert(sites).values(site=name, title="a secret title", base_url="b", owner="o")
        )
        if then_fail:
            raise ZeroDivisionError


def test_a_transaction_is_kept_as_a_whole_or_not_at_all(ledger: Ledger, site_name: str) -> None:
    with pytest.raises(ZeroDivisionError):
        add_site(ledger, site_name, then_fail=True)
    assert rows_where(ledger, sites, site=site_name) == []
    add_site(ledger, site_name)
    assert len(rows_where(ledger, sites, site=site_name)) == 1


def test_an_error_of_the_database_does_not_quote_what_was_written(
    ledger: Ledger, site_name: str
) -> None:
    add_site(ledger, site_name)
    with pytest.raises(IntegrityError) as refused:
        add_site(ledger, site_name)
    assert "sites_pkey" in str(refused.value)
    assert "a secret title" not in str(refused.value)


def test_a_connection_that_died_while_idle_is_replaced(own: Ledger, ledger: Ledger) -> None:
    with own.begin() as connection:
        first = connection.execute(PID).scalar_one()
    with ledger.begin() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": first})
    with own.begin() as connection:
        assert connection.execute(PID).scalar_one() != first


def test_a_busy_connection_is_used_again(own: Ledger) -> None:
    pids = set()
    for _ in range(5):
        with own.begin() as connection:
            pids.add(connection.execute(PID).scalar_one())
    assert len(pids) == 1


def test_no_more_connections_are_made_than_are_kept(own: Ledger) -> None:
    def ask(_: int) -> int:
        with own.begin() as connection:
            return int(connection.execute(PID).scalar_one())

    with ThreadPoolExecutor(4 * CONNECTIONS) as pool:
        assert len(set(pool.map(ask, range(20 * CONNECTIONS)))) <= CONNECTIONS


def test_a_single_statement_is_kept_and_what_follows_is_a_transaction_again(
    own: Ledger, site_name: str
) -> None:
    with own.single() as connection:
        pid = connection.execute(PID).scalar_one()
        connection.execute(insert(sites).values(site=site_name, title="t", base_url="b", owner="o"))
        connection.rollback()
    assert len(rows_where(own, sites, site=site_name)) == 1
    with pytest.raises(ZeroDivisionError):
        add_site(own, f"{site_name}_b", then_fail=True)
    assert rows_where(own, sites, site=f"{site_name}_b") == []
    with own.begin() as connection:
        assert connection.execute(PID).scalar_one() == pid, "it was the same connection"


@pytest.mark.parametrize(("repeatable", "commits"), [(False, "on"), (True, "off")])
def test_only_work_that_may_be_repeated_does_not_wait_for_the_disk(
    repeatable: bool, commits: str, ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    _, lease = leased(ledger, site_name)
    with ledger.fenced(lease, repeatable=repeatable) as connection:
        assert connection.execute(COMMITS).scalar_one() == commits
    with ledger.begin() as connection:  # the same connection, perhaps: it holds for one only
        assert connection.execute(COMMITS).scalar_one() == "on"
