"""Buckets whose pages were made elsewhere are shown as they stand, once."""

import dagster as dg

from content_pipeline.core.states import Stage
from content_pipeline_tests.components.conftest import INVALID, MakeSite
from content_pipeline_tests.components.test_bucket_events import KEYS, NAMES, OF, bucket_site, green
from content_pipeline_tests.components.test_repairing import repair, story, work_elsewhere

MATERIALIZED, MISSING = "MATERIALIZED", "MISSING"


def test_buckets_of_pages_made_elsewhere_are_shown_once(make_site: MakeSite) -> None:
    site = bucket_site(make_site)
    work_elsewhere(site)
    assert set(green(site).values()) == {MISSING}
    done = repair(site)
    assert done.looked_at == len(KEYS)
    assert (done.materialized, done.stories) == (3 * len(NAMES), len(NAMES))
    for stage in Stage:
        assert green(site, stage) == dict.fromkeys(NAMES, MATERIALIZED)
        told = story(site, stage, NAMES[0])
        assert told.passed
        assert told.metadata["pages"].value == len(OF[NAMES[0]])
    again = repair(site)
    assert (again.looked_at, again.materialized, again.stories) == (len(KEYS), 0, 0)


def test_a_bucket_with_a_page_that_failed_elsewhere_tells_which(make_site: MakeSite) -> None:
    bad = OF[NAMES[1]][0]
    site = bucket_site(make_site, known_for={bad: INVALID})
    work_elsewhere(site)
    repair(site)
    shown = green(site)
    assert shown.pop(NAMES[1]) == MISSING, "no run of it failed, and it is not done"
    assert set(shown.values()) == {MATERIALIZED}
    told = story(site, Stage.ARTIFACT, NAMES[1])
    assert not told.passed
    assert told.severity is dg.AssetCheckSeverity.ERROR
    rows = told.metadata["not_green"]
    assert isinstance(rows, dg.TableMetadataValue)
    assert [row.data["page"] for row in rows.records] == [bad]


def test_what_a_run_told_of_its_buckets_is_not_told_again(make_site: MakeSite) -> None:
    site = bucket_site(make_site)
    site.materialize_topics()
    assert site.materialize(*Stage, pages=(NAMES[0], NAMES[-1])).success
    done = repair(site)
    assert (done.materialized, done.stories) == (0, 0)
