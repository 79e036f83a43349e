"""The report's file: whole or not at all, where people look for it."""

import os
import stat
from pathlib import Path

import pytest

from content_pipeline.config import Project
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.reporting import files


def test_each_site_has_a_file_beside_its_pages(tmp_path: Path) -> None:
    assert files.report_file(Project(root=tmp_path), "towns") == tmp_path / "reports/towns.html"


def test_a_report_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "towns.html"
    files.write(file, b"first, and longer")
    files.write(file, b"second")
    assert file.read_bytes() == b"second"
    assert [path.name for path in file.parent.iterdir()] == ["towns.html"]


def test_it_is_as_readable_as_the_folder_says(tmp_path: Path) -> None:
    file = tmp_path / "towns.html"
    before = os.umask(0o027)
    try:
        files.write(file, b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_reader_keeps_the_whole_old_one_while_it_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "towns.html"
    files.write(file, b"old")
    with file.open("rb") as reader:
        files.write(file, b"new")
        assert reader.read() == b"old"


def test_where_it_cannot_be_written_the_message_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file")
    with pytest.raises(CallFailed, match=r"cannot be written to .*towns\.html") as caught:
        files.write(tmp_path / "reports" / "towns.html", b"x")
    assert caught.value.failure.failure_class is FailureClass.STORAGE
    assert "--out" in str(caught.value)


def test_a_folder_in_its_place_is_left_alone_and_nothing_stays_behind(tmp_path: Path) -> None:
    (tmp_path / "towns.html").mkdir()
    with pytest.raises(CallFailed, match="choose another file"):
        files.write(tmp_path / "towns.html", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["towns.html"]
