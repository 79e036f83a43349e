"""Making schemas with whatever rights the role has."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import make_url

from content_pipeline.core.errors import ConfigurationError, DatabaseUnavailable
from content_pipeline.postgres.address import ServerAddress
from content_pipeline.postgres.schemas import SCHEMAS, ensure_schema
from content_pipeline.postgres.urls import DatabaseUrl


def administer(address: ServerAddress, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(
        host=str(address.socket_dir), user="postgres", dbname=address.database, autocommit=True
    ) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def owner_of_schema(address: ServerAddress, name: str) -> list[tuple[object, ...]]:
    return administer(
        address, f"SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = '{name}'"
    )


@pytest.fixture(params=["ledger_url", "dagster_url"])
def weak_url(
    address: ServerAddress, database: DatabaseUrl, request: pytest.FixtureRequest
) -> Iterator[str]:
    """The database for a role without any right in it."""
    administer(address, 'DROP SCHEMA IF EXISTS wanted; CREATE ROLE "weak role" LOGIN')
    url = make_url(getattr(database, request.param)).set(username="weak role")
    yield url.render_as_string(hide_password=False)
    administer(address, 'DROP OWNED BY "weak role"; DROP ROLE "weak role"')


@pytest.mark.parametrize("name", [*SCHEMAS, "Odd name"])
@pytest.mark.parametrize("client", ["ledger_url", "dagster_url"])
def test_a_schema_is_made_once_by_either_client(
    address: ServerAddress, database: DatabaseUrl, name: str, client: str
) -> None:
    administer(address, f'DROP SCHEMA IF EXISTS "{name}"')

    ensure_schema(getattr(database, client), name)
    ensure_schema(getattr(database, client), name)

    assert owner_of_schema(address, name) == [("content_pipeline",)]


def test_processes_that_make_the_same_schema_at_once_all_succeed(
    address: ServerAddress, database: DatabaseUrl
) -> None:
    for name in ("first", "second", "third"):
        with ThreadPoolExecutor(6) as threads:
            made = [threads.submit(ensure_schema, database.ledger_url, name) for _ in range(6)]
        assert [future.result() for future in made] == [None] * 6
        assert owner_of_schema(address, name) == [("content_pipeline",)]


def test_a_schema_that_another_transaction_is_just_making_is_waited_for(
    address: ServerAddress, database: DatabaseUrl
) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with (
        ThreadPoolExecutor(1) as threads,
        psycopg.connect(host=str(address.socket_dir), user=address.user) as other,
    ):
        other.execute("CREATE SCHEMA at_once")
        made = threads.submit(ensure_schema, database.ledger_url, "at_once")
        while administer(address, waiting) == [(0,)]:
            assert not made.done()
        other.commit()

        assert made.result() is None


def test_a_role_that_may_not_make_it_gets_the_statement_for_its_administrator(
    address: ServerAddress, weak_url: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ensure_schema(weak_url, "wanted")

    statement = 'CREATE SCHEMA wanted AUTHORIZATION "weak role";'
    assert statement in str(caught.value)
    administer(address, statement)
    ensure_schema(weak_url, "wanted")


def test_a_schema_the_role_may_not_use_is_reported_with_the_grant(
    address: ServerAddress, weak_url: str
) -> None:
    administer(address, "DROP SCHEMA IF EXISTS theirs; CREATE SCHEMA theirs")

    with pytest.raises(ConfigurationError) as caught:
        ensure_schema(weak_url, "theirs")

    statement = 'GRANT ALL ON SCHEMA theirs TO "weak role";'
    assert statement in str(caught.value)
    administer(address, statement)
    ensure_schema(weak_url, "theirs")


@pytest.mark.parametrize("driver", ["postgresql+psycopg", "postgresql+psycopg2"])
def test_an_unreachable_database_is_named_without_its_password(driver: str) -> None:
    url = f"{driver}://me:hunter2@127.0.0.1:1/site?sslmode=disable"

    with pytest.raises(DatabaseUnavailable, match=r"me:\*\*\*@127\.0\.0\.1:1/site") as caught:
        ensure_schema(url, "dagster")

    assert "refused" in str(caught.value)
    assert "hunter2" not in str(caught.value)
