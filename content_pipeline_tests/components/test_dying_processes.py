"""Dagster's processes die, or are told to end, in the middle of pages; and what people see then.

Everything is asked of the web server, as the UI asks it. What was paid for is taken from the
provider's account, what was written from the folder's own log.
"""

import re
from collections.abc import Iterator, Sequence

import dagster as dg
import psutil
import pytest

from content_pipeline.components import run_repair
from content_pipeline.components.planned_runs import pages_job_name
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.components.conftest import INVALID, MakeSite, TownSite, rows_of
from content_pipeline_tests.components.services import Services, services_of
from content_pipeline_tests.components.test_due_work import tick, told
from content_pipeline_tests.components.test_repairing import pass_time, repair, status_of
from content_pipeline_tests.components.test_schedule import NIGHT, planned
from content_pipeline_tests.machines.fleet import end

PAGES = 12
KEYS = [row["code"] for row in rows_of(PAGES)]
S = dg.DagsterRunStatus

SITES = ("backfilled", "queued", "worker", "machine", "asked", "forced", "cut off")
"""One for each story: what happens to one run must not be taken for what happens to another."""

PLANNED = "planned"
OF_A_NIGHT = 60
"""Pages of the planned site: two runs of its schedule, with 50 a run."""

Sites = dict[str, TownSite]

pytestmark = pytest.mark.timeout(400)  # several of Dagster's processes start one after another


@pytest.fixture(scope="module")
def sites(make_site: MakeSite) -> Sites:
    """Sites whose pages are made one by one."""
    made = {}
    for name in SITES:
        site = make_site(
            rows_of(PAGES, **({"t03": INVALID, "t09": INVALID} if name == "backfilled" else {})),
            lane={"patience_s": 60, "lease_s": 1, "publish_quiet_s": 0.2},
            generation={
                "provider": "sandbox",
                "model": "gpt-5-mini",
                "deadline_s": 5,
                "answer_slack_s": 1,
                "in_flight": 1,
                "sandbox": {"latency_median_s": 0},
            },
        )
        site.instance.add_dynamic_partitions(site.assets.partitions_name, KEYS)
        made[name] = site
    made[PLANNED] = make_site(rows_of(OF_A_NIGHT), schedule={"pages_per_run": 50})
    return made


@pytest.fixture(scope="module")
def running(sites: Sites, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with services_of(list(sites.values()), tmp_path_factory.mktemp("services")) as started:
        yield started


def answer_after(site: TownSite, seconds: float) -> None:
    """How long the provider takes for each page from now on."""
    settings = ProviderSettings(latency_median_s=seconds, latency_sigma=0, idle_exit_s=600)
    site.provider.set_settings(settings)


class Account:
    """What a site's pages cost from now on."""

    def __init__(self, site: TownSite) -> None:
        self._site = site
        self._before = site.billed()
        answer_after(site, 0.3)

    @property
    def billed(self) -> int:
        return self._site.billed() - self._before

    def hold_after(self, pages: int, running: Services) -> None:
        """Wait until so many pages are paid for; the next one is then on its way for long."""
        running.wait_until(lambda: self.billed >= pages)
        answer_after(self._site, 3)

    def release(self) -> None:
        answer_after(self._site, 0)


def worker_of(site: TownSite, run_id: str) -> psutil.Process:
    """The process that carries out a run."""
    kept = [entry.dagster_event for entry in site.instance.all_logs(run_id)]
    told = "\n".join(event.message or "" for event in kept if event)
    found = re.search(r"Started process for run \(pid: (\d+)\)", told)
    assert found, told
    return psutil.Process(int(found[1]))


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def begun(site: TownSite, running: Services) -> str:
    """A run of all pages that somebody launched."""
    return running.web.launch_run(pages_job_name(site.assets), (KEYS[0], KEYS[-1]))


def statuses(site: TownSite, run_id: str) -> list[dg.DagsterRunStatus]:
    """Of a run and what was started in its place, in this order."""
    group = site.instance.get_run_group(run_id)
    runs = [status_of(site, run_id)] if group is None else [run.status for run in group[1]]
    return sorted(runs, key=lambda status: status is S.SUCCESS)


def failed_of(site: TownSite, keys: Sequence[str]) -> list[str]:
    """What the UI's selection "failed" holds."""
    shown = site.statuses(Stage.ARTIFACT, keys)
    return [key for key in keys if shown[key] == "FAILED"]


def assert_all_are_done_once(site: TownSite, account: Account) -> None:
    assert {site.report(key).state for key in KEYS} == {PageJobState.PUBLISHED}
    for stage in Stage:
        assert set(site.statuses(stage, KEYS).values()) == {"MATERIALIZED"}
    assert account.billed == PAGES, "no page was paid for twice"
    assert len({line.split("\t")[1] for line in site.writes()}) == len(site.writes()) == PAGES


def test_a_backfill_outlives_its_daemon_and_its_code_server(
    sites: Sites, running: Services
) -> None:
    """Runs at work go on; what is queued waits; red pages alone are asked for again."""
    site, other = sites["backfilled"], sites["queued"]
    running.all_up()
    account = Account(site)
    keys = [key for key in KEYS if key != "t02"]  # two stretches: a run each
    backfill_id = running.web.launch_backfill(
        [site.assets.key(stage).path for stage in Stage], keys
    )

    def is_open() -> bool:
        found = site.instance.get_backfill(backfill_id)
        assert found is not None
        return found.status.value == "REQUESTED"

    def at_work() -> list[str]:
        mine = dg.RunsFilter(tags={"dagster/backfill": backfill_id}, statuses=[S.STARTED])
        return [run.run_id for run in site.instance.get_runs(mine)]

    account.hold_after(3, running)
    running.daemon.kill()
    running.daemon.wait()
    queued = begun(other, running)  # nobody takes it out of the queue for the time being
    running.code.kill()
    running.code.wait()
    left = at_work()
    assert left
    assert account.billed < len(keys), "it was killed too late to say anything"

    def enqueued() -> int:
        return len(site.instance.all_logs(queued, of_type=dg.DagsterEventType.PIPELINE_ENQUEUED))

    assert running.daemon.poll() is None
    account.release()
    running.wait_until(lambda: enqueued() >= 3)  # its turn came, and the code server was not there
    running.wait_until(lambda: not at_work())
    assert {status_of(site, run_id) for run_id in left} == {S.FAILURE}, "red pages, nothing else"
    assert account.billed == len(keys), "the runs that were at work needed no code server"
    assert is_open()

    running.all_up()
    running.wait_until(lambda: not is_open())
    running.wait_until(lambda: status_of(other, queued) is S.SUCCESS)
    found = site.instance.get_backfill(backfill_id)
    assert found is not None
    assert found.status.value == "COMPLETED_FAILED", "two pages need a person"
    assert failed_of(site, keys) == ["t03", "t09"]
    assert account.billed == len(keys) + PAGES, "no page was paid for twice"
    assert (len(site.writes()), len(other.writes())) == (len(keys) - 2, PAGES)

    again = site.instance.get_backfill(running.web.retry_failed(backfill_id))
    assert again is not None
    running.web.cancel_backfill(again.backfill_id)
    assert again.asset_backfill_data is not None
    asked = again.asset_backfill_data.target_subset.iterate_asset_partitions()
    assert {pair.partition_key for pair in asked} == {"t03", "t09"}


def test_the_runs_of_a_plan_are_asked_for_once_though_a_daemon_dies_in_between(
    sites: Sites, running: Services
) -> None:
    site = sites[PLANNED]

    def runs() -> list[dg.DagsterRun]:
        return list(site.instance.get_runs(dg.RunsFilter(job_name=pages_job_name(site.assets))))

    running.all_up()
    account = Account(site)
    assert planned(site, NIGHT).success
    running.wait_until(lambda: bool(runs()))
    running.daemon.kill()
    running.daemon.wait()
    running.all_up()
    running.wait_until(lambda: len(found := runs()) >= 2 and all(run.is_finished for run in found))
    first = [run for run in runs() if "dagster/parent_run_id" not in run.tags]
    assert sorted(run.tags["dagster/run_key"] for run in first) == [
        f"{site.assets.name}:2026-03-01T02:00Z:{number}" for number in (1, 2)
    ]
    assert (account.billed, len(site.writes())) == (OF_A_NIGHT, OF_A_NIGHT)


def test_a_run_whose_worker_is_killed_is_started_again_once(
    sites: Sites, running: Services
) -> None:
    site = sites["worker"]
    running.all_up()
    account = Account(site)
    run_id = begun(site, running)
    account.hold_after(3, running)
    worker_of(site, run_id).kill()
    assert account.billed < PAGES, "it was killed in the middle"
    account.release()
    running.wait_until(lambda: statuses(site, run_id) == [S.FAILURE, S.SUCCESS])
    assert_all_are_done_once(site, account)


def test_a_run_that_died_with_its_code_server_is_given_up_and_started_again_once(
    sites: Sites, running: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a machine dies: nobody is left who could tell Dagster."""
    monkeypatch.setattr(run_repair, "LEAST_SILENCE_S", 1)  # the tests' database is just up
    site = sites["machine"]
    running.all_up()
    account = Account(site)
    site.submit()
    run_id = running.web.launch_run(f"{site.assets.name}_due_work")
    account.hold_after(3, running)
    end(running.code)
    assert account.billed < PAGES, "it was killed in the middle"
    assert status_of(site, run_id) is S.STARTED
    assert told(tick(site, "due_work_sensor")) == "A run is at it."

    def is_given_up() -> bool:
        pass_time(site, 100)
        repair(site)
        return status_of(site, run_id) is S.FAILURE

    running.all_up()
    running.wait_until(is_given_up)
    account.release()
    running.wait_until(lambda: statuses(site, run_id) == [S.FAILURE, S.SUCCESS])
    repair(site)
    assert_all_are_done_once(site, account)


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("asked", "SAFE_TERMINATE"),
        ("forced", "MARK_AS_CANCELED_IMMEDIATELY"),
        ("cut off", "MARK_AS_CANCELED_IMMEDIATELY"),
    ],
)
def test_a_run_that_somebody_terminates_pays_for_nothing_more(
    name: str, policy: str, sites: Sites, running: Services
) -> None:
    """What was at work is finished. Nobody starts the run again; the due work does the rest."""
    site = sites[name]
    running.all_up()
    account = Account(site)
    run_id = begun(site, running)
    account.hold_after(3, running)
    worker = worker_of(site, run_id)
    if name == "cut off":
        running.code.kill()  # nobody is left who could signal the worker
        running.code.wait()
    running.web.terminate(run_id, policy)
    running.wait_until(lambda: is_gone(worker))
    assert 3 <= account.billed < PAGES
    assert len(site.writes()) == account.billed, "what was paid for is out"
    assert statuses(site, run_id) == [S.CANCELED]
    run = site.instance.get_run_by_id(run_id)
    assert run is not None
    assert "dagster/will_retry" not in run.tags

    account.release()
    assert site.run_job(f"{site.assets.name}_due_work").success
    repair(site)
    assert_all_are_done_once(site, account)
