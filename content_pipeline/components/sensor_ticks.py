"""One tick of a sensor: what it came to, and how long it may take.

What belongs here: what all sensors of a site have in common. Each has a plain ``run_once``, which
looks at the ledger and answers with a ``Tick``; its sensor opens the ledger and tells Dagster.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import dagster as dg
from sqlalchemy import Connection

from content_pipeline.ledger.database import Ledger, limit_statements

STATEMENT_LIMIT_S = 10.0
"""A statement that takes longer is ended, and the tick with it: Dagster gives a tick 60 s, and the
daemon's other sensors wait for it meanwhile. Each takes milliseconds unless something is wrong."""

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What one tick of a sensor came to."""

    said: str = ""
    """Why no run is asked for, for people."""
    asks_for_run: bool = False

    def answer(self) -> dg.RunRequest | dg.SkipReason:
        """The same for Dagster."""
        return dg.RunRequest() if self.asks_for_run else dg.SkipReason(self.said)


A_RUN_IS_AT_IT = Tick(said="A run is at it.")


def is_at_work(
    instance: dg.DagsterInstance,
    *,
    job_name: str | None = None,
    tags: dict[str, str | list[str]] | None = None,
) -> bool:
    """Whether a run of the job, or with the tags, is not finished."""
    runs = dg.RunsFilter(job_name=job_name, tags=tags, statuses=UNFINISHED)
    return instance.get_runs_count(runs) > 0


_Cursor = TypeVar("_Cursor")


def kept_cursor(kind: type[_Cursor], stored: str | None) -> _Cursor:
    """What Dagster kept of the last tick; from the start when it kept nothing, or another's.

    ``kind``: a dataclass of plain values that all have defaults.
    """
    try:
        return kind(**json.loads(stored or "{}"))
    except (TypeError, ValueError):
        return kind()


def stored_cursor(cursor: Any) -> str:
    """``cursor``, a dataclass of plain values, for Dagster to keep."""
    return json.dumps(asdict(cursor))


@contextmanager
def asking(ledger: Ledger) -> Iterator[Connection]:
    """A transaction whose statements are ended when one takes too long (OperationalError)."""
    with ledger.begin() as connection:
        limit_statements(connection, STATEMENT_LIMIT_S)
        yield connection
