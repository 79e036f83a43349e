import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.sandbox.instance import (
    LOCK_FILE,
    LOG_FILE,
    RECORD_FILE,
    locked,
    read_record,
    write_record,
)
from content_pipeline.sandbox.server import serving
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline.sandbox.supervisor import (
    FOLDER,
    ensure_provider_running,
    provider_status,
    stop_provider,
)
from content_pipeline_tests.sandbox.asking import create, stored_as
from content_pipeline_tests.sandbox.conftest import INSTANT, MakeSdk

ENSURE = (
    "import pathlib, sys\n"
    "from content_pipeline.sandbox.supervisor import ensure_provider_running\n"
    "print(ensure_provider_running(pathlib.Path(sys.argv[1])).pid, flush=True)\n"
)
HEEDS_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""A shell that starts the tests in its background lets all of them ignore it."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A data home with a space in its path; its provider is stopped at the end."""
    place = tmp_path / "data home"
    yield place
    stop_provider(place)


def killed(home: Path) -> None:
    """End the provider of ``home`` with ``kill -9`` and wait until it is gone."""
    status = provider_status(home)
    assert status is not None
    os.kill(status.address.pid, signal.SIGKILL)
    with locked(home / FOLDER / LOCK_FILE, 10, "it must die"):
        pass


def test_a_provider_is_started_used_found_again_and_stopped(home: Path, make_sdk: MakeSdk) -> None:
    assert provider_status(home) is None
    address = ensure_provider_running(home, INSTANT)
    create(make_sdk(address.base_url), **stored_as("attempt-1"))
    assert ensure_provider_running(home, INSTANT) == address
    status = provider_status(home)
    assert status is not None
    assert status.address == address
    assert (status.requests, status.generations, status.in_flight) == (1, 1, 0)
    assert status.settings == INSTANT
    assert address.client().truth()["generations_by_attempt_id"] == {"attempt-1": 1}

    assert stop_provider(home)
    assert provider_status(home) is None
    assert not stop_provider(home)


def test_a_killed_provider_is_started_again_with_its_memory_and_port(
    home: Path, make_sdk: MakeSdk
) -> None:
    first = ensure_provider_running(home, INSTANT)
    create(make_sdk(first.base_url), **stored_as("attempt-1"))
    killed(home)
    assert provider_status(home) is None
    second = ensure_provider_running(home, INSTANT)
    assert second.pid != first.pid
    assert second.base_url == first.base_url
    assert second.client().truth()["generations_by_attempt_id"] == {"attempt-1": 1}


def test_other_settings_are_applied_to_the_running_one(home: Path) -> None:
    first = ensure_provider_running(home, INSTANT)
    other = ProviderSettings(latency_median_s=0.25, seed=8, models=("acme-1",))
    assert ensure_provider_running(home, other) == first
    assert ensure_provider_running(home) == first
    status = provider_status(home)
    assert status is not None
    assert status.settings == other


def test_many_processes_at_once_start_one_provider(home: Path) -> None:
    command = [sys.executable, "-c", ENSURE, str(home)]
    callers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    pids = {caller.communicate(timeout=60)[0] for caller in callers}
    assert len(pids) == 1
    status = provider_status(home)
    assert status is not None
    assert pids == {f"{status.address.pid}\n"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_caller_does_not_reach_it(home: Path, number: signal.Signals) -> None:
    code = HEEDS_SIGINT + ENSURE + "import time; time.sleep(60)"
    command = [sys.executable, "-c", code, str(home)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as caller:
        assert caller.stdout is not None
        pid = int(caller.stdout.readline())
        os.killpg(caller.pid, number)
        caller.wait(timeout=20)
    status = provider_status(home)
    assert status is not None
    assert status.address.pid == pid


def test_no_zombie_and_no_secret_is_left_to_the_caller(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    address = ensure_provider_running(home, INSTANT)
    environment = Path(f"/proc/{address.pid}/environ")
    if environment.exists():
        assert b"sk-secret" not in environment.read_bytes()
    with pytest.raises(ChildProcessError):
        os.waitpid(address.pid, os.WNOHANG)


def test_a_record_whose_port_belongs_to_somebody_else_now_is_not_believed(home: Path) -> None:
    first = ensure_provider_running(home, INSTANT)
    killed(home)
    with serving(INSTANT, port=first.port) as stranger:
        assert provider_status(home) is None
        assert not stop_provider(home)
        second = ensure_provider_running(home, INSTANT)
        assert second.port != first.port
        assert stranger.health()["status"] == "ok"


def test_a_leftover_record_of_a_pid_in_use_starts_a_new_one(home: Path) -> None:
    first = ensure_provider_running(home, INSTANT)
    record = read_record(home / FOLDER)
    assert record is not None
    killed(home)
    write_record(home / FOLDER, record.model_copy(update={"pid": os.getpid()}))
    second = ensure_provider_running(home, INSTANT)
    assert second.pid not in {first.pid, os.getpid()}


def test_a_journal_that_cannot_be_read_is_told_with_the_log(home: Path) -> None:
    ensure_provider_running(home, INSTANT)
    stop_provider(home)
    (home / FOLDER / "provider.jsonl").write_text("nonsense\n")
    with pytest.raises(ConfigurationError, match=LOG_FILE):
        ensure_provider_running(home, INSTANT)
    assert "provider.jsonl, line 1" in (home / FOLDER / LOG_FILE).read_text()


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="file"):
        ensure_provider_running(tmp_path / "file", INSTANT)


def test_everything_it_writes_is_in_its_own_folder(home: Path) -> None:
    ensure_provider_running(home, INSTANT)
    assert [path.name for path in home.iterdir()] == [FOLDER]
    names = {path.name for path in (home / FOLDER).iterdir()}
    assert names == {RECORD_FILE, LOG_FILE, LOCK_FILE, "start.lock", "provider.jsonl"}
    assert (home / FOLDER).stat().st_mode & 0o077 == 0
