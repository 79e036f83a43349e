"""A server that died, or only looks dead, is back after the next ensure_running or connect."""

import ctypes
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.address import ServerAddress, answers
from content_pipeline.postgres.healing import install_heal
from content_pipeline.postgres.locks import is_held
from content_pipeline.postgres.server import EmbeddedServer, ServerState
from content_pipeline.postgres.urls import DatabaseUrl

MakeEngine = Callable[[str], Engine]

PR_SET_CHILD_SUBREAPER = 36


def pid_of(server: EmbeddedServer) -> int:
    pid = server.status().pid
    assert pid is not None
    return pid


def kill(server: EmbeddedServer) -> int:
    pid = pid_of(server)
    os.kill(pid, signal.SIGKILL)
    return pid


def kill_and_wait(server: EmbeddedServer) -> None:
    kill(server)
    lock = server.status().data_dir / "content_pipeline.lock"
    while is_held(lock):
        pass


@pytest.fixture
def sleeper(shared: EmbeddedServer) -> Iterator[int]:
    """A process of the server's account that has nothing to do with any server."""
    shared.ensure_running()  # whichever test of the server comes first
    owner = shared.status().data_dir.stat().st_uid
    user = owner if os.geteuid() == 0 else None
    process = subprocess.Popen(["sleep", "120"], user=user, cwd="/")
    yield process.pid
    process.kill()
    process.wait()


def test_a_killed_server_is_back_with_what_was_committed(shared: EmbeddedServer) -> None:
    address = shared.ensure_running()
    with psycopg.connect(host=str(address.socket_dir), user=address.user) as connection:
        connection.execute("CREATE SCHEMA committed")
    killed = kill(shared)

    address = shared.ensure_running()

    assert pid_of(shared) != killed
    with psycopg.connect(host=str(address.socket_dir), user=address.user) as connection:
        found = connection.execute("SELECT to_regnamespace('committed') IS NOT NULL").fetchone()
    assert found == (True,)


def test_a_pid_that_lives_again_as_somebody_else_is_not_taken_for_the_server(
    shared: EmbeddedServer, sleeper: int
) -> None:
    address = shared.ensure_running()
    data = shared.status().data_dir
    pid_file = (data / "postmaster.pid").read_text()
    socket_lock = Path(f"{address.socket}.lock")
    lock_text = socket_lock.read_text()
    killed = str(pid_of(shared))
    kill_and_wait(shared)
    (data / "postmaster.pid").write_text(pid_file.replace(killed, str(sleeper)))
    socket_lock.write_text(lock_text.replace(killed, str(sleeper)))
    assert shared.status().state is ServerState.STOPPED

    assert answers(shared.ensure_running())

    os.kill(sleeper, 0)  # and it was left alone
    assert pid_of(shared) != sleeper


@pytest.mark.parametrize("content", ["", "\n", "what?\n"])
def test_a_pid_file_without_a_pid_is_survived(shared: EmbeddedServer, content: str) -> None:
    shared.ensure_running()
    kill_and_wait(shared)
    (shared.status().data_dir / "postmaster.pid").write_text(content)

    assert answers(shared.ensure_running())


def test_a_zombie_is_not_taken_for_the_server(shared: EmbeddedServer, linux_only: None) -> None:
    shared.stop()
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become ours, and we do not reap
    try:
        shared.ensure_running()
        killed = kill(shared)

        assert answers(shared.ensure_running())

        state = Path(f"/proc/{killed}/stat").read_text().rpartition(")")[2].split()[0]
        assert state == "Z"
        second = pid_of(shared)
        shared.stop()
        os.waitpid(killed, 0)
        os.waitpid(second, 0)
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def test_a_long_statement_that_outlives_the_killed_server_does_not_delay_the_next(
    shared: EmbeddedServer, linux_only: None
) -> None:
    address = shared.ensure_running()
    ended: list[str] = []

    def compute() -> None:
        with psycopg.connect(host=str(address.socket_dir), user=address.user) as connection:
            running.set()
            try:
                connection.execute("SELECT count(*) FROM generate_series(1, 20000000000)")
            except psycopg.OperationalError:
                ended.append("lost")

    running = threading.Event()
    thread = threading.Thread(target=compute)
    thread.start()
    running.wait()
    with psycopg.connect(host=str(address.socket_dir), user=address.user) as connection:
        active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%20000000000%'"
        while connection.execute(active).fetchone() != (2,):
            connection.rollback()
    kill(shared)

    assert answers(shared.ensure_running())
    thread.join()
    assert ended == ["lost"]


def test_a_deleted_socket_is_made_again(shared: EmbeddedServer) -> None:
    address = shared.ensure_running()
    before = pid_of(shared)
    shutil.rmtree(address.socket_dir)

    assert answers(shared.ensure_running())
    assert pid_of(shared) != before


def test_a_server_that_hangs_is_reported_and_not_started_twice(
    shared: EmbeddedServer,
) -> None:
    shared.ensure_running()
    impatient = EmbeddedServer(shared.data_home, start_deadline_s=0.1)
    pid = pid_of(shared)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(DatabaseUnavailable, match="did not answer within"):
            impatient.ensure_running()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert answers(shared.ensure_running())
    assert pid_of(shared) == pid


@pytest.mark.parametrize("client", ["ledger_url", "dagster_url"])
def test_a_connect_brings_a_killed_server_back(
    shared: EmbeddedServer, database: DatabaseUrl, make_engine: MakeEngine, client: str
) -> None:
    engine = make_engine(getattr(database, client))
    install_heal(engine, database.server)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT 1")) == 1
    kill_and_wait(shared)

    with engine.connect() as connection:  # the pooled connection is dead as well
        assert connection.scalar(text("SELECT 1")) == 1


def test_threads_that_connect_at_once_all_get_the_one_new_server(
    shared: EmbeddedServer, database: DatabaseUrl, make_engine: MakeEngine
) -> None:
    engine = make_engine(database.ledger_url)
    install_heal(engine, database.server)
    kill_and_wait(shared)
    started: set[object] = set()

    def connect() -> None:
        with engine.connect() as connection:
            started.add(connection.scalar(text("SELECT pg_postmaster_start_time()")))

    threads = [threading.Thread(target=connect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(started) == 1


def test_a_connect_finds_a_server_that_listens_elsewhere_now(
    database: DatabaseUrl, make_engine: MakeEngine, address: ServerAddress
) -> None:
    elsewhere = database.ledger_url.replace(address.socket_dir.name, "an-older-place")
    assert elsewhere != database.ledger_url
    engine = make_engine(elsewhere)
    install_heal(engine, database.server)

    with engine.connect() as connection:
        assert connection.scalar(text("SELECT 1")) == 1


def test_an_error_that_a_start_does_not_heal_is_raised(
    database: DatabaseUrl, make_engine: MakeEngine
) -> None:
    engine = make_engine(database.ledger_url.replace("/content_pipeline?", "/no_such_database?"))
    install_heal(engine, database.server)

    with pytest.raises(OperationalError, match="no_such_database"):
        engine.connect()


def test_a_server_that_cannot_be_healed_is_reported_by_the_connect(
    shared: EmbeddedServer, database: DatabaseUrl, make_engine: MakeEngine
) -> None:
    engine = make_engine(database.ledger_url)
    install_heal(engine, database.server)
    kill_and_wait(shared)
    version = shared.status().data_dir / "PG_VERSION"
    version.write_text("9.6\n")
    try:
        with pytest.raises(DatabaseUnavailable, match=r"made by PostgreSQL 9\.6"):
            engine.connect()
    finally:
        version.write_text("18\n")


def test_the_teams_own_database_is_not_healed(
    database: DatabaseUrl, make_engine: MakeEngine, address: ServerAddress
) -> None:
    engine = make_engine(database.ledger_url.replace(address.socket_dir.name, "down"))
    install_heal(engine, None)

    with pytest.raises(OperationalError):
        engine.connect()
