"""Records of the other side, made by hand: a good run of three pages, and changes to it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from content_pipeline.chaos.site_truth import (
    CMSRecords,
    FolderRecords,
    LivePage,
    Wanted,
    Write,
)
from content_pipeline.chaos.truth import Billed, Claimed, Evidence
from content_pipeline.chaos.waits import Received

START = datetime(2026, 1, 1, tzinfo=UTC)
USD = Decimal("0.002")
PATHS = ("/a/", "/b/", "/c/")


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def received(seconds: float, job: str, number: int = 1, **changes: Any) -> Received:
    made = Received(
        at=at(seconds),
        operation="create",
        attempt_id=f"{job}-{number}",
        page=job,
        fault=None,
        wait_s=None,
    )
    return replace(made, **changes)


def throttled(seconds: float, job: str, wait_s: float, number: int = 1) -> Received:
    return received(seconds, job, number, fault="status", wait_s=wait_s)


def billed(seconds: float, job: str, number: int = 1, **changes: Any) -> Billed:
    made = Billed(
        at=at(seconds), attempt_id=f"{job}-{number}", page_job_id=job, fault=None, usd=USD
    )
    return replace(made, **changes)


def claimed(settled: int = 3, **changes: Any) -> Claimed:
    """``settled``: so many calls of the usual price."""
    made = Claimed(
        settled_usd=settled * USD,
        reserved_usd=Decimal(0),
        uncertain_usd=Decimal(0),
        uncertain_attempts=frozenset(),
    )
    return replace(made, **changes)


WANTED = Wanted(live=frozenset(PATHS))


def live(revision: int = 1, *paths: str) -> list[LivePage]:
    """A live page at each of ``paths``; at all of them unless some are named."""
    return [
        LivePage(path=path, page_id=f"page-{path}", revision=revision) for path in paths or PATHS
    ]


def folder(**changes: Any) -> FolderRecords:
    """Pages a, b and c, each written once and listed."""
    writes = [Write(path=path, revision=1) for path in PATHS]
    return replace(FolderRecords(live=live(), writes=writes, sitemap=PATHS), **changes)


def cms(**changes: Any) -> CMSRecords:
    """Pages a, b and c, each created and published once."""
    made = CMSRecords(
        live=live(),
        pages_by_key={f"page-{path}": 1 for path in PATHS},
        public_doubles=0,
        stale_overwrites=0,
        edits_overwritten=0,
        received=[
            received(number + late, f"page-{path}", operation=operation)
            for number, path in enumerate(PATHS)
            for operation, late in (("list", 0.0), ("create", 0.1), ("update", 0.2), ("read", 0.3))
        ],
    )
    return replace(made, **{"changed_at": at(2.2), "deployed_at": [at(1), at(4)], **changes})


def good(**changes: Any) -> Evidence:
    """Pages a, b and c: each asked for, paid and written once. Page job p is refused by policy."""
    made = Evidence(
        wanted=WANTED,
        poison_jobs=frozenset({"p"}),
        received=[received(0, "a"), received(1, "b"), received(2, "c"), received(3, "p")],
        billed=[billed(0, "a"), billed(1, "b"), billed(2, "c")],
        site=folder(),
        claimed=claimed(),
    )
    return replace(made, **changes)
