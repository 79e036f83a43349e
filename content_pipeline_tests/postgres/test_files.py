"""Files and folders that are made whole, and never through somebody's link."""

import os
import stat
from pathlib import Path

import pytest

from content_pipeline.postgres.files import Owner, make_folder, owner_of, write_file


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_modes_are_exact_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_folder(tmp_path / "folder", mode=0o711, owner=None)
        write_file(tmp_path / "file", b"x", mode=0o644, owner=None)
    finally:
        os.umask(before)

    assert (mode_of(tmp_path / "folder"), mode_of(tmp_path / "file")) == (0o711, 0o644)


def test_a_folder_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o750)

    make_folder(tmp_path / "folder", mode=0o700, owner=None)

    assert mode_of(tmp_path / "folder") == 0o750


def test_a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"a long content", b"short"):
        write_file(path, content, mode=0o600, owner=None)
        assert path.read_bytes() == content

    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_place_of_the_file_is_replaced_and_its_target_untouched(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"precious")
    (tmp_path / "file").symlink_to(target)

    write_file(tmp_path / "file", b"new", mode=0o600, owner=None)

    assert target.read_bytes() == b"precious"
    assert not (tmp_path / "file").is_symlink()


def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_file(path, b"old", mode=0o600, owner=None)

    with pytest.raises(TypeError):
        write_file(path, "text", mode=0o600, owner=None)  # type: ignore[arg-type]

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_root_gives_what_he_makes_to_the_owner(root_only: None, tmp_path: Path) -> None:
    owner = Owner(uid=65534, gid=65534)

    make_folder(tmp_path / "folder", mode=0o700, owner=owner)
    write_file(tmp_path / "folder" / "file", b"x", mode=0o600, owner=owner)

    assert owner_of(tmp_path / "folder") == owner
    assert (tmp_path / "folder" / "file").stat().st_uid == 65534


def test_nothing_is_given_away_in_our_own_folder(tmp_path: Path) -> None:
    assert owner_of(tmp_path) is None
