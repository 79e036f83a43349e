"""Recognising the server's process, and what it wrote about itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.address import ServerAddress
from content_pipeline.postgres.postmaster import (
    PidFile,
    end_orphans,
    is_postmaster,
    read_pid_file,
    socket_was_deleted,
)
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.postgres.store import Store

ADDRESS = ServerAddress(socket_dir=Path("/tmp/here"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, None),
        ("", None),
        ("\n", None),
        ("text\n", None),
        ("42\n", PidFile(pid=42, address=None, ready=False)),
        ("42\n/data\n1\n5432\n", PidFile(pid=42, address=None, ready=False)),
        ("42\n/data\n1\n5432\n\n", PidFile(pid=42, address=None, ready=False)),
        ("42\n/data\n1\n5432\n/tmp/here\n", PidFile(pid=42, address=ADDRESS, ready=False)),
        (
            "42\n/data\n1\n5432\n/tmp/here\n\n 1 2\nstarting\n",
            PidFile(pid=42, address=ADDRESS, ready=False),
        ),
        (
            "42\n/data\n1\n5432\n/tmp/here\n\n 1 2\nready   \n",
            PidFile(pid=42, address=ADDRESS, ready=True),
        ),
        (
            "42\n/data\n1\n5432\n/tmp/here\n\n 1 2\nstopping\n",
            PidFile(pid=42, address=ADDRESS, ready=False),
        ),
    ],
)
def test_a_pid_file_is_read_as_far_as_it_was_written(
    tmp_path: Path, content: str | None, expected: PidFile | None
) -> None:
    if content is not None:
        (tmp_path / "postmaster.pid").write_text(content)

    assert read_pid_file(tmp_path) == expected


def test_only_the_server_on_this_very_folder_is_recognised(
    shared: EmbeddedServer, place: Path
) -> None:
    shared.ensure_running()
    status = shared.status()
    assert status.pid is not None

    assert is_postmaster(status.pid, status.data_dir)
    assert not is_postmaster(status.pid, place)
    assert not is_postmaster(os.getpid(), status.data_dir)
    assert not is_postmaster(2**22 + 1, status.data_dir)  # above the highest pid there can be


def test_a_shell_that_stands_in_the_data_folder_is_neither_the_server_nor_its_orphan(
    shared: EmbeddedServer, place: Path
) -> None:
    data = place / "data"
    data.mkdir()
    (data / "postmaster.pid").write_text("4194305\n")
    bystander = subprocess.Popen(["sleep", "60"], cwd=data)

    end_orphans(Store(home=place, outside_project=False))

    assert not is_postmaster(bystander.pid, data)
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_running_server_has_no_orphans_to_end(shared: EmbeddedServer) -> None:
    address = shared.ensure_running()
    status = shared.status()

    end_orphans(Store(home=status.data_dir.parent, outside_project=False))

    assert shared.ensure_running() == address
    assert shared.status().pid == status.pid


def test_a_socket_is_deleted_when_the_server_itself_does_not_see_it(
    shared: EmbeddedServer, linux_only: None
) -> None:
    address = shared.ensure_running()
    pid = shared.status().pid
    assert pid is not None

    assert not socket_was_deleted(pid, address)
    assert socket_was_deleted(pid, ServerAddress(socket_dir=address.socket_dir / "missing"))


def test_a_folder_locked_from_elsewhere_is_not_started_a_second_time(
    shared: EmbeddedServer,
) -> None:
    """As when a container that shares the folder, and no process table with us, runs it."""
    shared.ensure_running()
    shared.stop()
    lock = shared.status().data_dir / "content_pipeline.lock"
    script = "import fcntl, sys, time; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX)"
    holder = subprocess.Popen(
        [sys.executable, "-c", f"{script}; print('held', flush=True); time.sleep(60)", str(lock)],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    impatient = EmbeddedServer(shared.data_home, start_deadline_s=0.2)

    with pytest.raises(DatabaseUnavailable, match="another container or machine"):
        impatient.ensure_running()
    assert shared.status().state == "not answering"
    assert holder.poll() is None
    holder.stdout.close()
    holder.kill()
    holder.wait()
