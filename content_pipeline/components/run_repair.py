"""Runs whose worker is dead though Dagster shows them at work: given up, and what they left.

What belongs here: judging runs by their sign of life in the ledger. Dagster itself misses a dead
worker only while the code server lives that started it; after a vanished code server or a database
outage it would show such a run as started until its time limit, and hold back what is queued.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from content_pipeline.core.site import LaneSettings
from content_pipeline.ledger import run_signs
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.run_signs import RunSign

LEAST_SILENCE_S = 30.0
"""Six signs of life. A machine that swaps or a database that fails over may miss some."""


def silence_s(lane: LaneSettings) -> float:
    """How long a worker must be silent to be suspected: by then its pages have passed to others."""
    return max(LEAST_SILENCE_S, 2 * lane.lease_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsAtWork:
    """How the runs stand that did not end in order so far."""

    alive: frozenset[str]
    """The workers of those that work; they tell of their pages themselves."""
    ended: Sequence[RunSign]
    """Those that are over for Dagster and left untold what they did last."""
    given_up: Sequence[str]
    """Run ids of those that were reported to Dagster just now."""


def judge_runs(
    instance: dg.DagsterInstance, ledger: Ledger, site: str, lane: LaneSettings
) -> RunsAtWork:
    """Give up the site's runs without a living worker.

    A run is given up in the ledger before Dagster hears of it, and a worker hears of that at its
    next sign of life, so none works on that was reported to have failed.
    """
    with ledger.begin() as connection:
        run_signs.give_up_silent(connection, site, silence_s=silence_s(lane))
        signs = run_signs.of_site(connection, site)
    alive, ended, given_up = set(), [], []
    for sign in signs:
        run = instance.get_run_by_id(sign.run_id)
        if run is None or run.is_finished:
            with ledger.begin() as connection:
                run_signs.is_over(connection, sign.run_id)
            ended.append(sign)
        elif sign.given_up_at is None:
            alive.add(sign.worker)
        else:
            _report(instance, run, sign, lane)
            given_up.append(sign.run_id)
            ended.append(sign)
    return RunsAtWork(alive=frozenset(alive), ended=ended, given_up=given_up)


def _report(
    instance: dg.DagsterInstance, run: dg.DagsterRun, sign: RunSign, lane: LaneSettings
) -> None:
    """End the run as what it was: cancelled when somebody had asked for that, else failed."""
    message = (
        f"Nothing was heard of this run's worker ({sign.worker}) since "
        f"{sign.seen_at:%Y-%m-%d %H:%M:%S} UTC: its process, code server or machine is gone. Its "
        f"pages were free again {lane.lease_s:g} s later and go on with the next run; what was "
        "paid for is not paid again."
    )
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, message)
    else:
        instance.report_run_failed(run, message)
