"""A night under real daemons that die while its runs are asked for: each run is started once."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of
from content_pipeline_tests.components.test_backfills import (
    DEFINITIONS,
    LONGEST_S,
    daemon_at_work,
    wait_for,
)
from content_pipeline_tests.components.test_schedule import planned

NIGHT = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)


def runs_of(site: TownSite) -> list[dg.DagsterRun]:
    """All runs that were ever asked for to carry out the plan."""
    name = f"{site.assets.name}_scheduled_pages"
    return list(site.instance.get_runs(dg.RunsFilter(job_name=name)))


@pytest.mark.timeout(2 * LONGEST_S + 60)
def test_runs_go_on_being_asked_for_when_a_daemon_died_and_none_is_started_twice(
    make_site: MakeSite, tmp_path: Path
) -> None:
    site = make_site(rows_of(60), schedule={"pages_per_run": 50})
    assert planned(site, NIGHT).success
    file = tmp_path / "definitions.py"
    file.write_text(DEFINITIONS.format(file=str(site.site.file)))
    with daemon_at_work(site, file) as first:
        wait_for(lambda: bool(runs_of(site)), "no run was asked for")
        first.kill()
        first.wait()
    with daemon_at_work(site, file):
        wait_for(
            lambda: len(done := runs_of(site)) >= 2 and all(run.is_finished for run in done),
            "the plan was not carried on",
        )
    keys = sorted(
        run.tags["dagster/run_key"]
        for run in runs_of(site)
        if "dagster/parent_run_id" not in run.tags
    )
    assert keys == [f"{site.assets.name}:2026-03-01T02:00Z:{number}" for number in (1, 2)]
    assert (site.billed(), len(site.writes())) == (60, 60)
