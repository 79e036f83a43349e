"""Evidence: the records of provider and folder, read when the work is over.

What belongs here: reading and parsing, and the ledger's claims about money. What the records mean
is ``truth``'s.
"""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from content_pipeline.adapters.atomic_files import PRIVATE_FOLDER, WRITES_LOG
from content_pipeline.adapters.cms.folder_paths import PAGE_FILE
from content_pipeline.adapters.cms.page_marker import mark_of, parse_marker
from content_pipeline.adapters.llm.prices import GenaiPrices
from content_pipeline.adapters.llm.profiles import provider_profile
from content_pipeline.bootstrap import SANDBOX, utc_now
from content_pipeline.chaos.project import BASE_URL, SITE, Arena, path_of
from content_pipeline.chaos.truth import Billed, Claimed, Evidence, LivePage, Received, Write
from content_pipeline.core.money import Usage
from content_pipeline.core.ports import PriceList
from content_pipeline.ledger import overview, reports, spend

SITEMAP = "sitemap.xml"

QUIET_S = 10.0
"""The longest that the provider may still be at a generation which nobody waits for any more."""

POLL_S = 0.05


def gather(arena: Arena, poison: frozenset[str], kills: Sequence[datetime]) -> Evidence:
    """Everything that the verdict needs; ``poison``: names of topics that policy refuses."""
    _wait_until_quiet(arena)
    prices = GenaiPrices(provider=provider_profile(SANDBOX).price_provider, now=utc_now)
    generations = arena.sandbox.truth()["generations"]
    return Evidence(
        wanted=frozenset(path_of(name) for name in arena.names.values() if name not in poison),
        poison_jobs=_jobs_of(arena, poison),
        received=[_received(each) for each in arena.sandbox.requests()],
        billed=[billed_of(each, prices) for each in generations],
        writes=writes_in(arena.public),
        live=live_pages(arena.public),
        sitemap=listed_in(arena.public),
        claimed=_claimed(arena),
        kills=kills,
    )


def _wait_until_quiet(arena: Arena) -> None:
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
        page_job_id=line["page_job_id"],
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


def writes_in(folder: Path) -> list[Write]:
    """Every write that the folder itself logged, in order."""
    log = folder / PRIVATE_FOLDER / WRITES_LOG
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    fields = (line.split("\t") for line in lines)
    return [Write(path=path, revision=int(revision)) for _, path, revision in fields]


def live_pages(folder: Path) -> list[LivePage]:
    """Every page of ours below ``folder``, by its own mark."""
    found = []
    for file in sorted(folder.glob(f"*/**/{PAGE_FILE}")):
        marker = parse_marker(mark_of(file.read_bytes()))
        if marker is not None:
            path = f"/{file.parent.relative_to(folder).as_posix()}/"
            found.append(LivePage(path=path, page_id=marker.page_id, revision=marker.revision))
    return found


def listed_in(folder: Path) -> list[str]:
    """The paths that the sitemap lists."""
    file = folder / SITEMAP
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return [url.removeprefix(BASE_URL) for url in re.findall(r"<loc>([^<]*)</loc>", text)]
