"""Evidence: the records of the other side, read when the work is over.

What belongs here: waiting for the end, the provider's records, and the ledger's claims about money.
What the records mean is ``truth``'s.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from content_pipeline.adapters.llm.prices import GenaiPrices
from content_pipeline.adapters.llm.profiles import provider_profile
from content_pipeline.bootstrap import SANDBOX, utc_now
from content_pipeline.chaos.project import SITE, Arena
from content_pipeline.chaos.site_records import site_records
from content_pipeline.chaos.site_truth import Wanted
from content_pipeline.chaos.truth import Billed, Claimed, Evidence
from content_pipeline.chaos.waits import Received
from content_pipeline.core.money import Usage
from content_pipeline.core.ports import PriceList
from content_pipeline.ledger import overview, reports, spend

QUIET_S = 10.0
"""The longest that the provider may still be at a generation which nobody waits for any more."""

POLL_S = 0.05


def gather(
    arena: Arena, wanted: Wanted, *, poison: frozenset[str], kills: Sequence[datetime]
) -> Evidence:
    """Everything that the verdict needs; ``poison``: names of topics that policy refuses."""
    _wait_until_quiet(arena)
    prices = GenaiPrices(provider=provider_profile(SANDBOX).price_provider, now=utc_now)
    generations = arena.sandbox.truth()["generations"]
    return Evidence(
        wanted=wanted,
        poison_jobs=_jobs_of(arena, poison),
        received=[_received(each) for each in arena.sandbox.requests()],
        billed=[billed_of(each, prices) for each in generations],
        site=site_records(arena),
        claimed=_claimed(arena),
        kills=kills,
    )


def _wait_until_quiet(arena: Arena) -> None:
    """Until nobody is at anything any more, late writes included."""
    time.sleep(arena.late_s)
    deadline = time.monotonic() + QUIET_S
    while arena.sandbox.health()["in_flight"] and time.monotonic() < deadline:
        time.sleep(POLL_S)


def _jobs_of(arena: Arena, names: frozenset[str]) -> frozenset[str]:
    with arena.ledger.begin() as connection:
        found = reports.page_reports(connection, SITE)
    return frozenset(page.page_job_id for page in found if page.name in names)


def _claimed(arena: Arena) -> Claimed:
    with arena.ledger.begin() as connection:
        totals = spend.totals(connection, SITE)
        uncertain = overview.uncertain_calls(connection, SITE)
    return Claimed(
        settled_usd=totals.settled_usd,
        reserved_usd=totals.reserved_usd,
        uncertain_usd=totals.uncertain_usd,
        uncertain_attempts=frozenset(row["attempt_id"] for row in uncertain),
    )


def _received(line: Mapping[str, Any]) -> Received:
    return Received(
        at=datetime.fromisoformat(line["at"]),
        operation=line["operation"],
        attempt_id=line["attempt_id"],
        page=line["page_job_id"],
        fault=line["fault"],
        wait_s=line["wait_s"],
    )


def billed_of(generation: Mapping[str, Any], prices: PriceList) -> Billed:
    """A generation of the provider's journal at list price."""
    usage = Usage(
        input_tokens=generation["prompt_tokens"],
        output_tokens=generation["completion_tokens"],
        cached_tokens=generation["cached_tokens"],
    )
    return Billed(
        at=datetime.fromisoformat(generation["at"]),
        attempt_id=generation["attempt_id"] or "",
        page_job_id=generation["page_job_id"] or "",
        fault=generation["fault"],
        usd=prices.cost(generation["model"], usage),
    )
