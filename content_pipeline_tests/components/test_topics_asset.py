"""The table of topics as an asset."""

import dagster as dg
import pytest

from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of, write_table

pytestmark = pytest.mark.oldest


def _last(site: TownSite) -> dg.AssetMaterialization:
    wanted = dg.AssetRecordsFilter(site.assets.topics)
    (record,) = site.instance.fetch_materializations(wanted, limit=1).records
    assert record.asset_materialization is not None
    return record.asset_materialization


def _shown(site: TownSite) -> dict[str, object]:
    names = ("rows", "new_or_changed", "unchanged", "rejected", "new_partitions")
    return {name: _last(site).metadata[name].value for name in names}


def test_each_topic_becomes_a_partition_in_the_order_of_the_table(make_site: MakeSite) -> None:
    rows = list(reversed(rows_of(4)))
    site = make_site(rows)
    assert site.materialize_topics().success
    partitions = site.instance.get_dynamic_partitions(f"{site.assets.name}_pages")
    assert partitions == ["t04", "t03", "t02", "t01"]
    assert _shown(site) == {
        "rows": 4,
        "new_or_changed": 4,
        "unchanged": 0,
        "rejected": 0,
        "new_partitions": 4,
    }
    assert _last(site).metadata["dagster/row_count"].value == 4
    assert site.billed() == 0


def test_a_table_taken_in_again_shows_only_what_changed(make_site: MakeSite) -> None:
    site = make_site(rows_of(4))
    site.materialize_topics()
    table = site.site.table
    assert table is not None
    write_table(table, rows_of(5, t02="its harbour"))
    assert site.materialize_topics().success
    assert _shown(site) == {
        "rows": 5,
        "new_or_changed": 2,
        "unchanged": 3,
        "rejected": 0,
        "new_partitions": 1,
    }


def test_its_data_version_never_changes_so_that_a_refresh_makes_no_page_unsynced(
    make_site: MakeSite,
) -> None:
    site = make_site(rows_of(1))
    versions = []
    for count in (1, 2):
        table = site.site.table
        assert table is not None
        write_table(table, rows_of(count))
        site.materialize_topics()
        tags = _last(site).tags or {}
        versions.append(tags["dagster/data_version"])
    assert versions[0] == versions[1] == "table"


def test_rows_that_cannot_become_pages_are_listed_with_the_reason(make_site: MakeSite) -> None:
    rows = rows_of(4)
    rows[1]["population"] = ""
    rows[2]["code"] = "no/good"
    site = make_site(rows)
    result = site.materialize_topics()
    assert result.success
    assert _shown(site)["rejected"] == 2
    table = _last(site).metadata["rejected_rows"]
    assert isinstance(table, dg.TableMetadataValue)
    reasons = {str(row.data["topic"]): str(row.data["reason"]) for row in table.records}
    assert "'population' is empty" in reasons["t02"]
    assert "no/good" in reasons[""]
    (check,) = site.checks_of(result)
    assert (check.check_name, check.passed) == ("usable_rows", False)
    assert check.severity is dg.AssetCheckSeverity.WARN
    assert (check.description or "").startswith("2 rows cannot become a page: row 3")


def test_a_good_table_passes_its_check(make_site: MakeSite) -> None:
    (check,) = make_site(rows_of(1)).materialize_topics().get_asset_check_evaluations()
    assert check.passed
    assert check.description == "Every row can become a page."
