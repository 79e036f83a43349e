"""What is announced, as an asset."""

from pathlib import Path

import dagster as dg

from content_pipeline.core.states import Stage
from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of
from content_pipeline_tests.components.failures import reason_of


def _materialize(site: TownSite) -> dg.ExecuteInProcessResult:
    return site.materialize(also=[site.assets.announcement("sitemap")])


def _shown(site: TownSite) -> dict[str, dg.MetadataValue]:
    wanted = dg.AssetRecordsFilter(site.assets.announcement("sitemap"))
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


def test_it_shows_each_hook_and_where_to_look(make_site: MakeSite) -> None:
    site = _published(make_site)
    table = _shown(site)["hooks"]
    assert isinstance(table, dg.TableMetadataValue)
    assert [(row.data["hook"], row.data["location"]) for row in table.records] == [
        ("index_page", str(_file(site).with_name("index.html"))),
        ("sitemap", str(_file(site))),
    ]


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
