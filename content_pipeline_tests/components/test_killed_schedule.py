"""A scheduled run whose process is killed: the next tick finishes it, and nothing is paid twice.

What is true is taken from the provider's account and the folder's own log.
"""

from datetime import timedelta

import dagster as dg

from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.components.conftest import MakeSite, rows_of
from content_pipeline_tests.components.services import kill_in_the_middle, worker_of
from content_pipeline_tests.components.test_schedule import NIGHT, requests_of

PAGES = 24


def test_a_run_that_is_killed_is_finished_by_the_next_tick_at_no_further_cost(
    make_site: MakeSite,
) -> None:
    site = make_site(
        rows_of(PAGES),
        lane={"patience_s": 20, "lease_s": 1, "publish_quiet_s": 0.2},
        generation={
            "provider": "sandbox",
            "model": "gpt-5-mini",
            "deadline_s": 5,
            "answer_slack_s": 1,
            "in_flight": 4,
            "sandbox": {"latency_median_s": 0.3},
        },
        schedule={"pages_per_run": 100},
    )
    site.provider.set_settings(ProviderSettings(latency_median_s=0.3, idle_exit_s=600))
    (request,) = requests_of(site, NIGHT)
    worker = worker_of(site, "scheduled_pages", tags=request.tags, run_config=request.run_config)
    kill_in_the_middle(site, worker, after=PAGES // 6)
    begun = site.billed()
    assert PAGES // 6 <= begun < PAGES, "it was killed in the middle"
    (left,) = site.instance.get_runs(dg.RunsFilter(job_name=f"{site.assets.name}_scheduled_pages"))
    assert left.status is dg.DagsterRunStatus.STARTED
    site.instance.report_run_failed(left)  # as Dagster does once it misses the worker

    (again,) = requests_of(site, NIGHT + timedelta(days=1))
    job = site.definitions.resolve_job_def(f"{site.assets.name}_scheduled_pages")
    result = job.execute_in_process(
        instance=site.instance,
        tags=dict(again.tags),
        run_config=again.run_config,
        raise_on_error=False,
    )
    assert result.success, site.tags_of(result)
    assert site.billed() == PAGES
    assert len({line.split("\t")[1] for line in site.writes()}) == len(site.writes()) == PAGES
    assert requests_of(site, NIGHT + timedelta(days=2)) == []
