"""Bringing the ledger's schema up to date.

What belongs here: running the migrations, once at a time over all processes, and the quick check
that spares every start the import of alembic.
"""

from pathlib import Path

from sqlalchemy import Connection, Engine, func, inspect, select, text

from content_pipeline.ledger.schema import SCHEMA

HEAD = "0020"
"""The newest migration, compared with the database at every start."""

_SCRIPTS = Path(__file__).parent / "migrations"


def upgrade(engine: Engine) -> None:
    """Bring the tables up to date in the schema, which must exist. Safe for many processes."""
    with engine.connect() as connection:
        if _version(connection) == HEAD:
            return
    with engine.begin() as connection:
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(SCHEMA, 0))))
        if _version(connection) != HEAD:
            run_migrations(connection)


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version", schema=SCHEMA):
        return None
    version: str | None = connection.execute(
        text(f"SELECT version_num FROM {SCHEMA}.alembic_version")  # noqa: S608 - a constant
    ).scalar_one_or_none()
    return version


def run_migrations(connection: Connection, revision: str = "head") -> None:
    """Apply all migrations up to ``revision`` in the caller's transaction."""
    from alembic import command  # slow to import, and seldom needed
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
