"""The command as a whole: real workers, a real kill, and exit statuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from content_pipeline.chaos.cms_plan import LISTING_LAG_S
from content_pipeline.chaos.command import chaos
from content_pipeline.chaos.plan import POISON_PAGES
from content_pipeline.chaos.project import (
    LATE_QUIET_S,
    SITE,
    ArenaPlan,
    arena,
    names_of,
    path_of,
    paths_of,
)
from content_pipeline.cli import main
from content_pipeline.config import DAY_BUDGET_VARIABLE, HOME_VARIABLE, Project
from content_pipeline.core.cms_settings import SandboxCMSSettings
from content_pipeline.postgres.urls import VARIABLE
from content_pipeline.sandbox.cms.supervisor import cms_status
from content_pipeline.sandbox.supervisor import provider_status
from content_pipeline.site_files import load_site

PAGES = 20
FEW_PAGES = 12


def verdict_of(tmp_path: Path, pages: int, *options: str) -> dict[str, Any]:
    """The document of a run that must keep every promise."""
    file = tmp_path / "verdict.json"
    always = ["--pages", str(pages), "--seed", "1", "--kill-at", "0.3", "--json", str(file)]
    done = CliRunner().invoke(chaos, [*always, *options])
    assert done.exit_code == 0, done.output
    assert "every promise was kept" in done.output
    verdict: dict[str, Any] = json.loads(file.read_text())
    assert verdict["broken_promises"] == []
    assert verdict["pages_live"] == pages - POISON_PAGES
    assert verdict["workers_killed"] >= 1
    assert len(verdict["kills"]) == 1
    assert verdict["faults"] > 0
    assert verdict["billed"] >= verdict["pages_live"]
    assert verdict["most_calls_per_poison_page"] == 1
    return verdict


def test_lost_writes_that_take_effect_late_make_no_double_and_lose_nothing(tmp_path: Path) -> None:
    """Each takes effect 4 s after its connection is cut, lists are 2 s behind, people edit."""
    verdict = verdict_of(tmp_path, PAGES, "--late", "--edits", "3")
    assert verdict["late"]
    assert verdict["cms_faults"] > 0
    assert verdict["cms_writes"] > 2 * verdict["pages_live"]
    assert (verdict["public_doubles"], verdict["doubles_left"]) == (0, 0)
    assert (verdict["edited"], verdict["edits_overwritten"], verdict["outdated"]) == (3, 0, 0)


def test_one_kill_amid_faults_of_provider_and_cms_breaks_no_promise(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, FEW_PAGES, "--edits", "0")
    assert (verdict["cms"], verdict["late"], verdict["edited"]) == ("sandbox", False, 0)
    assert verdict["cms_faults"] > 0
    assert 1 <= verdict["deploy_calls"] < verdict["pages_live"]


def test_one_kill_amid_faults_breaks_no_promise_in_a_folder(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, FEW_PAGES, "--cms", "folder")
    assert (verdict["cms"], verdict["cms_requests"]) == ("folder", 0)


def test_a_folder_has_no_late_writes() -> None:
    done = CliRunner().invoke(chaos, ["--cms", "folder", "--late"])
    assert done.exit_code == 2
    assert "no late writes" in done.output


def test_a_plan_that_leaves_a_page_missing_is_told_by_the_exit_status(tmp_path: Path) -> None:
    """A request that the provider refuses as too long waits for a person."""
    plan = tmp_path / "plan.json"
    rule = {"fault": {"kind": "status", "status": 400, "code": "context_length_exceeded"}}
    plan.write_text(json.dumps({"rules": [rule | {"times": 1}]}))
    options = ["--pages", "2", "--kill", "0", "--cms", "folder", "--plan", str(plan)]
    done = CliRunner().invoke(chaos, options)
    assert done.exit_code == 1, done.output
    assert "broken: a page is missing" in done.output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"rules": [{"fault": {"kind": "comet"}}]}', "rules.0.fault.kind"),
        ("no json", "is no plan of faults"),
    ],
)
def test_a_plan_that_is_none_is_refused_before_anything_starts(
    text: str, told: str, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(text)
    done = CliRunner().invoke(main, ["chaos", "--plan", str(plan)])
    assert done.exit_code == 2
    assert told in done.output


def test_the_arena_is_a_world_of_its_own_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "postgresql://nobody@127.0.0.1:1/production")
    monkeypatch.setenv(DAY_BUDGET_VARIABLE, "0")
    with arena(ArenaPlan(pages=3, seed=4, late=True)) as place:
        assert VARIABLE not in place.variables
        assert DAY_BUDGET_VARIABLE not in place.variables
        assert place.variables[HOME_VARIABLE] == str(place.project.root)
        site = load_site(Project(root=place.project.root).root / "arena/defs" / SITE / "defs.yaml")
        assert site.settings.site == SITE
        assert site.settings.generation.sandbox.seed == 4
        assert place.sandbox.health()["settings"]["seed"] == 4
        data_home = place.project.data_home
        assert provider_status(data_home) is not None
        assert cms_status(data_home, SITE) is not None
        assert isinstance(site.settings.cms, SandboxCMSSettings)
        assert site.settings.cms.listing_lag_s == LISTING_LAG_S
        assert site.settings.lane.publish_quiet_s == LATE_QUIET_S
    assert provider_status(data_home) is None
    assert cms_status(data_home, SITE) is None
    assert not place.project.root.exists()


def test_names_and_paths_go_together() -> None:
    names = names_of(3)
    assert list(names) == ["t00001", "t00002", "t00003"]
    assert path_of(names["t00002"]) == "/harbour-00002/"
    assert paths_of(list(names.values())[:1]) == {"/harbour-00001/"}
