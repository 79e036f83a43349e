"""Databases of their own for tests of the schema; all others share the ledger."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Engine, NullPool, create_engine, make_url, text
from sqlalchemy.schema import CreateSchema

from content_pipeline.ledger.schema import SCHEMA

MakeDatabase = Callable[[], Engine]


@pytest.fixture(scope="session")
def database_numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def make_database(ledger_url: str, database_numbers: Iterator[int]) -> Iterator[MakeDatabase]:
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
