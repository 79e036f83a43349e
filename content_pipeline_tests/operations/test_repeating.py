"""What goes on beside the work: as often as asked, past errors that pass, and no longer."""

import logging
import threading

import pytest
from sqlalchemy.exc import OperationalError

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.operations.repeating import repeated

OFTEN_S = 0.001
LONG_S = 30.0
"""Until a test gives up waiting for what happens within milliseconds."""


class Acts:
    """Counts its calls; each raises the next of ``errors`` while there are any."""

    def __init__(self, *errors: Exception) -> None:
        self.count = 0
        self.enough = threading.Event()
        self._errors = list(errors)

    def __call__(self) -> None:
        self.count += 1
        if self._errors:
            raise self._errors.pop(0)
        self.enough.set()


def test_it_is_done_beside_the_work_and_not_after_it() -> None:
    act = Acts()
    with repeated(act, every_s=OFTEN_S, name="beat"):
        assert act.enough.wait(LONG_S)
    done = act.count
    assert not [thread for thread in threading.enumerate() if thread.name == "beat"]
    assert act.count == done


def test_it_is_not_done_at_the_begin_and_a_long_interval_delays_no_end() -> None:
    act = Acts()
    with repeated(act, every_s=3_600, name="beat"):
        pass
    assert act.count == 0


@pytest.mark.parametrize(
    "error",
    [OperationalError("SELECT 1", {}, Exception("gone")), DatabaseUnavailable("gone")],
    ids=["statement", "connection"],
)
def test_a_database_that_is_away_ends_nothing_and_is_told_of(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    act = Acts(error)
    with (
        caplog.at_level(logging.WARNING),
        repeated(act, every_s=OFTEN_S, name="beat"),
    ):
        assert act.enough.wait(LONG_S)
    assert act.count >= 2
    assert caplog.messages == [f"beat: not done this time: {type(error).__name__}"]


def test_the_caller_says_which_errors_pass() -> None:
    act = Acts(KeyError("a"))
    with repeated(act, every_s=OFTEN_S, name="beat", passing=(KeyError,)):
        assert act.enough.wait(LONG_S)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_any_other_error_is_a_fault_and_ends_it() -> None:
    act = Acts(KeyError("a"))
    with repeated(act, every_s=OFTEN_S, name="beat"):
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "beat"]
        thread.join(LONG_S)
        assert not thread.is_alive()
    assert act.count == 1


def test_the_works_own_error_leaves_and_ends_it() -> None:
    act = Acts()
    with (
        pytest.raises(ZeroDivisionError),
        repeated(act, every_s=OFTEN_S, name="beat"),
    ):
        raise ZeroDivisionError
    assert not [thread for thread in threading.enumerate() if thread.name == "beat"]
