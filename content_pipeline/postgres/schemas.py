"""Making the schemas ``dagster`` and ``content_pipeline``, without any right to make databases.

Not here: the tables in them (the ledger's migrations, and Dagster itself).
"""

from sqlalchemy import Connection, NullPool, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.schema import CreateSchema

from content_pipeline.core.errors import ConfigurationError, DatabaseUnavailable

SCHEMAS = ("dagster", "content_pipeline")

_INSUFFICIENT_PRIVILEGE = "42501"

_LOOK = text("SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = :name")


def ensure_schema(url: str, name: str) -> None:
    """Create schema ``name`` in the database of ``url`` unless it exists.

    Safe for several processes at once. Raises ConfigurationError, with the statement for the
    database's administrator, when the role may not create the schema or tables in it, and
    DatabaseUnavailable when the database cannot be reached.
    """
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            if not _usable(connection, name):
                _create(connection, name)
    except OperationalError as error:
        reason = str(error.orig).strip().splitlines()[0]
        shown = make_url(url).set(query={}).render_as_string(hide_password=True)
        raise DatabaseUnavailable(
            f"Cannot reach the database {shown}: {reason}. Check that it is up and that host, "
            "port, user and password are right."
        ) from None
    finally:
        engine.dispose()


def _usable(connection: Connection, name: str) -> bool:
    # Looked up first: CREATE SCHEMA IF NOT EXISTS asks for the right before it looks.
    may_create_tables = connection.scalar(_LOOK, {"name": name})
    if may_create_tables is False:
        raise _no_right(connection, name, "GRANT ALL ON SCHEMA {schema} TO {role}")
    return may_create_tables is not None


def _create(connection: Connection, name: str) -> None:
    try:
        connection.execute(CreateSchema(name))
    except (ProgrammingError, IntegrityError) as error:
        if _sqlstate(error) == _INSUFFICIENT_PRIVILEGE:
            statement = "CREATE SCHEMA {schema} AUTHORIZATION {role}"
            raise _no_right(connection, name, statement) from None
        # Else another process made it meanwhile: PostgreSQL then reports a duplicate schema or,
        # when both were at it at the same moment, a duplicate key of its catalogue.
        if not _usable(connection, name):
            raise


def _sqlstate(error: DBAPIError) -> str | None:
    for attribute in ("sqlstate", "pgcode"):  # psycopg 3, psycopg2
        if state := getattr(error.orig, attribute, None):
            return str(state)
    return None


def _no_right(connection: Connection, name: str, statement: str) -> ConfigurationError:
    quote = connection.dialect.identifier_preparer.quote
    role = connection.scalar(text("SELECT current_user"))
    asked = statement.format(schema=quote(name), role=quote(str(role)))
    return ConfigurationError(
        f"The role {role} may not create what the project needs in schema {name}. Ask the "
        f"administrator of the database to execute: {asked};"
    )
