"""The provider as a process of its own: options, journal, signals, ``kill -9``."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import pytest

from content_pipeline.core.errors import CallFailed
from content_pipeline.sandbox.__main__ import main
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.connections import listen
from content_pipeline.sandbox.instance import RECORD_FILE, read_record
from content_pipeline_tests.sandbox.asking import body_of, create, stored_as, wait_until
from content_pipeline_tests.sandbox.conftest import MakeSdk

Start = Callable[..., tuple[subprocess.Popen[str], SandboxClient]]
COMMAND = [sys.executable, "-m", "content_pipeline.sandbox"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start the module with options; whatever is still running afterwards is ended."""
    started: list[subprocess.Popen[str]] = []

    def begin(*options: object) -> tuple[subprocess.Popen[str], SandboxClient]:
        command = [*COMMAND, "--latency-median-s", "0", *map(str, options)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        return process, SandboxClient(int(base_url.removesuffix("/v1").rpartition(":")[2]))

    yield begin
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def refused(*options: object) -> str:
    """What the module says when it does not start."""
    done = subprocess.run([*COMMAND, *map(str, options)], capture_output=True, text=True)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_truth_store_and_port_survive_kill_minus_nine(
    tmp_path: Path, start: Start, make_sdk: MakeSdk
) -> None:
    process, box = start("--data", tmp_path)
    sdk = make_sdk(box.base_url)
    created = create(sdk, **stored_as("attempt-1"))
    create(sdk, **stored_as("attempt-2"))
    before = box.truth()
    process.kill()
    process.wait()

    _, again = start("--data", tmp_path)
    assert again.base_url == box.base_url
    assert again.truth() == before
    found = sdk.chat.completions.list(metadata={"attempt_id": "attempt-1"}).data
    assert [completion.id for completion in found] == [created.id]
    assert found[0].choices[0].message.content == created.choices[0].message.content
    create(sdk, **stored_as("attempt-3"))
    assert len(again.truth()["generations"]) == 3


def test_a_generation_under_way_when_it_is_killed_is_not_billed(
    tmp_path: Path, start: Start, make_sdk: MakeSdk
) -> None:
    process, box = start("--data", tmp_path, "--latency-median-s", "30", "--latency-sigma", "0")
    sdk = make_sdk(box.base_url, timeout_s=0.3)
    with pytest.raises(openai.APITimeoutError):
        sdk.chat.completions.create(**body_of(**stored_as("attempt-1")))
    process.kill()
    process.wait()
    _, again = start("--data", tmp_path)
    assert again.truth()["creates_by_attempt_id"] == {"attempt-1": 1}
    assert again.truth()["generations"] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_quietly(start: Start, number: signal.Signals) -> None:
    process, _ = start()
    process.send_signal(number)
    assert process.wait(timeout=20) == 0


def test_options_reach_the_settings(tmp_path: Path, start: Start, make_sdk: MakeSdk) -> None:
    plan = tmp_path / "faults.json"
    plan.write_text(json.dumps({"rules": [{"fault": {"kind": "no_choices"}}]}))
    options = ("--seed", 7, "--models", "acme-1", "acme-2", "--context-tokens", 9000)
    _, box = start(*options, "--faults", plan, "--idle-exit-s", 60)
    settings = box.health()["settings"]
    assert (settings["seed"], settings["models"]) == (7, ["acme-1", "acme-2"])
    assert (settings["context_tokens"], settings["idle_exit_s"]) == (9000, 60)
    assert create(make_sdk(box.base_url), model="acme-1").choices == []


def test_it_ends_by_itself_when_nobody_asks(tmp_path: Path, start: Start) -> None:
    process, _ = start("--data", tmp_path, "--idle-exit-s", "0.2")
    assert process.wait(timeout=20) == 0


def test_a_running_generation_is_not_idleness(start: Start, make_sdk: MakeSdk) -> None:
    options = ("--idle-exit-s", "0.2", "--latency-median-s", "1.2", "--latency-sigma", "0")
    process, box = start(*options)
    create(make_sdk(box.base_url))
    assert process.wait(timeout=20) == 0


def test_it_ends_when_its_folder_is_removed_or_made_anew(tmp_path: Path, start: Start) -> None:
    first, _ = start("--data", tmp_path / "data")
    shutil.rmtree(tmp_path / "data")
    second, box = start("--data", tmp_path / "data")
    assert first.wait(timeout=20) == 0
    assert box.health()["pid"] == second.pid
    shutil.rmtree(tmp_path / "data")
    assert second.wait(timeout=20) == 0


def test_two_of_them_never_write_one_journal(tmp_path: Path, start: Start) -> None:
    _, box = start("--data", tmp_path)
    assert "another sandbox provider works on this folder" in refused("--data", tmp_path)
    assert box.health()["status"] == "ok"


def test_a_taken_port_of_last_time_is_given_up_and_an_asked_one_is_not(
    tmp_path: Path, start: Start
) -> None:
    process, box = start("--data", tmp_path)
    process.terminate()
    process.wait()
    with listen(box.port):
        _, elsewhere = start("--data", tmp_path)
        assert elsewhere.port != box.port
        assert "in use" in refused("--port", box.port)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--latency-median-s", "-1"), "latency_median_s"),
        (("--seed", "x"), "seed"),
        (("--faults", "/nowhere/plan.json"), "/nowhere/plan.json"),
        (("--data", "/dev/null/x"), "/dev/null"),
    ],
)
def test_a_wrong_value_is_told(
    options: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options) == 1
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("options", [("--port", "x"), ("--speed", "1"), ("x",)])
def test_an_unknown_option_is_told(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2
    assert options[0] in capsys.readouterr().err


def test_the_help_names_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for option in ("--latency-median-s", "--seed", "--idle-exit-s", "--models", "--detach"):
        assert option in text


def test_a_detached_one_outlives_the_process_that_started_it(tmp_path: Path) -> None:
    command = [*COMMAND, "--data", str(tmp_path), "--detach"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    wait_until((tmp_path / RECORD_FILE).exists)
    record = read_record(tmp_path)
    assert record is not None
    box = SandboxClient(record.port)
    assert box.health()["pid"] == record.pid
    assert os.getsid(record.pid) != os.getsid(0)
    box.stop(record.token)

    def gone() -> bool:
        try:
            box.health()
        except CallFailed:
            return True
        return False

    wait_until(gone)
