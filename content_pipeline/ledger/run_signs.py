"""Signs of life: which of Dagster's runs still have a worker.

What belongs here: the row that a run's worker renews while it lives, and giving up a run whose
worker is silent. Both happen on one row, so either the worker is heard first or the run is given up
first, and a worker that was given up hears of it at its next sign. Time is the database's alone.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select, text

from content_pipeline.ledger.schema import SCHEMA, run_signs

CONFIRMED_AFTER_S = 12.0
"""A run is given up by a second look only, so long after the first: two signs of a live worker.
One look alone cannot tell a dead worker from a database that has just come back."""

LOOKS_BELONG_TOGETHER_S = 180.0
"""An earlier look than this says nothing about now: nobody looked in between."""

KEPT_S = 7 * 86_400.0
"""A worker that was cut off from the database for days still finds that it was given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSign:
    """One run that did not end in order so far."""

    run_id: str
    worker: str
    began_at: datetime
    seen_at: datetime
    """Its worker's last sign of life."""
    given_up_at: datetime | None


_SHOW = text(
    f"""
    INSERT INTO {SCHEMA}.run_signs AS s (run_id, site, worker) VALUES (:run_id, :site, :worker)
    ON CONFLICT (run_id) DO UPDATE
    SET worker = excluded.worker, seen_at = clock_timestamp(), suspected_at = NULL
    RETURNING s.given_up_at IS NOT NULL AS is_given_up
    """  # noqa: S608 - only our own constants are put in
)


def show(connection: Connection, *, run_id: str, site: str, worker: str) -> bool:
    """Tell that the worker of a run lives; False when the run was given up."""
    row = connection.execute(_SHOW, {"run_id": run_id, "site": site, "worker": worker}).one()
    return not row.is_given_up


_FORGET = delete(run_signs).where(
    run_signs.c.run_id == bindparam("ended"), run_signs.c.given_up_at.is_(None)
)


def forget(connection: Connection, run_id: str) -> None:
    """The run ends in order: it told all of its pages itself."""
    connection.execute(_FORGET, {"ended": run_id})


_OVER = text(
    f"""
    UPDATE {SCHEMA}.run_signs SET given_up_at = clock_timestamp()
    WHERE run_id = :run_id AND given_up_at IS NULL
    """  # noqa: S608 - only our own constants are put in
)


def is_over(connection: Connection, run_id: str) -> None:
    """The run has ended without order: should its worker live all the same, it is to stop."""
    connection.execute(_OVER, {"run_id": run_id})


_TOLD = text(
    f"""
    UPDATE {SCHEMA}.run_signs SET told_at = clock_timestamp()
    WHERE run_id = :run_id AND given_up_at IS NOT NULL AND told_at IS NULL
    """  # noqa: S608 - only our own constants are put in
)

_SWEEP = text(
    f"""
    DELETE FROM {SCHEMA}.run_signs
    WHERE greatest(told_at, seen_at) < clock_timestamp() - make_interval(secs => :kept_s)
      AND told_at IS NOT NULL
    """  # noqa: S608 - only our own constants are put in
)


def told(connection: Connection, run_id: str) -> None:
    """Nothing of a run that is over is left to be told; its row stays as a word to its worker."""
    connection.execute(_TOLD, {"run_id": run_id})
    connection.execute(_SWEEP, {"kept_s": KEPT_S})


def of_site(connection: Connection, site: str) -> list[RunSign]:
    """The runs of ``site`` of which something may be left to be told, oldest first."""
    rows = connection.execute(
        select(run_signs)
        .where(run_signs.c.site == site, run_signs.c.told_at.is_(None))
        .order_by(run_signs.c.began_at)
    )
    return [
        RunSign(
            run_id=row.run_id,
            worker=row.worker,
            began_at=row.began_at,
            seen_at=row.seen_at,
            given_up_at=row.given_up_at,
        )
        for row in rows
    ]


_GIVE_UP = text(
    f"""
    UPDATE {SCHEMA}.run_signs SET given_up_at = clock_timestamp()
    WHERE site = :site AND given_up_at IS NULL
      AND seen_at < clock_timestamp() - make_interval(secs => :silence_s)
      AND pg_postmaster_start_time() < clock_timestamp() - make_interval(secs => :silence_s)
      AND suspected_at < clock_timestamp() - make_interval(secs => :confirmed_after_s)
      AND suspected_at > clock_timestamp() - make_interval(secs => :together_s)
    """  # noqa: S608 - only our own constants are put in
)

_SUSPECT = text(
    f"""
    UPDATE {SCHEMA}.run_signs SET suspected_at = clock_timestamp()
    WHERE site = :site AND given_up_at IS NULL
      AND seen_at < clock_timestamp() - make_interval(secs => :silence_s)
      AND (suspected_at IS NULL
           OR suspected_at <= clock_timestamp() - make_interval(secs => :together_s))
    """  # noqa: S608 - only our own constants are put in
)


def give_up_silent(connection: Connection, site: str, *, silence_s: float) -> None:
    """Look for silent workers once: give up those that an earlier look suspected already.

    A database that was down for a while heard nobody, so what is counted is only the silence since
    its start.
    """
    values = {
        "site": site,
        "silence_s": silence_s,
        "confirmed_after_s": CONFIRMED_AFTER_S,
        "together_s": LOOKS_BELONG_TOGETHER_S,
    }
    connection.execute(_GIVE_UP, values)
    connection.execute(_SUSPECT, values)
