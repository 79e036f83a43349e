"""A real CMS that takes minutes to set up is skipped until asked for, and then it must be there."""

from pathlib import Path

import pytest

from content_pipeline_tests.real_cms.chosen import ROOT, chosen_folder

NAMES = ("ghost", "directus")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chosen", ["", "wordpress", "ghosts,directusx"])
def test_what_nobody_asked_for_is_skipped(name: str, chosen: str, tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=f"CMS_REAL={name}"):
        chosen_folder(name, build=tmp_path, chosen=chosen)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_asked_for_and_is_missing_fails_and_names_its_script(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(pytest.fail.Exception, match=f"run scripts/{name}.sh"):
        chosen_folder(name, build=tmp_path, chosen="ghost,directus")
    assert (ROOT / "scripts" / f"{name}.sh").stat().st_mode & 0o111


@pytest.mark.parametrize("name", NAMES)
def test_what_was_set_up_is_found(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "ready").touch()
    assert chosen_folder(name, build=tmp_path, chosen=f"x,{name}") == tmp_path / name
