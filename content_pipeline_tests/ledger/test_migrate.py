"""The migrations make exactly the tables of ``ledger.schema``, and can be taken back."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, select, text

from content_pipeline.core.states import MOVES
from content_pipeline.ledger import migrate
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import SCHEMA, allowed_moves, metadata
from content_pipeline_tests.ledger.conftest import MakeDatabase

pytestmark = pytest.mark.oldest

CATALOGUE = {
    "columns": """
        SELECT table_name, column_name, ordinal_position, data_type, is_nullable, column_default,
               numeric_precision, numeric_scale
        FROM information_schema.columns
        WHERE table_schema = 'content_pipeline' AND table_name <> 'alembic_version'""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'content_pipeline'::regnamespace AND contype <> 't'
          AND conrelid::regclass::text <> 'content_pipeline.alembic_version'""",
    "indexes": """
        SELECT indexname, indexdef FROM pg_indexes
        WHERE schemaname = 'content_pipeline' AND tablename <> 'alembic_version'""",
    "sequences": """
        SELECT sequencename, data_type::text, start_value, increment_by FROM pg_sequences
        WHERE schemaname = 'content_pipeline'""",
    "comments": """
        SELECT relname, obj_description(oid, 'pg_class') FROM pg_class
        WHERE relnamespace = 'content_pipeline'::regnamespace AND relkind = 'r'
          AND relname <> 'alembic_version'""",
}
"""What PostgreSQL itself says of a schema, CHECKs and partial indexes included."""

TRIGGERS = "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal"


def migrated(engine: Engine, revision: str = "head") -> None:
    with engine.begin() as connection:
        migrate.run_migrations(connection, revision)


def taken_back(engine: Engine, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


def described(engine: Engine, what: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return sorted(map(tuple, connection.execute(text(CATALOGUE[what]))), key=repr)


def differences(connection: Connection) -> list[Any]:
    context = MigrationContext.configure(
        connection,
        opts={
            "target_metadata": metadata,
            "include_schemas": True,
            "version_table_schema": SCHEMA,
            "include_name": lambda name, kind, _: kind != "schema" or name == SCHEMA,
            "compare_type": True,
        },
    )
    return list(compare_metadata(context, metadata))


# Older versions say so of every computed column before they compare it, equal or not.
@pytest.mark.filterwarnings("ignore:Computed default on topics.slot cannot be modified")
def test_alembic_sees_no_difference_between_migrations_and_schema(
    make_database: MakeDatabase,
) -> None:
    engine = make_database()
    migrated(engine)
    with engine.connect() as connection:
        assert differences(connection) == []
        connection.execute(text("ALTER TABLE content_pipeline.leases ALTER worker DROP NOT NULL"))
        connection.execute(text("DROP INDEX content_pipeline.spend_site_day_idx"))
        assert len(differences(connection)) == 2  # so an empty answer means something


@pytest.mark.parametrize("what", CATALOGUE)
def test_postgresql_describes_both_alike(what: str, make_database: MakeDatabase) -> None:
    by_migrations, by_schema = make_database(), make_database()
    migrated(by_migrations)
    metadata.create_all(by_schema)
    assert described(by_migrations, what)
    assert described(by_migrations, what) == described(by_schema, what)


def test_the_database_allows_exactly_the_moves_of_the_core(ledger: Ledger) -> None:
    with ledger.begin() as connection:
        rows = connection.execute(select(allowed_moves)).all()
    assert {(row.from_state, row.to_state): row.why for row in rows} == MOVES


def test_head_names_the_newest_migration() -> None:
    scripts = ScriptDirectory(str(Path(migrate.__file__).parent / "migrations"))
    assert scripts.get_heads() == [migrate.HEAD]


def test_every_migration_can_be_taken_back_and_applied_again(make_database: MakeDatabase) -> None:
    engine = make_database()
    migrated(engine)
    before = {what: described(engine, what) for what in CATALOGUE}
    with engine.connect() as connection:
        guards = connection.execute(text(TRIGGERS)).scalar_one()
    taken_back(engine, "0001")
    with engine.connect() as connection:
        assert connection.execute(text(TRIGGERS)).scalar_one() == 0
        assert connection.execute(select(allowed_moves)).all() == []
    taken_back(engine, "base")
    assert inspect(engine).get_table_names(schema=SCHEMA) == ["alembic_version"]
    assert described(engine, "sequences") == []
    migrated(engine)
    assert {what: described(engine, what) for what in CATALOGUE} == before
    with engine.connect() as connection:
        assert connection.execute(text(TRIGGERS)).scalar_one() == guards > 0


def test_many_processes_may_bring_it_up_to_date_at_once(make_database: MakeDatabase) -> None:
    engine = make_database()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: migrate.upgrade(engine), range(6)))
    with engine.connect() as connection:
        assert connection.execute(
            text("SELECT version_num FROM content_pipeline.alembic_version")
        ).scalars().all() == [migrate.HEAD]


def test_a_half_applied_migration_leaves_nothing_behind(make_database: MakeDatabase) -> None:
    engine = make_database()
    with engine.begin() as connection:
        migrate.run_migrations(connection)
        assert "page_jobs" in inspect(connection).get_table_names(schema=SCHEMA)
        connection.rollback()
    assert inspect(engine).get_table_names(schema=SCHEMA) == []
    migrate.upgrade(engine)
    assert "page_jobs" in inspect(engine).get_table_names(schema=SCHEMA)


def test_an_up_to_date_ledger_is_left_alone(make_database: MakeDatabase) -> None:
    engine = make_database()
    migrate.upgrade(engine)
    with engine.connect() as connection:
        before = connection.execute(text("SELECT max(xmin::text::bigint) FROM pg_class")).scalar()
    migrate.upgrade(engine)
    with engine.connect() as connection:
        after = connection.execute(text("SELECT max(xmin::text::bigint) FROM pg_class")).scalar()
    assert after == before
