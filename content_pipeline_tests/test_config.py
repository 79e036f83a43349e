from pathlib import Path

import pytest

from content_pipeline.config import (
    HOME_VARIABLE,
    Project,
    environment,
    find_project,
    set_default,
)
from content_pipeline.core.errors import ConfigurationError

SITE = "type: content_pipeline.ContentSite\nattributes: {}\n"


@pytest.fixture(autouse=True)
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOME_VARIABLE, raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty project below a folder that is none."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "dagster.yaml").touch()
    return folder


def declare(root: Path, place: str, text: str = SITE) -> Path:
    file = root / place / "defs.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize("place", [".", "a", "a/b/c"])
def test_a_project_is_found_from_anywhere_within_it(root: Path, place: str) -> None:
    inside = root / place
    inside.mkdir(parents=True, exist_ok=True)
    assert find_project(inside) == Project(root=root)


def test_the_nearest_project_counts(root: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    (inner / "dagster.yaml").touch()
    assert find_project(inner).root == inner


def test_without_a_start_the_working_directory_counts(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert find_project().root == root


def test_no_project_says_where_it_looked_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        find_project(tmp_path)
    message = str(caught.value)
    assert str(tmp_path) in message
    assert "dagster.yaml" in message
    assert HOME_VARIABLE in message


def test_a_folder_called_dagster_yaml_marks_nothing(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").mkdir()
    with pytest.raises(ConfigurationError):
        find_project(tmp_path)


def test_the_variable_wins_over_the_working_directory(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "dagster.yaml").touch()
    monkeypatch.setenv(HOME_VARIABLE, str(other))
    assert find_project(root).root == other
    monkeypatch.setenv(HOME_VARIABLE, "")
    assert find_project(root).root == root


def test_the_variable_may_begin_with_a_tilde(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root.parent))
    monkeypatch.setenv(HOME_VARIABLE, "~/project")
    assert find_project().root == root


def test_a_variable_that_names_no_project_is_not_passed_over(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    with pytest.raises(ConfigurationError, match=f"{HOME_VARIABLE} is {tmp_path}, which holds no"):
        find_project(root)


def test_all_that_runs_keeps_its_files_in_one_folder(root: Path) -> None:
    assert Project(root=root).data_home == root / ".content_pipeline"


def test_a_new_project_has_no_sites(root: Path) -> None:
    assert Project(root=root).site_files() == []


def test_sites_are_found_by_name_however_deep(root: Path) -> None:
    towns = declare(root, "content_pipeline/defs/towns")
    rivers = declare(root, "content_pipeline/defs/geo/rivers")
    declare(root, "content_pipeline/elsewhere")
    assert Project(root=root).site_files() == [rivers, towns]


@pytest.mark.parametrize(
    ("pyproject", "place"),
    [
        ('[tool.dg.project]\nroot_module = "site_pkg"\n', "site_pkg/defs/towns"),
        ('[tool.dg.project]\nroot_module = "acme.sites"\n', "acme/sites/defs/towns"),
        ('[tool.dg]\ndirectory_type = "project"\n', "content_pipeline/defs/towns"),
        ('[project]\nname = "x"\n', "content_pipeline/defs/towns"),
        ("", "content_pipeline/defs/towns"),
    ],
)
def test_the_package_is_the_one_that_dg_uses(root: Path, pyproject: str, place: str) -> None:
    (root / "pyproject.toml").write_text(pyproject)
    site = declare(root, place)
    assert Project(root=root).site_files() == [site]


def test_a_project_with_a_src_folder_keeps_its_package_there(root: Path) -> None:
    (root / "pyproject.toml").write_text('[tool.dg.project]\nroot_module = "site_pkg"\n')
    site = declare(root, "src/site_pkg/defs/towns")
    declare(root, "site_pkg/defs/leftover")
    assert Project(root=root).site_files() == [site]


@pytest.mark.parametrize("content", [b"[tool.dg\n", b"name = '\xff'\n"])
def test_a_broken_pyproject_is_named(root: Path, content: bytes) -> None:
    (root / "pyproject.toml").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"pyproject\.toml cannot be read: "):
        Project(root=root).site_files()


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        (SITE, True),
        ("type:   content_pipeline.ContentSite  # ours\n", True),
        ("type: dagster_dbt.DbtProjectComponent\nattributes: {}\n", False),
        ("attributes: {}\n", True),
        ("", True),
        ("{ broken", True),
    ],
)
def test_only_other_components_are_passed_over(root: Path, text: str, is_ours: bool) -> None:
    site = declare(root, "content_pipeline/defs/towns", text)
    assert Project(root=root).site_files() == ([site] if is_ours else [])


def test_a_site_file_that_cannot_be_read_is_not_passed_over(root: Path) -> None:
    place = root / "content_pipeline" / "defs" / "towns" / "defs.yaml"
    place.mkdir(parents=True)
    assert Project(root=root).site_files() == [place]


def test_the_environment_is_read_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTENT_PIPELINE_PROBE", "1")
    assert environment()["CONTENT_PIPELINE_PROBE"] == "1"


def test_what_somebody_set_for_a_library_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIBRARY_SETTING", "theirs")
    set_default("LIBRARY_SETTING", "ours")
    assert environment()["LIBRARY_SETTING"] == "theirs"
    monkeypatch.delenv("LIBRARY_SETTING")
    set_default("LIBRARY_SETTING", "ours")
    assert environment()["LIBRARY_SETTING"] == "ours"
