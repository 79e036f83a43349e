"""Another team's project, which merely depends on this package, from nothing to a page."""

import fnmatch
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import dagster as dg
import pytest
import yaml
from click.testing import CliRunner

from content_pipeline.cli import main
from content_pipeline.components.content_site import ContentSite
from content_pipeline.components.project import DAGSTER_HOME
from content_pipeline.components.site_scaffold import FILES, STARTER, SiteScaffolder, site_name
from content_pipeline.config import HOME_VARIABLE, Project
from content_pipeline.core.states import Stage
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.sandbox.supervisor import stop_provider
from content_pipeline.site_files import COMPONENT_TYPE, load_site
from content_pipeline_tests.components.conftest import REPOSITORY
from content_pipeline_tests.postgres.conftest import fastest_place

pytestmark = [
    # What Dagster's own loader uses while it reads a site's file.
    pytest.mark.filterwarnings("ignore:.*parse_obj_as:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]

PACKAGE = "other_team"

PYPROJECT = f"""\
[project]
name = "other-team"
version = "0.1.0"
dependencies = ["content-pipeline"]

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "{PACKAGE}"
"""

DEFINITIONS = """\
from pathlib import Path

import dagster as dg


@dg.definitions
def defs():
    sites = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    return dg.Definitions.merge(sites, dg.Definitions(executor=dg.in_process_executor))
"""


def empty_project(root: Path) -> Path:
    """What a team has before it knows of this package: a project for ``dg``."""
    defs = root / "src" / PACKAGE / "defs"
    defs.mkdir(parents=True)
    (root / "pyproject.toml").write_text(PYPROJECT)
    for folder in (defs, defs.parent):
        (folder / "__init__.py").touch()
    (defs.parent / "definitions.py").write_text(DEFINITIONS)
    return defs


@pytest.fixture
def other_team(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh project, in a place that the database's account can enter as well."""
    root = Path(tempfile.mkdtemp(prefix="cp-", dir=fastest_place()))
    root.chmod(0o755)
    empty_project(root)
    for name in (HOME_VARIABLE, DAGSTER_HOME):
        monkeypatch.delenv(name)
    monkeypatch.chdir(root)
    monkeypatch.syspath_prepend(root / "src")
    yield root
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    data_home = Project(root=root).data_home
    stop_provider(data_home)
    EmbeddedServer(data_home).stop()
    shutil.rmtree(root)


def dg_says(root: Path, *words: str) -> str:
    """What ``dg`` prints in the project, with nothing set but where the packages lie."""
    found = subprocess.run(
        [str(Path(sys.executable).with_name("dg")), *words],
        cwd=root,
        env={
            "HOME": str(root),
            "COLUMNS": "200",
            "PYTHONPATH": os.pathsep.join([str(root / "src"), str(REPOSITORY)]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "Warning" not in found.stdout + found.stderr
    return found.stdout


def test_one_command_makes_a_site_that_loads_and_publishes_with_nothing_set(
    other_team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = dg_says(other_team, "scaffold", "defs", COMPONENT_TYPE, "my_site")
    assert f"Creating {other_team / 'dagster.yaml'}" in said
    assert "All definitions loaded successfully." in dg_says(other_team, "check", "defs")
    assert "my_site/artifact" in dg_says(other_team, "list", "defs", "--json")

    monkeypatch.setenv(DAGSTER_HOME, str(other_team))
    found = importlib.import_module(f"{PACKAGE}.definitions").defs()
    with dg.DagsterInstance.get() as instance:
        instance.add_dynamic_partitions("my_site_pages", ["mars"])
        made = found.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(["my_site", stage.value]) for stage in Stage],
            partition_key="mars",
        )
    assert made.success
    page = other_team / "public" / "my_site" / "mars" / "index.html"
    assert "Phobos and Deimos" in page.read_text()

    shown = CliRunner().invoke(main, ["show", "mars"])
    assert "published" in shown.output, shown.output


def scaffold(folder: Path, **changes: object) -> Path:
    """Scaffold into ``folder`` as ``dg`` does."""
    folder.mkdir(parents=True)
    request = {
        "type_name": COMPONENT_TYPE,
        "target_path": folder,
        "scaffold_format": "yaml",
        "project_root": None,
        "params": SiteScaffolder.get_scaffold_params()(),
    }
    SiteScaffolder().scaffold(dg.ScaffoldRequest(**request | changes))  # type: ignore[arg-type]
    return folder


def test_a_project_keeps_the_instance_file_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(HOME_VARIABLE)
    monkeypatch.delenv(DAGSTER_HOME)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    scaffold(tmp_path / "defs" / "site", project_root=tmp_path)
    assert (tmp_path / "dagster.yaml").read_text() == "telemetry: {enabled: false}\n"


def test_no_instance_file_is_written_where_the_process_works_for_a_project_elsewhere(
    tmp_path: Path, project: Project
) -> None:
    scaffold(tmp_path / "defs" / "site", project_root=tmp_path)
    assert not (tmp_path / "dagster.yaml").exists()


def test_the_instance_file_says_of_runs_what_the_projects_own_says() -> None:
    starter = yaml.safe_load((STARTER / "dagster.yaml").read_text())
    own = yaml.safe_load((REPOSITORY / "dagster.yaml").read_text())
    assert starter["storage"] == own["storage"]
    assert starter["run_retries"] == own["run_retries"]
    assert starter["run_queue"] == own["run_queue"]
    limits = starter["concurrency"]["runs"]["tag_concurrency_limits"]
    assert limits == own["concurrency"]["runs"]["tag_concurrency_limits"]
    assert starter["run_monitoring"].items() <= own["run_monitoring"].items()


def test_two_scaffolded_sites_share_nothing_but_the_project(tmp_path: Path) -> None:
    sites = [load_site(scaffold(tmp_path / name) / "defs.yaml") for name in ("one", "two")]
    assert [site.settings.site for site in sites] == ["one", "two"]
    folders = {site.settings.cms.folder for site in sites}  # type: ignore[union-attr]
    assert folders == {"public/one", "public/two"}


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("my_site", "my_site"),
        ("My-Site", "my_site"),
        ("2026 planets", "planets"),
        ("日本", "site"),
        ("a" * 60, "a" * 40),
        ("trailing_", "trailing"),
    ],
)
def test_a_site_is_called_as_its_folder_as_far_as_a_site_may_be(folder: str, name: str) -> None:
    assert site_name(Path("defs") / folder) == name


@pytest.mark.parametrize("changes", [{"scaffold_format": "python"}, {"append": True}])
def test_a_site_is_a_folder_with_a_file_of_yaml_and_nothing_else(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    with pytest.raises(click.ClickException, match="leave out --format"):
        scaffold(tmp_path / "site", **changes)
    assert list((tmp_path / "site").iterdir()) == []


def test_everything_that_is_scaffolded_comes_with_the_package() -> None:
    document = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    patterns = document["tool"]["setuptools"]["package-data"]["content_pipeline"]
    files = [path.name for path in STARTER.iterdir() if path.is_file()]
    assert set(FILES) < set(files)
    for name in files:
        assert any(fnmatch.fnmatch(f"x/{name}", pattern) for pattern in patterns), name


def test_dg_asks_this_component_for_its_scaffolder() -> None:
    assert ContentSite.__scaffolder_cls__ is SiteScaffolder  # type: ignore[attr-defined]
