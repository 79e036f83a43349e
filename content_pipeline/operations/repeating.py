"""What goes on beside the work of a process, again and again until that work is over.

What belongs here: the thread, and what becomes of its errors. What is repeated (leases that are
renewed, a run's sign of life, events that are written) is the caller's.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from content_pipeline.core.errors import DatabaseUnavailable

log = logging.getLogger(__name__)

PASSING: tuple[type[Exception], ...] = (SQLAlchemyError, DatabaseUnavailable)
"""A database that restarts is there again at one of the next times."""


@contextmanager
def repeated(
    act: Callable[[], None],
    *,
    every_s: float,
    name: str,
    passing: tuple[type[Exception], ...] = PASSING,
) -> Iterator[None]:
    """Call ``act`` each ``every_s`` seconds, the first time after so long, until the block ends.

    After an error of ``passing`` it is called again at the next time; ``name`` says in the log what
    was not done. Any other error ends the repetition.
    """
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(every_s):
            try:
                act()
            except passing as error:
                log.warning("%s: not done this time: %s", name, type(error).__name__)

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
