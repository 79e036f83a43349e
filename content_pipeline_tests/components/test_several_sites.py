"""Two sites of one project: one ledger and one cap over both, and everything else apart."""

from decimal import Decimal

import dagster as dg
import pytest

from content_pipeline.config import DAY_BUDGET_VARIABLE
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger.spend import Caps, room_usd
from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of

NOT_ENOUGH = {"page_usd": 0.1, "site_day_usd": 0.0065}
"""One call of the sites here may cost 0.0063 dollars and costs about a quarter of that."""


def _together(*sites: TownSite) -> dg.Definitions:
    merged = dg.Definitions.merge(*(site.definitions for site in sites))
    dg.Definitions.validate_loadable(merged)
    return merged


def _named(definitions: dg.Definitions) -> dict[str, set[str]]:
    """Kind of definition → the names of all of them."""
    graph = definitions.resolve_asset_graph()
    return {
        "assets": {"/".join(key.path) for key in graph.get_all_asset_keys()},
        "checks": {"/".join(key.asset_key.path) for key in graph.asset_check_keys},
        "jobs": {getattr(job, "name", "") for job in definitions.jobs or ()},
        "sensors": {sensor.name for sensor in definitions.sensors or ()},
        "schedules": {schedule.name for schedule in definitions.schedules or ()},
    }


def test_all_definitions_of_both_load_together_and_none_is_shared(make_site: MakeSite) -> None:
    one, two = make_site(rows_of(2)), make_site(rows_of(2))
    ours, theirs, all_of_them = map(_named, (one.definitions, two.definitions, _together(one, two)))
    for kind, names in all_of_them.items():
        assert names == ours[kind] | theirs[kind], kind
        assert len(names) == 2 * len(ours[kind]) > 0, kind


def test_the_same_topics_are_partitions_and_pages_of_each_site_alone(make_site: MakeSite) -> None:
    one, two = make_site(rows_of(2)), make_site(rows_of(3))
    for site in (one, two):
        site.materialize_topics()
    known = [
        one.instance.get_dynamic_partitions(site.assets.partitions_name) for site in (one, two)
    ]
    assert [len(keys) for keys in known] == [2, 3]

    assert one.materialize(*Stage, pages="t01").success
    assert one.report("t01").state is PageJobState.PUBLISHED
    assert two.report("t01").state is PageJobState.QUEUED
    assert two.statuses(Stage.ARTIFACT, ["t01"]) == {"t01": "MISSING"}
    assert one.file_of("t01").exists()
    assert two.writes() == []


def test_a_site_whose_day_is_spent_waits_and_the_other_goes_on(make_site: MakeSite) -> None:
    one, two = make_site(rows_of(4), budgets=NOT_ENOUGH), make_site(rows_of(4))
    for site in (one, two):
        site.materialize_topics()
        assert site.materialize(*Stage, pages=("t01", "t04")).success
    published = [
        sum(site.report(f"t{number:02}").state is PageJobState.PUBLISHED for number in range(1, 5))
        for site in (one, two)
    ]
    assert published[0] < 4
    assert published[1] == 4


def test_one_cap_is_over_both(make_site: MakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = make_site(rows_of(1)), make_site(rows_of(1))
    for site in (one, two):
        site.materialize_topics()
    monkeypatch.setenv(DAY_BUDGET_VARIABLE, str(_used(one) + Decimal("0.0065")))
    assert _published(one)
    assert not _published(two)
    assert two.report("t01").failure_class is FailureClass.BUDGET
    monkeypatch.delenv(DAY_BUDGET_VARIABLE)
    assert two.run_job(f"{two.assets.name}_due_work").success
    assert _published(two)


def _published(site: TownSite) -> bool:
    assert site.materialize(*Stage, pages="t01").success
    return site.report("t01").state is PageJobState.PUBLISHED


def _used(site: TownSite) -> Decimal:
    """What all sites of the ledger have spent and reserved today."""
    much = Decimal(1000)
    caps = Caps(page_usd=much, site_day_usd=2 * much, global_day_usd=much)
    with site.ledger.begin() as connection:
        return much - room_usd(connection, site.assets.name, caps)
