"""What each hook is told, as an asset."""

from pathlib import Path

import dagster as dg
import pytest

from content_pipeline.core.states import Stage
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of
from content_pipeline_tests.components.failures import reason_of

SITEMAP = "sitemap"
DEPLOY = {"kind": "deploy_hook", "debounce_s": 3600}


@pytest.fixture
def deploys(sandbox_cms: CMSClient, monkeypatch: pytest.MonkeyPatch) -> CMSClient:
    """A host that builds the site when its hook is called."""
    monkeypatch.setenv("DEPLOY_HOOK_URL", f"{sandbox_cms.base_url}/hooks/deploy/towns")
    return sandbox_cms


def _materialize(site: TownSite, *hooks: str) -> dg.ExecuteInProcessResult:
    return site.materialize(also=[site.assets.announcement(hook) for hook in hooks or (SITEMAP,)])


def _shown(site: TownSite, hook: str = SITEMAP) -> dict[str, dg.MetadataValue]:
    wanted = dg.AssetRecordsFilter(site.assets.announcement(hook))
    (record,) = site.instance.fetch_materializations(wanted, limit=1).records
    assert record.asset_materialization is not None
    return dict(record.asset_materialization.metadata)


def _file(site: TownSite) -> Path:
    return site.project.root / "public" / site.assets.name / "sitemap.xml"


def _published(make_site: MakeSite) -> TownSite:
    site = make_site(rows_of(2))
    site.materialize_topics()
    assert site.materialize(*Stage, pages=("t01", "t02")).success
    return site


def test_a_removed_sitemap_is_brought_back_and_an_intact_one_left_alone(
    make_site: MakeSite,
) -> None:
    site = _published(make_site)
    before = _file(site).read_bytes()
    _file(site).unlink()
    assert _materialize(site).success
    assert _file(site).read_bytes() == before
    assert _shown(site)["changed"].value is True
    assert _materialize(site).success
    assert _shown(site)["changed"].value is False
    assert _shown(site)["urls"].value == 2


def test_each_hook_shows_its_last_call_and_where_to_look(make_site: MakeSite) -> None:
    site = _published(make_site)
    for hook, name in (("index_page", "index.html"), (SITEMAP, "sitemap.xml")):
        shown = _shown(site, hook)
        assert shown["location"].value == str(_file(site).with_name(name))
        assert shown["outcome"].value == "changed"
        assert shown["pages_told"].value == 2
        assert isinstance(shown["last_call"], dg.TimestampMetadataValue)
        assert "next_attempt" not in shown


def test_a_site_of_which_the_ledger_knows_nothing_has_nothing_to_announce(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(1))
    assert _materialize(site).success
    assert _shown(site)["urls"].value == 0
    assert not _file(site).exists()


def test_a_hook_that_cannot_write_fails_the_asset_and_says_why(make_site: MakeSite) -> None:
    site = _published(make_site)
    _file(site).unlink()
    _file(site).mkdir()
    result = _materialize(site)
    assert not result.success
    assert reason_of(result).startswith("not announced: sitemap: ")


def test_a_run_whose_pages_are_out_but_not_announced_is_red_and_the_pages_green(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(1))
    site.materialize_topics()
    _file(site).mkdir(parents=True)
    result = site.materialize(*Stage, pages="t01")
    assert not result.success
    assert reason_of(result).startswith("not announced: sitemap: ")
    assert site.statuses(Stage.ARTIFACT, ["t01"]) == {"t01": "MATERIALIZED"}


def test_a_hook_that_gathers_waits_and_is_told_at_once_by_hand(
    make_site: MakeSite, deploys: CMSClient
) -> None:
    site = make_site(rows_of(2), announce=[DEPLOY])
    site.materialize_topics()
    assert site.materialize(*Stage, pages=("t01", "t02")).success
    assert deploys.deliveries() == []
    assert _materialize(site, "deploy_hook").success
    shown = _shown(site, "deploy_hook")
    assert str(shown["location"].value).startswith("build ")
    assert (shown["outcome"].value, shown["pages_told"].value) == ("told", 2)
    assert _materialize(site, "deploy_hook").success
    assert len(deploys.deliveries()) == 1, "an unchanged site is not built again"
    assert _shown(site, "deploy_hook")["outcome"].value == "nothing_new"


def test_a_service_that_is_not_well_leaves_the_run_green_and_shows_on_the_asset(
    make_site: MakeSite, deploys: CMSClient
) -> None:
    fault = {"kind": "status", "status": 503, "retry_after_s": 600}
    rule = {"fault": fault, "match": {"operation": "deploy"}}
    deploys.set_faults(FaultPlan.model_validate({"rules": [rule]}))
    site = make_site(rows_of(1), announce=[DEPLOY | {"debounce_s": 0}])
    site.materialize_topics()
    assert site.materialize(*Stage, pages="t01").success
    wanted = dg.AssetRecordsFilter(site.assets.announcement("deploy_hook"))
    (record,) = site.instance.fetch_observations(wanted, limit=1).records
    assert record.asset_observation is not None
    shown = record.asset_observation.metadata
    assert shown["failure_class"].value == "throttled"
    assert "HTTP 503" in str(shown["failure"].value)
    assert "next_attempt" in shown
    result = _materialize(site, "deploy_hook")
    assert not result.success, "who asks by hand is told"
    assert reason_of(result).startswith("not announced: deploy_hook: The deploy hook")
    assert deploys.truth()["requests_by_operation"]["deploy"] == 1, "its wait is kept all the same"
