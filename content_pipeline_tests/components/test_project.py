"""Which project a process of Dagster works for."""

from pathlib import Path

import pytest

from content_pipeline.components.project import DAGSTER_HOME, this_project
from content_pipeline.config import HOME_VARIABLE, INSTANCE_FILE
from content_pipeline.core.errors import ConfigurationError


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    monkeypatch.delenv(DAGSTER_HOME, raising=False)


def _project(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / INSTANCE_FILE).touch()
    return folder


def test_it_is_the_one_whose_file_made_the_instance_wherever_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, other = _project(tmp_path / "ours"), _project(tmp_path / "other")
    monkeypatch.setenv(DAGSTER_HOME, str(ours))
    monkeypatch.chdir(other)
    assert this_project().root == ours


def test_without_an_instance_folder_it_is_found_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = _project(tmp_path / "ours")
    (ours / "below").mkdir()
    monkeypatch.chdir(ours / "below")
    assert this_project().root == ours


@pytest.mark.parametrize("home", ["", "elsewhere"])
def test_an_instance_folder_without_the_file_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    ours = _project(tmp_path / "ours")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv(DAGSTER_HOME, str(tmp_path / home) if home else "")
    monkeypatch.chdir(ours)
    assert this_project().root == ours


def test_the_projects_own_variable_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, home = _project(tmp_path / "ours"), _project(tmp_path / "home")
    monkeypatch.setenv(HOME_VARIABLE, str(ours))
    monkeypatch.setenv(DAGSTER_HOME, str(home))
    assert this_project().root == ours


def test_no_project_anywhere_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="no project here"):
        this_project()
