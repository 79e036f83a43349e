import threading
from pathlib import Path

import pytest

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.sandbox.instance import (
    RECORD_FILE,
    InstanceRecord,
    locked,
    read_record,
    write_record,
)

RECORD = InstanceRecord(base_url="http://127.0.0.1:5/v1", port=5, pid=6, token="t")


def test_a_record_comes_back_as_written(tmp_path: Path) -> None:
    write_record(tmp_path, RECORD)
    assert read_record(tmp_path) == RECORD
    assert [path.name for path in tmp_path.iterdir()] == [RECORD_FILE]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"port": "x"}', "\xff"])
def test_an_unreadable_record_counts_as_none(tmp_path: Path, text: str) -> None:
    assert read_record(tmp_path) is None
    (tmp_path / RECORD_FILE).write_text(text)
    assert read_record(tmp_path) is None


def test_a_held_lock_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with (
        locked(path, 0, "first"),
        pytest.raises(ConfigurationError, match=r"still locked .* the reason"),
        locked(path, 0.05, "the reason"),
    ):
        pass


def test_a_lock_is_free_again_after_its_block_even_when_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with pytest.raises(KeyError), locked(path, 0, "x"):
        raise KeyError
    with locked(path, 0, "x"):
        pass


def test_who_waits_gets_the_lock_as_soon_as_it_is_free(tmp_path: Path) -> None:
    path, order, held = tmp_path / "x.lock", [], threading.Event()

    def second() -> None:
        held.wait()
        with locked(path, 10, "x"):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with locked(path, 0, "x"):
        held.set()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
