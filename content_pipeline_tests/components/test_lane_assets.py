"""Materializing pages: alone, in a range, all of them, in part, and again."""

import dagster as dg

from content_pipeline.core.states import PageJobState, Stage
from content_pipeline_tests.components.conftest import INVALID, MakeSite, rows_of


def test_a_single_page_goes_all_the_way_and_is_shown_on_three_assets(make_site: MakeSite) -> None:
    site = make_site(rows_of(3))
    site.materialize_topics()
    result = site.materialize(*Stage, pages="t02")
    assert result.success
    for stage in Stage:
        assert site.statuses(stage, ["t01", "t02", "t03"]) == {
            "t01": "MISSING",
            "t02": "MATERIALIZED",
            "t03": "MISSING",
        }
    assert site.report("t02").state is PageJobState.PUBLISHED
    assert site.billed() == 1
    assert len(site.writes()) == 1
