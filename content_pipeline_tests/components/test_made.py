"""What a run brought about itself, told from what it found done."""

from contextlib import closing

from content_pipeline.bootstrap import open_site
from content_pipeline.components.made import Made
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.lane import advance
from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of


def work(site: TownSite, *stages: Stage) -> str:
    """Bring the site's pages through ``stages``; the worker's name."""
    with closing(open_site(site.site, site.project, site.ledger, purpose="cli")) as runtime:
        selection = Selection(site=site.assets.name, stages=frozenset(stages))
        assert [settled.topic_key for settled in advance(runtime, selection)] == ["t01"]
        return runtime.worker


def test_each_run_is_credited_with_the_stages_it_made(make_site: MakeSite) -> None:
    site = make_site(rows_of(1))
    site.submit()
    drafting, publishing = work(site, Stage.DRAFT), work(site, *Stage)
    brought = {}
    for worker in (drafting, publishing, "somebody else"):
        made = Made(worker=worker)
        with site.ledger.begin() as connection:
            page = made.note(connection, site.assets.name, "t01")
        assert page.state is PageJobState.PUBLISHED
        brought[worker] = {stage for stage in Stage if made.topics[stage] == {"t01"}}
    assert brought == {
        drafting: {Stage.DRAFT},
        publishing: {Stage.PAGE, Stage.ARTIFACT},
        "somebody else": set(),
    }
