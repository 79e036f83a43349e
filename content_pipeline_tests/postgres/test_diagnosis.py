"""The error a person reads when the server does not come up."""

import os
from pathlib import Path

import pytest

from content_pipeline.postgres.diagnosis import cannot_start, log_tail
from content_pipeline.postgres.store import Store

HANDED_OVER = "LOG:  redirecting log output to logging collector process\n"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "log").mkdir()
    return Store(home=tmp_path, outside_project=False)


def test_a_start_that_ended_early_is_told_by_the_launcher_alone(store: Store) -> None:
    (store.log / "postgres-Mon.log").write_text("an older start\n")
    store.start_log.write_text("FATAL:  bad setting\n")

    assert log_tail(store) == "FATAL:  bad setting\n"


def test_a_start_that_opened_its_log_is_told_by_the_newest_one(store: Store) -> None:
    for day, age in (("Mon", 200), ("Tue", 100), ("Sun", 300)):
        log = store.log / f"postgres-{day}.log"
        log.write_text(f"said on {day}\n")
        os.utime(log, (1_000_000 - age, 1_000_000 - age))
    store.start_log.write_text(HANDED_OVER)

    assert log_tail(store) == "said on Tue\n"


def test_without_any_log_there_is_still_an_error(store: Store) -> None:
    assert log_tail(store) == ""
    assert "did not start: it vanished." in str(cannot_start(store, "it vanished"))


def test_only_the_last_lines_are_quoted_even_of_a_huge_log(store: Store) -> None:
    store.start_log.write_text("".join(f"line {number}\n" for number in range(100_000)))

    quoted = [line for line in str(cannot_start(store, "so")).splitlines() if "|" in line]

    assert quoted == [f"  | line {number}" for number in range(99_988, 100_000)]


def test_bytes_that_are_no_text_do_not_hide_the_rest(store: Store) -> None:
    store.start_log.write_bytes(b"FATAL:  \xff No space left on device\n")

    assert "Free disk space" in str(cannot_start(store, "so"))


def test_a_log_that_is_a_link_is_not_read(store: Store, tmp_path: Path) -> None:
    (tmp_path / "shadow").write_text("not for this error")
    store.start_log.symlink_to(tmp_path / "shadow")

    assert "not for this error" not in str(cannot_start(store, "so"))


def test_given_advice_comes_before_what_the_words_suggest(store: Store) -> None:
    error = str(cannot_start(store, "so", said="Permission denied", advice="Do this."))

    assert "Do this. Or set CONTENT_PIPELINE_DATABASE_URL" in error
    assert "| Permission denied" in error
