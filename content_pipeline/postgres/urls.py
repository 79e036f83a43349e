"""Which database the project uses, as the two URLs its two clients need.

CONTENT_PIPELINE_DATABASE_URL names the team's own PostgreSQL; without it the embedded server is
used. The ledger speaks psycopg 3 and dagster-postgres needs psycopg2, while SQLAlchemy 2.1 takes a
bare ``postgresql://`` for psycopg 3: so every URL that leaves this module names its driver. Not
here: engines, and reading the environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.postgres.address import ServerAddress
from content_pipeline.postgres.server import EmbeddedServer

VARIABLE = "CONTENT_PIPELINE_DATABASE_URL"

_LEDGER_DRIVER = "postgresql+psycopg"
_DAGSTER_DRIVER = "postgresql+psycopg2"
_ACCEPTED = ("postgresql", "postgres", _LEDGER_DRIVER, _DAGSTER_DRIVER)

# A power cut may lose the last 0.6 s of Dagster's events, which the ledger can rebuild; the ledger
# itself always waits for the disk. Once pooled, Dagster's bookkeeping is 30 % faster for it.
_DAGSTER_OPTIONS = "-csearch_path=dagster -csynchronous_commit=off"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseUrl:
    """The database, as SQLAlchemy URLs with the password in clear: never log them.

    ``shown`` is the one to show (psql takes it). ``server`` is None when the database is the
    team's own.
    """

    ledger_url: str = field(repr=False)
    dagster_url: str = field(repr=False)
    shown: str
    server: EmbeddedServer | None


def database_url(environ: Mapping[str, str], data_home: Path) -> DatabaseUrl:
    """Return the database to use; starts the embedded server when that is the one.

    Raises ConfigurationError for a URL that cannot be used, DatabaseUnavailable when the embedded
    server does not start. Whether the team's own server answers is not looked at.
    """
    external = external_database_url(environ)
    if external is not None:
        return external
    return embedded_database_url(EmbeddedServer(data_home))


def external_database_url(environ: Mapping[str, str]) -> DatabaseUrl | None:
    """Return the database of CONTENT_PIPELINE_DATABASE_URL, None when it is unset or blank.

    Raises ConfigurationError, which never repeats the URL's password, when it cannot be used.
    """
    text = environ.get(VARIABLE, "").strip()
    return _both(_parsed(text), server=None) if text else None


def embedded_database_url(server: EmbeddedServer) -> DatabaseUrl:
    """Start ``server`` if need be and return its database."""
    return _both(_url_of(server.ensure_running()), server=server)


def _url_of(address: ServerAddress) -> URL:
    return URL.create(
        _LEDGER_DRIVER,
        username=address.user,
        database=address.database,
        query={"host": str(address.socket_dir), "port": str(address.port)},
    )


def _parsed(text: str) -> URL:
    # What follows "://" may hold a password anywhere when it is malformed: it is not repeated.
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in _ACCEPTED:
        plain = separator and scheme.replace("+", "").isalnum()
        named = f"it starts with {scheme}://" if plain else "it is no URL"
        raise _unusable(f"{named}, not with one of {', '.join(f'{s}://' for s in _ACCEPTED)}")
    if rest.partition("?")[0].count("@") > 1:
        raise _unusable('user or password hold an "@": write %40 for it, %2F for "/", %3A for ":"')
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # from None: the cause would quote parts of the URL
        raise _unusable(
            "it cannot be parsed; its form is postgresql://user:password@host:5432/db"
        ) from None
    if not url.database:
        raise _unusable("it names no database; its form is postgresql://user:password@host:5432/db")
    return url


def _both(url: URL, server: EmbeddedServer | None) -> DatabaseUrl:
    place = {name: value for name, value in url.query.items() if name in ("host", "port")}
    dagster = url.set(drivername=_DAGSTER_DRIVER).update_query_dict(
        {"options": _merged_options(url)}
    )
    return DatabaseUrl(
        ledger_url=_rendered(url.set(drivername=_LEDGER_DRIVER)),
        dagster_url=_rendered(dagster),
        shown=url.set(drivername="postgresql", query=place).render_as_string(hide_password=True),
        server=server,
    )


def _merged_options(url: URL) -> str:
    given = url.query.get("options", ())
    parts = (given,) if isinstance(given, str) else given
    return " ".join((*parts, _DAGSTER_OPTIONS))  # the last -c of a setting wins


def _rendered(url: URL) -> str:
    """Render with the password, and with %20 for a space: libpq does not read "+" as one."""
    head, mark, query = url.render_as_string(hide_password=False).partition("?")
    return head + mark + query.replace("+", "%20")


def _unusable(why: str) -> ConfigurationError:
    return ConfigurationError(f"{VARIABLE} cannot be used: {why}.")
