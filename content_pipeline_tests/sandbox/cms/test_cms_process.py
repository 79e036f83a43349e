"""The CMS as a process of its own: options, ``kill -9``, the background and the project's one."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.sandbox.cms.__main__ import main
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.cms.store import JOURNAL_FILE
from content_pipeline.sandbox.cms.supervisor import (
    FOLDER,
    cms_status,
    cms_statuses,
    ensure_cms_running,
    stop_cms,
)
from content_pipeline.sandbox.instance import LOCK_FILE, LOG_FILE, RECORD_FILE, locked
from content_pipeline.sandbox.supervisor import ensure_provider_running, stop_provider
from content_pipeline_tests.conftest import INSTANT_CMS, INSTANT_PROVIDER
from content_pipeline_tests.sandbox.cms.wordpress import (
    PAGES,
    WordPress,
    marked,
    sandbox_site,
)

Start = Callable[..., tuple[subprocess.Popen[str], CMSClient]]
COMMAND = [sys.executable, "-m", "content_pipeline.sandbox.cms"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start the module with options; whatever is still running afterwards is ended."""
    started: list[subprocess.Popen[str]] = []

    def begin(*options: object) -> tuple[subprocess.Popen[str], CMSClient]:
        command = [*COMMAND, "--latency-median-s", "0", *map(str, options)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        return process, CMSClient(int(process.stdout.readline().strip().rpartition(":")[2]))

    yield begin
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A data home with a space in its path; its services are stopped at the end."""
    place = tmp_path / "data home"
    yield place
    stop_cms(place)
    stop_provider(place)


def test_truth_pages_and_port_survive_kill_minus_nine(tmp_path: Path, start: Start) -> None:
    process, client = start("--data", tmp_path)
    site = sandbox_site(client)
    page = site.created(title="T", slug="a", content=marked("k1"), status="publish")
    site.updated(page, content=marked("k1", 2))
    site.ask("POST", "/hooks/receive/x", {"event": 1}, who=None)
    before = (client.truth(), client.history(), client.requests(), client.deliveries())
    process.kill()
    process.wait()

    _, again = start("--data", tmp_path)
    assert again.base_url == client.base_url
    assert (again.truth(), again.history(), again.requests(), again.deliveries()) == before
    assert "rev=2" in site.visit("/a/").text
    assert site.created(title="T", slug="a")["slug"] == "a-2"
    versions = site.ask("GET", f"{PAGES}/{page['id']}/revisions?context=edit").json
    assert [each["content"]["raw"] for each in versions] == [marked("k1", 2)]


def test_every_answer_before_a_kill_is_true_after_it(tmp_path: Path, start: Start) -> None:
    """Killed in the middle of writes: what was answered is there, the rest at most once."""
    process, client = start("--data", tmp_path)
    site = sandbox_site(client)
    answered: list[int] = []
    sent = 0
    killer = subprocess.Popen(["sh", "-c", f"sleep 0.4; kill -9 {process.pid}"])
    try:
        while sent < 5000:
            sent += 1
            answered.append(site.created(title="T", content=marked(f"k{sent}"))["id"])
    except (OSError, EOFError, http.client.HTTPException):
        pass
    killer.wait()
    process.wait()
    assert answered, "it must have answered something before"
    _, again = start("--data", tmp_path)
    drafts = {key: pages["drafts"] for key, pages in again.truth()["pages"].items()}
    assert [drafts[f"k{number}"] for number in range(1, len(answered) + 1)] == [
        [page_id] for page_id in answered
    ]
    assert len(drafts) <= sent


def test_a_late_write_is_lost_with_the_process(tmp_path: Path, start: Start) -> None:
    plan = tmp_path / "faults.json"
    plan.write_text('{"rules": [{"fault": {"kind": "late", "seconds": 30, "hold_s": 30}}]}')
    process, client = start("--data", tmp_path / "data", "--faults", plan)
    site = sandbox_site(client)
    hasty = WordPress(base_url=site.base_url, logins=site.logins, timeout_s=0.3)
    with pytest.raises(TimeoutError):
        hasty.created(title="T")
    process.kill()
    process.wait()
    _, again = start("--data", tmp_path / "data")
    assert again.truth()["faults"] == {"late": 1}
    assert again.history() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_quietly(start: Start, number: signal.Signals) -> None:
    process, _ = start()
    process.send_signal(number)
    assert process.wait(timeout=20) == 0


def test_options_reach_the_settings(start: Start) -> None:
    options = ("--companion", "true", "--listing-lag-s", 2, "--clock-offset-s", "-30")
    _, client = start(*options, "--indexnow-key", "abc", "--idle-exit-s", 60)
    settings = CMSSettings.model_validate(client.health()["settings"])
    assert (settings.companion, settings.listing_lag_s) == (True, 2)
    assert (settings.clock_offset_s, settings.indexnow_key) == (-30, "abc")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--latency-median-s", "-1"), "latency_median_s"),
        (("--companion", "perhaps"), "companion"),
        (("--faults", "/nowhere/plan.json"), "/nowhere/plan.json"),
        (("--data", "/dev/null/x"), "/dev/null"),
    ],
)
def test_a_wrong_value_is_told(
    options: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options) == 1
    assert told in capsys.readouterr().err


def test_the_help_names_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for name in CMSSettings.model_fields:
        assert f"--{name.replace('_', '-')}" in text


def test_it_ends_by_itself_when_nobody_asks(tmp_path: Path, start: Start) -> None:
    process, _ = start("--data", tmp_path, "--idle-exit-s", "0.2")
    assert process.wait(timeout=20) == 0


# --- the CMS of a site ------------------------------------------------------------------------

SITE = "towns"


def test_a_cms_is_started_used_found_again_and_stopped(home: Path) -> None:
    assert cms_status(home, SITE) is None
    running = ensure_cms_running(home, SITE, INSTANT_CMS)
    sandbox_site(running.client()).created(title="T", status="publish")
    assert ensure_cms_running(home, SITE, INSTANT_CMS).pid == running.pid
    status = cms_status(home, SITE)
    assert status is not None
    assert (status.requests, status.live, status.in_flight) == (1, 1, 0)
    assert status.settings == INSTANT_CMS
    names = {path.name for path in (home / FOLDER / SITE).iterdir()}
    assert names == {RECORD_FILE, LOG_FILE, LOCK_FILE, "start.lock", JOURNAL_FILE}

    assert stop_cms(home)
    assert cms_status(home, SITE) is None
    assert not stop_cms(home)


def test_each_site_has_a_cms_whose_pages_keys_and_truth_are_its_own(home: Path) -> None:
    assert cms_statuses(home) == {}
    clients = {
        name: ensure_cms_running(home, name, INSTANT_CMS).client() for name in ("rivers", SITE)
    }
    for name, client in clients.items():
        page = sandbox_site(client).created(
            title=name, slug="a", content=marked("k1"), status="publish"
        )
        assert page["slug"] == "a", "the other site's page takes no slug"
    for name, client in clients.items():
        (live,) = client.live()
        assert live["path"] == "/a/"
        assert client.truth()["pages"]["k1"]["most_live_at_once"] == 1
        assert name in sandbox_site(client).visit("/a/").body.decode()
    clients["rivers"].reset()
    running = cms_statuses(home)
    assert {name: status.live for name, status in running.items()} == {"rivers": 0, SITE: 1}
    assert len({status.pid for status in running.values()}) == 2

    assert stop_cms(home), "both end"
    assert cms_statuses(home) == {}
    assert not stop_cms(home)


def test_a_killed_cms_is_started_again_with_its_pages_and_port(home: Path) -> None:
    first = ensure_cms_running(home, SITE, INSTANT_CMS)
    sandbox_site(first.client()).created(title="T", slug="a", status="publish")
    os.kill(first.pid, signal.SIGKILL)
    with locked(home / FOLDER / SITE / LOCK_FILE, 10, "it must die"):
        pass
    assert cms_status(home, SITE) is None
    second = ensure_cms_running(home, SITE, INSTANT_CMS)
    assert second.pid != first.pid
    assert second.base_url == first.base_url
    assert sandbox_site(second.client()).visit("/a/").status == 200


def test_other_settings_are_applied_to_the_running_one(home: Path) -> None:
    first = ensure_cms_running(home, SITE, INSTANT_CMS)
    other = INSTANT_CMS.model_copy(update={"companion": True, "marker_pattern": MARKS})
    assert ensure_cms_running(home, SITE, other).pid == first.pid
    status = cms_status(home, SITE)
    assert status is not None
    assert status.settings == other


MARKS = r"%(?P<key>\w+)%(?P<rev>\d+)%(?P<hash>\w+)"
"""Per cent signs and backslashes must come through a command line."""


def test_settings_come_through_the_command_line_to_the_letter(home: Path) -> None:
    wanted = INSTANT_CMS.model_copy(update={"marker_pattern": MARKS, "unfiltered_html": False})
    assert ensure_cms_running(home, SITE, wanted).settings == wanted


def test_provider_and_cms_of_one_project_live_side_by_side(home: Path) -> None:
    cms = ensure_cms_running(home, SITE, INSTANT_CMS)
    provider = ensure_provider_running(home, INSTANT_PROVIDER)
    assert cms.pid != provider.pid
    assert cms.port != provider.port
    assert stop_provider(home)
    assert cms_status(home, SITE) is not None


def test_a_journal_that_cannot_be_read_is_told_with_the_log(home: Path) -> None:
    ensure_cms_running(home, SITE, INSTANT_CMS)
    stop_cms(home)
    (home / FOLDER / SITE / JOURNAL_FILE).write_text("nonsense\n")
    with pytest.raises(ConfigurationError, match=LOG_FILE):
        ensure_cms_running(home, SITE, INSTANT_CMS)
    assert f"{JOURNAL_FILE}, line 1" in (home / FOLDER / SITE / LOG_FILE).read_text()
