"""The private folder of the socket, in a place where anybody can make folders first."""

import os
import stat
from pathlib import Path

import pytest

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.account import Account, server_account
from content_pipeline.postgres.sockets import forget_socket_folder, private_socket_folder


@pytest.fixture
def account(place: Path) -> Account:
    return server_account(place / "none", place)


@pytest.fixture
def data(place: Path) -> Path:
    return make_data(place / "data", number=1)


def make_data(data: Path, number: int) -> Path:
    (data / "global").mkdir(parents=True)
    (data / "global" / "pg_control").write_bytes(number.to_bytes(8, "little") + b"more")
    return data


def is_private(folder: Path, account: Account) -> bool:
    found = folder.lstat()
    mode = stat.S_IMODE(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == account.uid and mode == 0o700


def test_the_folder_is_private_and_the_same_each_time(
    place: Path, data: Path, account: Account
) -> None:
    folder = private_socket_folder(data, account, place)

    assert is_private(folder, account)
    assert is_private(folder.parent, account)
    assert private_socket_folder(data, account, place) == folder


def test_each_project_and_each_cluster_has_its_own(
    place: Path, data: Path, account: Account
) -> None:
    folders = {
        private_socket_folder(data, account, place),
        private_socket_folder(make_data(place / "other", number=1), account, place),
        private_socket_folder(make_data(place / "again" / "data", number=2), account, place),
    }
    (data / "global" / "pg_control").write_bytes(b"made anew, same place")
    folders.add(private_socket_folder(data, account, place))

    assert len(folders) == 4


def open_to_all(path: Path, account: Account) -> None:
    path.mkdir()
    path.chmod(0o755)
    if account.switched:
        os.chown(path, account.uid, account.gid)


def a_link(path: Path, account: Account) -> None:
    (path.parent / "target").mkdir(mode=0o700)
    path.symlink_to(path.parent / "target")


def a_file(path: Path, account: Account) -> None:
    path.touch(mode=0o700)


def somebody_elses(path: Path, account: Account) -> None:
    path.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(path, 1, 1)
    else:
        path.chmod(0o770)


@pytest.mark.parametrize("squat", [open_to_all, a_link, a_file, somebody_elses])
def test_a_folder_somebody_made_first_is_not_used(
    place: Path, data: Path, account: Account, squat: object
) -> None:
    squatted = place / f"content-pipeline-{account.uid}"
    squat(squatted, account)  # type: ignore[operator]
    before = squatted.lstat()

    folder = private_socket_folder(data, account, place)

    assert is_private(folder, account)
    assert is_private(folder.parent, account)
    assert folder.parent != squatted
    after = squatted.lstat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)


def test_a_place_that_cannot_be_written_is_reported(
    data: Path, account: Account, place: Path
) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"Make .*missing writable"):
        private_socket_folder(data, account, place / "missing")


def test_a_place_whose_name_needs_quoting_is_refused(
    data: Path, account: Account, place: Path
) -> None:
    (place / "it's").mkdir()

    with pytest.raises(DatabaseUnavailable, match="need quoting"):
        private_socket_folder(data, account, place / "it's")


def test_only_an_empty_folder_is_forgotten(place: Path) -> None:
    (place / "used").mkdir()
    (place / "used" / "socket").touch()
    (place / "empty").mkdir()

    for name in ("used", "empty", "missing"):
        forget_socket_folder(place / name)

    assert (place / "used" / "socket").exists()
    assert not (place / "empty").exists()
