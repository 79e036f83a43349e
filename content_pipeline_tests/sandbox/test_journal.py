import json
import resource
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.sandbox.journal import JOURNAL_FILE, Generation, Journal, Stored, now


def note(
    journal: Journal, number: int, *, stored: bool = True, model: str = "gpt-x", **metadata: str
) -> Generation:
    """Note one request and its generation."""
    attempt_id, page_job_id = f"attempt-{number}", f"job-{number % 2}"
    journal.note_request("create", attempt_id=attempt_id, page_job_id=page_job_id)
    generation = Generation(
        id=f"chatcmpl-{number}",
        at=now(),
        attempt_id=attempt_id,
        page_job_id=page_job_id,
        model=model,
        prompt_tokens=10,
        completion_tokens=number,
        cached_tokens=0,
        reasoning_tokens=0,
        latency_s=0.5,
        finish_reason="stop",
        fault=None,
        stored=stored,
        metadata={"attempt_id": attempt_id, **metadata},
    )
    completion = {"id": generation.id, "text": f"Ünïcode\u2028 {number}"}
    messages = [{"role": "user", "content": "hello"}]
    journal.note_generation(generation, Stored(completion=completion, messages=messages))
    return generation


@pytest.fixture(params=["memory", "folder"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = Journal.in_memory() if request.param == "memory" else Journal.in_folder(tmp_path)
    yield made
    made.close()


def test_truth_counts_requests_and_billed_generations(journal: Journal) -> None:
    first, second = note(journal, 1), note(journal, 2)
    journal.note_request("create", attempt_id="attempt-1", fault="drop_before")
    journal.note_request("list")
    truth = journal.truth()
    assert truth["requests"] == 4
    assert truth["requests_by_operation"] == {"create": 3, "list": 1}
    assert truth["creates_by_attempt_id"] == {"attempt-1": 2, "attempt-2": 1}
    assert truth["faults"] == {"drop_before": 1}
    assert [generation["id"] for generation in truth["generations"]] == [first.id, second.id]
    assert truth["generations_by_attempt_id"] == {"attempt-1": 1, "attempt-2": 1}
    assert truth["generations_by_page_job_id"] == {"job-1": 1, "job-0": 1}
    assert (truth["prompt_tokens"], truth["completion_tokens"]) == (20, 3)
    assert journal.counts() == {"requests": 4, "generations": 2}


def test_a_stored_completion_is_found_by_all_of_the_asked_metadata(journal: Journal) -> None:
    one = note(journal, 1, site="a")
    two = note(journal, 2, site="a", model="gpt-y")
    assert journal.find({}, None) == [one, two]
    assert journal.find({"site": "a"}, None) == [one, two]
    assert journal.find({"site": "a", "attempt_id": "attempt-2"}, None) == [two]
    assert journal.find({"site": "a"}, "gpt-y") == [two]
    assert journal.find({"site": "b"}, None) == []
    assert journal.find({"attempt_id": "attempt-1", "site": "b"}, None) == []


def test_the_text_of_a_stored_completion_comes_back_whole(journal: Journal) -> None:
    for number in range(5):
        note(journal, number)
    stored = journal.stored("chatcmpl-3")
    assert stored is not None
    assert stored.completion == {"id": "chatcmpl-3", "text": "Ünïcode\u2028 3"}
    assert stored.messages == [{"role": "user", "content": "hello"}]


def test_what_was_not_to_be_stored_is_billed_but_not_found(journal: Journal) -> None:
    note(journal, 1, stored=False)
    assert journal.stored("chatcmpl-1") is None
    assert journal.find({}, None) == []
    assert len(journal.truth()["generations"]) == 1


def test_a_deleted_completion_stays_billed(journal: Journal) -> None:
    note(journal, 1)
    journal.forget("chatcmpl-1")
    assert journal.stored("chatcmpl-1") is None
    assert journal.find({"attempt_id": "attempt-1"}, None) == []
    assert len(journal.truth()["generations"]) == 1


def test_a_reset_journal_remembers_nothing_and_goes_on(journal: Journal) -> None:
    note(journal, 1)
    journal.reset()
    assert journal.truth()["requests"] == 0
    assert journal.stored("chatcmpl-1") is None
    note(journal, 2)
    stored = journal.stored("chatcmpl-2")
    assert stored is not None
    assert stored.completion["id"] == "chatcmpl-2"


def test_another_process_reads_the_same_truth_without_a_close(tmp_path: Path) -> None:
    writing = Journal.in_folder(tmp_path)
    for number in range(4):
        note(writing, number)
    writing.note_request("list", fault="html")
    writing.forget("chatcmpl-2")
    reading = Journal.in_folder(tmp_path)
    assert reading.truth() == writing.truth()
    assert [g.id for g in reading.find({}, None)] == ["chatcmpl-0", "chatcmpl-1", "chatcmpl-3"]
    assert reading.stored("chatcmpl-3") == writing.stored("chatcmpl-3")
    writing.close()
    reading.close()


@pytest.mark.parametrize("kept_bytes", [1, 20, -2, -1])
def test_a_torn_last_line_is_dropped_and_never_continued(tmp_path: Path, kept_bytes: int) -> None:
    path = tmp_path / JOURNAL_FILE
    first = Journal.in_folder(tmp_path)
    note(first, 1)
    whole = path.read_bytes()
    note(first, 2)
    first.close()
    torn = path.read_bytes().splitlines(keepends=True)[-1][:kept_bytes]
    path.write_bytes(whole + torn)

    second = Journal.in_folder(tmp_path)
    assert len(second.truth()["generations"]) == 1
    assert path.read_bytes() == whole
    second.note_request("list")
    second.close()

    third = Journal.in_folder(tmp_path)
    assert third.truth()["requests_by_operation"] == {"create": 1, "list": 1}
    note(third, 3)
    assert third.stored("chatcmpl-3") is not None
    third.close()


@pytest.mark.parametrize("line", [b"{}\n", b"[]\n", b"nonsense\n", b'{"record":"generation"}\n'])
def test_a_damaged_line_before_the_last_is_not_passed_over(tmp_path: Path, line: bytes) -> None:
    journal = Journal.in_folder(tmp_path)
    note(journal, 1)
    journal.close()
    path = tmp_path / JOURNAL_FILE
    path.write_bytes(path.read_bytes() + line + path.read_bytes())
    with pytest.raises(ConfigurationError, match=rf"{JOURNAL_FILE}, line 3: .* move the file"):
        Journal.in_folder(tmp_path)


def test_a_line_that_fits_only_in_part_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL_FILE
    journal = Journal.in_folder(tmp_path)
    note(journal, 1)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The kernel then does what a full disk does: it writes what fits.
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 30, limits[1]))
    try:
        with pytest.raises(OSError, match=JOURNAL_FILE):
            journal.note_request("create", attempt_id="attempt-2")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert journal.truth()["requests"] == 1
    note(journal, 3)
    journal.close()
    again = Journal.in_folder(tmp_path)
    assert again.truth()["requests"] == 2
    again.close()


def test_every_line_is_one_json_document(tmp_path: Path) -> None:
    journal = Journal.in_folder(tmp_path)
    note(journal, 1, site="line\nbreak\u2028")
    journal.close()
    lines = (tmp_path / JOURNAL_FILE).read_bytes().split(b"\n")
    assert [json.loads(line)["record"] for line in lines[:-1]] == ["request", "generation"]
    assert lines[-1] == b""


def test_prompts_on_disk_are_for_the_owner_only(tmp_path: Path) -> None:
    Journal.in_folder(tmp_path).close()
    assert (tmp_path / JOURNAL_FILE).stat().st_mode & 0o077 == 0


def test_requests_are_told_one_by_one_with_the_wait_that_was_announced(journal: Journal) -> None:
    journal.note_request("create", attempt_id="a-1", page_job_id="a", fault="status", wait_s=1.5)
    note(journal, 2)
    journal.note_request("list")
    told = journal.received()
    assert [each["operation"] for each in told] == ["create", "create", "list"]
    assert [each["wait_s"] for each in told] == [1.5, None, None]
    assert (told[0]["attempt_id"], told[0]["page_job_id"], told[0]["fault"]) == (
        "a-1",
        "a",
        "status",
    )
    assert told[0]["at"] <= told[1]["at"] <= told[2]["at"]
    journal.note_request("models")
    assert [each["operation"] for each in journal.received()][3:] == ["models"]
    journal.reset()
    assert journal.received() == []


def test_requests_of_an_older_journal_announced_no_wait(tmp_path: Path) -> None:
    line = {"record": "request", "at": now(), "operation": "list", "attempt_id": None}
    line |= {"page_job_id": None, "fault": None}
    (tmp_path / JOURNAL_FILE).write_text(json.dumps(line) + "\n")
    journal = Journal.in_folder(tmp_path)
    assert [each["wait_s"] for each in journal.received()] == [None]
    journal.close()
