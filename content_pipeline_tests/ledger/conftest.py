"""Databases of their own for tests of the schema; all others share the ledger."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, NullPool, create_engine, make_url, text
from sqlalchemy.schema import CreateSchema

from content_pipeline.ledger import migrate
from content_pipeline.ledger.database import Ledger, create_ledger_engine
from content_pipeline.ledger.schema import SCHEMA
from content_pipeline_tests.ledger.large_ledger import fill

MakeDatabase = Callable[[], Engine]

LARGE_SITE = "countries"
"""As the example is called, whose site file says what its sensors look for."""

LARGE = 20_000
"""Pages from which the planner decides as for a million: a table of them has 1,000 blocks."""


@pytest.fixture(scope="session")
def database_numbers() -> Iterator[int]:
    return itertools.count(1)


@contextmanager
def _databases(ledger_url: str, database_numbers: Iterator[int]) -> Iterator[MakeDatabase]:
    """Empty databases with an empty schema in them, on the server that all tests share.

    The embedded role bears the schema's name, and PostgreSQL's search path begins with the schema
    called like the role. Alembic calls the first schema of the path None, finds no table of
    ``content_pipeline`` in it and reports every one as missing: hence the explicit search path.
    """
    server = create_engine(
        make_url(ledger_url).set(username="postgres", database="postgres"),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
    )
    made: list[tuple[str, Engine]] = []

    def make() -> Engine:
        name = f"fresh_{next(database_numbers)}"
        with server.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name} OWNER content_pipeline"))
        engine = create_engine(
            make_url(ledger_url).set(database=name),
            poolclass=NullPool,
            connect_args={"options": "-csearch_path=public"},
        )
        made.append((name, engine))
        with engine.begin() as connection:
            connection.execute(CreateSchema(SCHEMA))
        return engine

    yield make
    for name, engine in made:
        engine.dispose()
        with server.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


@pytest.fixture
def make_database(ledger_url: str, database_numbers: Iterator[int]) -> Iterator[MakeDatabase]:
    """Builds empty databases for one test."""
    with _databases(ledger_url, database_numbers) as make:
        yield make


@pytest.fixture(scope="module")
def large_server(ledger_url: str, database_numbers: Iterator[int]) -> Iterator[Engine]:
    """A database of its own with a site called ``LARGE_SITE`` and another; as a superuser.

    The planner has counted it, and decides as on a large ledger whatever other tests leave behind.
    """
    with _databases(ledger_url, database_numbers) as make:
        engine = make()
        migrate.upgrade(engine)
        server = create_engine(engine.url.set(username="postgres"), poolclass=NullPool)
        fill(server, LARGE_SITE, 1, LARGE)
        fill(server, "another", LARGE + 1, 2 * LARGE)
        yield server
        server.dispose()


@pytest.fixture(scope="module")
def large_ledger(large_server: Engine) -> Iterator[Ledger]:
    """The same for the ledger's own account."""
    url = large_server.url.set(username="content_pipeline")
    ledger = Ledger(create_ledger_engine(url.render_as_string(hide_password=False)))
    yield ledger
    ledger.dispose()
