"""The life of one embedded server as its users see it."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.address import DATABASE, ROLE, ServerAddress, answers
from content_pipeline.postgres.server import EmbeddedServer, ServerState

REPOSITORY = Path(__file__).parents[2]

ENSURE = """
import sys
from pathlib import Path
from content_pipeline.postgres.server import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]), system_home=Path(sys.argv[2]))
server.ensure_running()
print(server.status().pid)
"""

MakeServer = Callable[..., EmbeddedServer]


def ask(address: ServerAddress, statement: str, user: str = ROLE) -> object:
    with psycopg.connect(
        host=str(address.socket_dir), port=address.port, user=user, dbname=DATABASE, autocommit=True
    ) as connection:
        cursor = connection.execute(statement)
        row = cursor.fetchone() if cursor.description else None
    return row and row[0]


def ensure_in_another_process(server: EmbeddedServer) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ENSURE, str(server.data_home), str(server.system_home)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_there_is_a_database_of_a_role_that_is_no_superuser(
    shared: EmbeddedServer, address: ServerAddress
) -> None:
    assert ask(address, "SELECT current_database()") == DATABASE
    assert (
        ask(address, "SELECT rolsuper OR rolcreatedb FROM pg_roles WHERE rolname = user") is False
    )
    left_over = [path.name for path in shared.status().data_dir.parent.glob("data*")]
    assert left_over == ["data"]


def test_looking_and_stopping_where_nothing_was_started_makes_nothing(
    server: EmbeddedServer,
) -> None:
    status = server.status()

    assert (status.state, status.pid, status.account) == ("absent", None, None)
    assert server.stop() is False
    assert not server.data_home.exists()


def test_status_follows_the_server_through_start_and_stop(shared: EmbeddedServer) -> None:
    server = shared
    address = server.ensure_running()
    running = server.status()
    assert server.stop() is True
    stopped = server.status()

    assert [running.state, stopped.state] == ["running", "stopped"]
    assert (stopped.pid, stopped.socket_dir) == (None, None)
    assert running.pid
    assert running.socket_dir == address.socket_dir
    assert running.data_dir.is_dir()
    assert list(running.log_dir.glob("postgres-*.log"))
    assert running.account == running.data_dir.owner()
    assert not address.socket_dir.exists()
    assert server.stop() is False


def test_what_was_written_is_there_after_a_stop_and_a_start(shared: EmbeddedServer) -> None:
    ask(shared.ensure_running(), "CREATE SCHEMA kept")
    shared.stop()

    assert ask(shared.ensure_running(), "SELECT to_regnamespace('kept') IS NOT NULL") is True


def test_four_processes_at_once_on_a_fresh_folder_get_one_server(server: EmbeddedServer) -> None:
    processes = [ensure_in_another_process(server) for _ in range(4)]
    pids = {process.communicate()[0].strip() for process in processes}

    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert pids == {str(server.status().pid)}


def test_the_server_outlives_the_process_that_started_it_in_a_session_of_its_own(
    shared: EmbeddedServer,
) -> None:
    shared.stop()
    pid = int(ensure_in_another_process(shared).communicate()[0])

    assert shared.status().pid == pid
    assert os.getsid(pid) != os.getsid(0)  # Ctrl-C and a closed terminal do not reach it
    shared.ensure_running()
    assert shared.status().pid == pid


AWKWARD = """it's my "site" 100% of $HOME `id`, ünïcode – 内容 \\ """ + "long " * 25


def test_any_path_works_and_no_parent_changes_its_permissions(
    make_server: MakeServer, place: Path
) -> None:
    parent = place / AWKWARD
    parent.mkdir(mode=0o711)
    above = [parent, *parent.parents]
    before = [(path.stat().st_mode, path.stat().st_uid) for path in above]

    server = make_server(parent / ".content_pipeline")
    address = server.ensure_running()

    assert answers(address)
    assert str(server.status().data_dir).startswith(str(parent))
    assert len(str(address.socket)) < 100
    assert [(path.stat().st_mode, path.stat().st_uid) for path in above] == before
    server.stop()
    assert answers(server.ensure_running())


def test_a_relative_path_and_a_link_lead_to_the_same_server(
    shared: EmbeddedServer, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = shared.ensure_running()
    (place / "link").symlink_to(shared.data_home.parent)
    monkeypatch.chdir(place / "link")

    relative = EmbeddedServer(Path(shared.data_home.name), system_home=place / "system")
    assert relative.ensure_running() == address
    assert not (place / "system").exists()


def test_a_moved_project_keeps_its_database_while_it_runs_and_later(
    shared: EmbeddedServer, place: Path, linux_only: None
) -> None:
    ask(shared.ensure_running(), "CREATE SCHEMA moved_along")
    moved = EmbeddedServer(place / "moved", system_home=place / "system")
    shared.data_home.rename(moved.data_home)
    try:
        for _ in range(2):
            address = moved.ensure_running()
            assert ask(address, "SELECT to_regnamespace('moved_along') IS NOT NULL") is True
            assert moved.stop() is True
    finally:
        moved.data_home.rename(shared.data_home)


def test_two_projects_run_side_by_side_even_when_one_is_a_copy_of_the_other(
    make_server: MakeServer, shared: EmbeddedServer, place: Path
) -> None:
    ask(shared.ensure_running(), "CHECKPOINT", user="postgres")
    subprocess.run(["cp", "-a", shared.data_home, place / "copy"], check=True)
    copy = make_server(place / "copy")
    assert copy.status().state is ServerState.STOPPED

    ask(copy.ensure_running(), "CREATE SCHEMA only_in_the_copy")

    found = ask(shared.ensure_running(), "SELECT to_regnamespace('only_in_the_copy')")
    assert found is None
    copy.stop()
    assert shared.status().state is ServerState.RUNNING


def test_a_project_deleted_under_a_running_server_starts_over_at_once(
    server: EmbeddedServer,
) -> None:
    ask(server.ensure_running(), "CREATE SCHEMA gone")
    old = server.status()
    assert old.pid
    shutil.rmtree(server.data_home)
    try:
        address = server.ensure_running()
        assert ask(address, "SELECT to_regnamespace('gone')") is None
        assert address.socket_dir != old.socket_dir
    finally:
        os.kill(old.pid, 3)  # it would end itself within a minute
        shutil.rmtree(old.socket_dir, ignore_errors=True)  # type: ignore[arg-type]


@contextmanager
def changed(path: Path, text: str) -> Iterator[None]:
    before = path.read_text()
    path.write_text(text)
    yield
    path.write_text(before)


def test_data_of_another_postgresql_version_are_refused_with_the_way_out(
    shared: EmbeddedServer,
) -> None:
    shared.ensure_running()
    shared.stop()

    with (
        changed(shared.status().data_dir / "PG_VERSION", "15\n"),
        pytest.raises(DatabaseUnavailable, match=r"made by PostgreSQL 15.*\n(.*\n)*.*pg_dump"),
    ):
        shared.ensure_running()


def test_a_folder_that_is_no_database_is_refused_and_left_alone(server: EmbeddedServer) -> None:
    data = server.status().data_dir
    data.mkdir(parents=True)
    (data / "notes.txt").write_text("mine")

    with pytest.raises(DatabaseUnavailable, match="no file PG_VERSION"):
        server.ensure_running()
    assert (data / "notes.txt").read_text() == "mine"


def test_a_server_that_cannot_start_is_reported_with_its_own_words(shared: EmbeddedServer) -> None:
    shared.ensure_running()
    shared.stop()
    settings = shared.status().data_dir / "postgresql.auto.conf"

    with (
        changed(settings, "max_connections = many\n"),
        pytest.raises(DatabaseUnavailable) as caught,
    ):
        shared.ensure_running()

    message = str(caught.value)
    assert 'invalid value for parameter "max_connections"' in message
    assert "Correct the setting that ALTER SYSTEM left" in message
    assert str(shared.status().log_dir) in message
    assert answers(shared.ensure_running())


def test_a_place_that_cannot_be_made_is_reported(make_server: MakeServer, place: Path) -> None:
    (place / "file").write_text("not a folder")

    with pytest.raises(DatabaseUnavailable, match="Make the project folder writable"):
        make_server(place / "file" / ".content_pipeline").ensure_running()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("listen_addresses", ""),
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("timezone", "UTC"),
        ("server_encoding", "UTF8"),
        ("max_connections", "200"),
        ("unix_socket_permissions", "0700"),
        ("log_min_error_statement", "panic"),
    ],
)
def test_the_settings_are_in_force(address: ServerAddress, setting: str, value: str) -> None:
    assert ask(address, f"SHOW {setting}") == value


def test_text_is_ordered_by_code_point_on_every_machine(address: ServerAddress) -> None:
    locale = "SELECT datlocale FROM pg_database WHERE datname = current_database()"
    assert ask(address, locale) == "C.UTF-8"
    assert ask(address, "SELECT upper('ä') || ('a' < 'B')") == "Äfalse"


def test_only_the_account_of_the_server_can_pass_to_the_socket(
    shared: EmbeddedServer, address: ServerAddress
) -> None:
    owner = shared.status().data_dir.stat().st_uid
    for folder in (address.socket_dir, address.socket_dir.parent):
        assert folder.stat().st_uid == owner
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_setting_changed_by_alter_system_survives_a_restart(shared: EmbeddedServer) -> None:
    ask(shared.ensure_running(), "ALTER SYSTEM SET work_mem = '9MB'", user="postgres")
    shared.stop()

    assert ask(shared.ensure_running(), "SHOW work_mem") == "9MB"


def test_settings_and_access_rules_that_went_missing_are_written_again(
    shared: EmbeddedServer,
) -> None:
    shared.ensure_running()
    shared.stop()
    (shared.status().data_dir / "postgresql.conf").unlink()
    (shared.status().data_dir / "pg_hba.conf").write_text("host all all 0.0.0.0/0 trust\n")

    rules = ask(shared.ensure_running(), "SELECT count(*) FROM pg_hba_file_rules", user="postgres")
    assert rules == 1


def test_no_row_and_no_statement_gets_into_the_log(
    shared: EmbeddedServer, address: ServerAddress
) -> None:
    ask(address, "CREATE TABLE prompts (prompt text PRIMARY KEY CHECK (length(prompt) < 20))")
    for statement in (
        "INSERT INTO prompts VALUES ('a secret'), ('a secret')",
        "INSERT INTO prompts VALUES ('a secret that is far too long')",
        "SELECT a secret",
        "SELECT 'a secret'::integer",
    ):
        with pytest.raises(psycopg.Error):
            ask(address, statement)

    logged = "".join(file.read_text() for file in shared.status().log_dir.iterdir())
    assert "ready to accept connections" in logged
    assert "secret" not in logged


def test_the_server_knows_nothing_of_the_environment_it_was_started_from(
    shared: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, linux_only: None
) -> None:
    shared.stop()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-the-server")
    monkeypatch.setenv("PGPORT", "6000")
    address = shared.ensure_running()

    environment = Path(f"/proc/{shared.status().pid}/environ").read_bytes()
    assert b"sk-not-for-the-server" not in environment
    assert address.port == 5432
