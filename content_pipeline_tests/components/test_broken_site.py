"""A mistake in one site's file stops that site alone, and nobody can overlook it."""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster.components.testing import create_defs_folder_sandbox

from content_pipeline.components.broken_site import BROKEN, VALIDATION_VARIABLE, BrokenSite
from content_pipeline.components.site_attributes import SiteAttributes
from content_pipeline.config import Project, environment
from content_pipeline.core.errors import SiteFileError
from content_pipeline_tests.components.conftest import (
    REPOSITORY,
    rows_of,
    settings_of,
    write_site,
)

pytestmark = [
    pytest.mark.oldest,
    # What Dagster's own loader uses while it reads a site's file.
    pytest.mark.filterwarnings("ignore:.*parse_obj_as:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
]

KEY = "sk-" + "a1B2c3D4e5F6g7H8i9J0"

Mistake = Callable[[Path], None]


def _wrong(**changes: Any) -> Mistake:
    """Other attributes than a site may have."""

    def make(folder: Path) -> None:
        attributes = settings_of("broken") | changes
        document = {"type": "content_pipeline.ContentSite", "attributes": attributes}
        (folder / "defs.yaml").write_text(yaml.safe_dump(document, sort_keys=False))

    return make


def _without_prompt(folder: Path) -> None:
    (folder / "prompt.md").unlink()


def _key_twice(folder: Path) -> None:
    file = folder / "defs.yaml"
    file.write_text(file.read_text() + "  title: Once more\n")


def _no_yaml(folder: Path) -> None:
    (folder / "defs.yaml").write_text("type: content_pipeline.ContentSite\nattributes: {site: [\n")


MISTAKES: list[tuple[Mistake, str]] = [
    (_wrong(colour="red"), "line 34, attributes.colour: unknown key 'colour'"),
    (_wrong(budgets={"page_usd": "much"}), "attributes.budgets.page_usd: "),
    (
        _wrong(budgets={"page_usd": 0.1, "site_day_usd": 0.005}),
        "defs.yaml: budgets.site_day_usd is $0.005, and one call of step 'article'",
    ),
    (_wrong(article={"prompt": "prompt.md"}), "the key 'facts' is missing"),
    (_wrong(cms={"kind": "fodler"}), "attributes.cms: "),
    (_wrong(title=KEY), "attributes.title: this looks like a credential"),
    (_key_twice, "attributes.title: the key is given twice"),
    (_without_prompt, "prompt.md"),
]


@contextmanager
def two_sites(mistake: Mistake) -> Iterator[dg.Definitions]:
    """What Dagster loads of a good site and of one with a mistake."""
    with create_defs_folder_sandbox() as sandbox:
        for name in ("broken", "good"):
            write_site(sandbox.defs_folder_path / name, rows_of(2), settings_of(name))
        mistake(sandbox.defs_folder_path / "broken")
        with sandbox.build_all_defs() as definitions:
            yield definitions


@pytest.mark.parametrize(("mistake", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_the_other_site_is_loaded_and_the_broken_one_says_what_is_wrong(
    mistake: Mistake, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), two_sites(mistake) as found:
        asset = found.resolve_asset_graph().get(dg.AssetKey(["broken", BROKEN]))
        names = {"/".join(key.path) for key in found.resolve_all_asset_keys()}
        sensors = {sensor.name for sensor in found.sensors or ()}
    assert {name for name in names if name.startswith("broken/")} == {"broken/site_file"}
    assert {"good/topics", "good/artifact", "good/cost_report"} < names
    assert "good_due_work_sensor" in sensors
    assert not any(name.startswith("broken") for name in sensors)
    told = str(asset.metadata["error"].value)
    assert "defs.yaml" in told or "prompt.md" in told
    assert said in told
    assert asset.description is not None
    assert told in asset.description
    assert told in caplog.text
    assert KEY not in caplog.text + asset.description


@pytest.mark.parametrize(("mistake", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_who_checks_definitions_is_told_the_error_itself(
    mistake: Mistake, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VALIDATION_VARIABLE, "1")
    with pytest.raises(Exception, match="broken") as caught, two_sites(mistake):
        pass
    cause = caught.value.__cause__
    assert isinstance(cause, SiteFileError)
    assert said in str(cause)


def test_its_asset_fails_with_the_same_words() -> None:
    with two_sites(_wrong(colour="red")) as found, dg.DagsterInstance.ephemeral() as instance:
        made = found.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(["broken", BROKEN])],
            raise_on_error=False,
        )
        (failed,) = made.get_step_failure_events()
    data = failed.step_failure_data.user_failure_data
    assert data is not None
    assert "unknown key 'colour'" in (data.description or "")


def test_a_file_that_is_no_yaml_still_stops_all_of_its_code_location() -> None:
    """Dagster reads every file before it asks any component; see docs/own-project.md."""
    with pytest.raises(Exception, match=r"broken[/\\]defs\.yaml"), two_sites(_no_yaml):
        pass


def test_its_folder_gives_it_a_name_that_dagster_takes() -> None:
    broken = BrokenSite(file=Path("defs/My site-2/defs.yaml"), error=SiteFileError("wrong"))
    assert broken.name == "My_site_2"


def test_attributes_that_fit_are_read_as_they_are() -> None:
    read = SiteAttributes.model_validate(settings_of("towns"))
    assert read.site == "towns"
    assert SiteAttributes.model_validate({"site": 5}).model_fields_set == set()


SITE_LOCATION = """\
from pathlib import Path

import dagster as dg

from content_pipeline.components.content_site import site_definitions
from content_pipeline.site_files import load_site


@dg.definitions
def defs():
    site = load_site(Path(__file__).parent / "defs" / Path(__file__).stem / "defs.yaml")
    return dg.Definitions.merge(
        site_definitions(site), dg.Definitions(executor=dg.in_process_executor)
    )
"""


def test_with_a_code_location_of_its_own_no_mistake_of_a_site_reaches_another(
    tmp_path: Path, project: Project
) -> None:
    names = ("good", "broken")
    for name in names:
        write_site(tmp_path / "defs" / name, rows_of(2), settings_of(name))
        (tmp_path / f"{name}.py").write_text(SITE_LOCATION)
    _no_yaml(tmp_path / "defs" / "broken")
    locations = [
        {"python_file": {"relative_path": f"{name}.py", "location_name": name}} for name in names
    ]
    (tmp_path / "workspace.yaml").write_text(yaml.safe_dump({"load_from": locations}))
    checked = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"],
        cwd=tmp_path,
        env=dict(environment())
        | {"PYTHONPATH": str(REPOSITORY), "DAGSTER_HOME": str(project.root)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = checked.stdout + checked.stderr
    assert checked.returncode == 1, told
    assert "Validation successful for code location good" in told
    assert "Validation failed for code location broken" in told
    assert f"{tmp_path / 'defs' / 'broken' / 'defs.yaml'}, line" in told
