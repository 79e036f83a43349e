"""The locks the kernel drops when their holders are gone."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.locks import is_held, locked, try_lock


def test_looking_at_a_lock_that_nobody_made_makes_nothing(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "lock")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_held_until_its_descriptor_is_closed(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    descriptor = try_lock(lock, None)
    assert descriptor is not None

    assert is_held(lock)
    assert try_lock(lock, None) is None  # also not within one process
    os.close(descriptor)
    assert not is_held(lock)


def test_a_lock_passes_to_a_child_and_ends_with_it_even_when_it_is_killed(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    descriptor = try_lock(lock, None)
    assert descriptor is not None
    child = subprocess.Popen(["sleep", "60"], pass_fds=[descriptor])
    os.close(descriptor)

    assert is_held(lock)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and a zombie
    assert not is_held(lock)
    child.wait()


def test_a_child_that_was_not_given_the_lock_does_not_hold_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with locked(lock, None, wait_s=1):
        child = subprocess.Popen(["sleep", "60"])

    assert not is_held(lock)
    child.kill()
    child.wait()


def test_threads_exclude_each_other(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def enter(number: int) -> None:
        with locked(tmp_path / "lock", None, wait_s=30):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == [1] * 6


def test_waiting_for_a_lock_ends_with_an_error_that_names_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"

    with (
        locked(lock, None, wait_s=1),
        pytest.raises(DatabaseUnavailable, match=str(lock)),
        locked(lock, None, wait_s=0.05),
    ):
        pytest.fail("two were inside")

    assert not is_held(lock)


def test_a_lock_is_released_when_the_work_under_it_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock", None, wait_s=1):
        raise ZeroDivisionError

    assert not is_held(tmp_path / "lock")


@pytest.mark.parametrize("look", [is_held, lambda path: try_lock(path, None)])
def test_a_link_is_not_followed_to_somebody_elses_file(tmp_path: Path, look: object) -> None:
    (tmp_path / "target").touch()
    (tmp_path / "lock").symlink_to(tmp_path / "target")

    with pytest.raises(OSError, match="symbolic link"):
        look(tmp_path / "lock")  # type: ignore[operator]
