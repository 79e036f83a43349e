"""Pages in the order of their last change, for a reader that goes on where it stopped.

What belongs here: the position of such a reader and the one query that moves it. A change whose
transaction commits late is never passed over: nothing is read that is as young as the oldest open
transaction of the ledger. Every change carries a time after its transaction's begin, so whatever is
still to be committed comes after what was read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from sqlalchemy import Connection, text

from content_pipeline.ledger.schema import SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Position:
    """How far a reader has come."""

    at: datetime
    page_job_id: str = ""

    def __str__(self) -> str:
        return f"{self.at.isoformat()} {self.page_job_id}"

    @classmethod
    def parse(cls, written: str) -> Self:
        """The position that was written with ``str``. Raises ValueError."""
        at, _, page_job_id = written.partition(" ")
        return cls(at=datetime.fromisoformat(at), page_job_id=page_job_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPage:
    """One page job that moved, and the last to move it."""

    topic_key: str
    position: Position
    mover: str | None
    """The worker of its last move; None for jobs from before moves were logged."""


_HORIZON = text(
    """
    SELECT least(clock_timestamp() - make_interval(secs => :settled_s), min(xact_start))
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND application_name = current_setting('application_name')
    """
)

_CHANGED = text(
    f"""
    SELECT j.page_job_id, j.topic_key, j.updated_at, t.worker
    FROM {SCHEMA}.page_jobs j
    LEFT JOIN {SCHEMA}.transitions t
           ON t.page_job_id = j.page_job_id AND t.sequence = j.sequence
    WHERE j.site = :site AND (j.state = 'queued') IS FALSE
      AND (j.updated_at, j.page_job_id) > (CAST(:at AS timestamptz), CAST(:after AS text))
      AND j.updated_at < CAST(:horizon AS timestamptz)
    ORDER BY j.updated_at, j.page_job_id LIMIT :most
    """  # noqa: S608 - only our own constants are put in
)


def changed_pages(
    connection: Connection, site: str, since: Position, *, settled_s: float, most: int
) -> Sequence[ChangedPage]:
    """Up to ``most`` page jobs of ``site`` that changed after ``since``, in order of the change.

    ``settled_s``: changes younger than this are left for a later look.
    """
    horizon = connection.execute(_HORIZON, {"settled_s": settled_s}).scalar_one()
    rows = connection.execute(
        _CHANGED,
        {
            "site": site,
            "at": since.at,
            "after": since.page_job_id,
            "horizon": horizon,
            "most": most,
        },
    )
    return [
        ChangedPage(
            topic_key=row.topic_key,
            position=Position(at=row.updated_at, page_job_id=row.page_job_id),
            mover=row.worker,
        )
        for row in rows
    ]
