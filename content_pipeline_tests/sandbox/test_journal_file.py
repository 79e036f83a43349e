import resource
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.sandbox.journal_file import JournalFile, Place


@pytest.fixture(params=["memory", "folder"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JournalFile]:
    opened = (
        JournalFile.in_memory() if request.param == "memory" else JournalFile.at(tmp_path / "x")
    )
    yield opened
    opened.close()


def loaded(path: Path) -> list[tuple[Mapping[str, Any], Place]]:
    """All that a file opened anew shows."""
    shown: list[tuple[Mapping[str, Any], Place]] = []
    opened = JournalFile.at(path)
    opened.load(lambda line, place: shown.append((line, place)))
    opened.close()
    return shown


def test_a_line_is_read_back_from_its_place(file: JournalFile) -> None:
    lines: list[dict[str, Any]] = [{"n": 1}, {"text": "Ünïcode\u2028\n"}, {"n": 3}]
    places = [file.append(line) for line in lines]
    assert [file.read(place) for place in reversed(places)] == lines[::-1]
    assert list(file.lines()) == lines
    assert file.append({"n": 4})[0] == sum(places[-1]), "reading moves no end"


def test_a_cleared_file_starts_anew(file: JournalFile) -> None:
    file.append({"n": 1})
    file.clear()
    assert list(file.lines()) == []
    assert file.append({"n": 2})[0] == 0


def test_lines_are_there_although_nobody_closed_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    file = JournalFile.at(path)
    places = [file.append({"n": number}) for number in range(3)]
    assert loaded(path) == [({"n": number}, places[number]) for number in range(3)]
    file.close()


@pytest.mark.parametrize("torn", [b"{", b'{"n": 3}', b"\xff"])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'{"n": 1}\n{"n": 2}\n' + torn)
    assert [line for line, _ in loaded(path)] == [{"n": 1}, {"n": 2}]
    assert path.read_bytes() == b'{"n": 1}\n{"n": 2}\n'


@pytest.mark.parametrize(
    ("data", "number"), [(b"nonsense\n", 1), (b'{"n": 1}\n[]\n', 2), (b'{"n": 1}\n{}\n', 2)]
)
def test_a_line_that_says_nothing_is_told_with_its_number(
    tmp_path: Path, data: bytes, number: int
) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    file = JournalFile.at(path)
    with pytest.raises(ConfigurationError, match=f"x, line {number}: .*move the file away"):
        file.load(lambda line, _: line["n"])
    assert path.read_bytes() == data, "what cannot be read is not touched"


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    JournalFile.at(tmp_path / "x").close()
    assert (tmp_path / "x").stat().st_mode & 0o077 == 0


def test_a_line_that_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    file = JournalFile.at(tmp_path / "x")
    file.append({"n": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        with pytest.raises(OSError):
            file.append({"text": "x" * 100})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    file.append({"n": 2})
    assert list(file.lines()) == [{"n": 1}, {"n": 2}]
    file.close()
