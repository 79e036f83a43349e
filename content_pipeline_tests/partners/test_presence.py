"""A missing partner is a skip with a reason on a laptop, and a failure where it is required."""

import shutil
import stat
from pathlib import Path

import pytest

from content_pipeline_tests.partners.presence import (
    FOLDER,
    PINS,
    PROGRAMS,
    SCRIPT,
    Partner,
    program_of,
    services_are_required,
)

EVERY = pytest.mark.parametrize("partner", list(Partner))
MISSING = (pytest.skip.Exception, pytest.fail.Exception)


@EVERY
def test_without_a_partner_a_test_is_skipped_and_names_the_script(
    partner: Partner, tmp_path: Path
) -> None:
    with pytest.raises(pytest.skip.Exception, match=SCRIPT):
        program_of(partner, folder=tmp_path, required=False)


@EVERY
def test_where_partners_are_required_a_missing_one_fails_the_test(
    partner: Partner, tmp_path: Path
) -> None:
    with pytest.raises(pytest.fail.Exception, match=SCRIPT):
        program_of(partner, folder=tmp_path, required=True)


@EVERY
def test_a_partner_of_other_versions_is_a_missing_one(partner: Partner, tmp_path: Path) -> None:
    (tmp_path / partner).mkdir()
    (tmp_path / partner / "pins.txt").write_text("something==0.0.1\n")
    with pytest.raises(pytest.skip.Exception, match="pinned"):
        program_of(partner, folder=tmp_path, required=False)


@EVERY
def test_a_partner_as_pinned_is_taken_without_being_run(partner: Partner, tmp_path: Path) -> None:
    (tmp_path / partner).mkdir()
    shutil.copy(PINS / f"{partner}.txt", tmp_path / partner / "pins.txt")
    assert program_of(partner, folder=tmp_path).parent == tmp_path / partner / "bin"


@pytest.mark.parametrize(("value", "required"), [("1", True), ("0", False), ("", False)])
def test_only_the_environment_decides_what_is_required(
    monkeypatch: pytest.MonkeyPatch, value: str, required: bool, tmp_path: Path
) -> None:
    monkeypatch.setenv("REQUIRE_SERVICES", value)
    assert services_are_required() is required
    with pytest.raises(MISSING) as caught:
        program_of(Partner.LLMOCK, folder=tmp_path)
    assert isinstance(caught.value, pytest.fail.Exception) is required


def test_without_the_variable_nothing_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REQUIRE_SERVICES", raising=False)
    assert not services_are_required()


def test_the_script_sets_up_every_partner_from_its_pins() -> None:
    script = FOLDER.parent.parent / SCRIPT
    assert script.stat().st_mode & stat.S_IXUSR
    text = script.read_text()
    for partner in Partner:
        assert f"_partner {partner}" in text
    assert str(FOLDER.relative_to(FOLDER.parent.parent)) in text
    assert str(PINS.relative_to(FOLDER.parent.parent)) in text


@EVERY
def test_every_package_is_pinned_to_one_version(partner: Partner) -> None:
    lines = (PINS / f"{partner}.txt").read_text().splitlines()
    sign = "@" if partner is Partner.AIMOCK else "=="
    assert lines
    assert all(line.rpartition(sign)[0] for line in lines)
    assert PROGRAMS[partner]
