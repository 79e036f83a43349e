"""Announced waits: who was told to wait until when, and who called before it was over.

What belongs here: pure arithmetic on the requests that a service received, provider or CMS.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from content_pipeline.sandbox.cms.faults import FaultKind

ON_THE_WAY_S = 1.0
"""After an announcement other calls of the account may still arrive that were decided on before
anybody could know of it: 0.6 s was seen of a worker that had just started on a busy machine."""

UNHEARD_S = 1.0
"""An answer given this shortly before the workers were killed may have been heard by nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as the service saw it arrive."""

    at: datetime
    operation: str
    attempt_id: str | None
    page: str | None
    """What it was about: a page job for the provider, the key of a page for the CMS."""
    fault: str | None
    wait_s: float | None
    """The wait that its answer announced, for the page and for the whole account."""


def early_for_page(received: Iterable[Received]) -> int:
    """Calls about a page that came before the wait which an answer announced was over."""
    until: dict[str, datetime] = {}
    early = 0
    for each in sorted(received, key=lambda request: request.at):
        if each.page is None:
            continue
        early += each.at < until.get(each.page, each.at)
        if each.wait_s:
            end = each.at + timedelta(seconds=each.wait_s)
            until[each.page] = max(end, until.get(each.page, end))
    return early


def early_for_account(received: Sequence[Received], kills: Sequence[datetime]) -> int:
    """Requests of any kind while the account had been told to wait, and could know it."""
    waits = announced_waits(received, kills)
    return sum(any(start < each.at < end for start, end in waits) for each in received)


def announced_waits(
    received: Iterable[Received], kills: Sequence[datetime]
) -> list[tuple[datetime, datetime]]:
    """When nobody may call: from when everybody can know of a wait, to its end."""
    return [
        (each.at + timedelta(seconds=ON_THE_WAY_S), each.at + timedelta(seconds=each.wait_s))
        for each in received
        if each.wait_s and not _unheard(each.at, kills)
    ]


def _unheard(at: datetime, kills: Iterable[datetime]) -> bool:
    return any(timedelta(0) <= kill - at <= timedelta(seconds=UNHEARD_S) for kill in kills)


def bound_s(received: Iterable[Received], latencies_s: Mapping[str, float], at_once: int) -> float:
    """Seconds that no client could do without: all latency side by side, and the waits."""
    return sum(latencies_s.values()) / at_once + paused_s(received)


def paused_s(received: Iterable[Received]) -> float:
    """Seconds in which some announced wait was running."""
    waits = sorted(
        (each.at, each.at + timedelta(seconds=each.wait_s)) for each in received if each.wait_s
    )
    paused = timedelta(0)
    reached: datetime | None = None
    for start, end in waits:
        begin = start if reached is None else max(start, reached)
        paused += max(timedelta(0), end - begin)
        reached = end if reached is None else max(reached, end)
    return paused.total_seconds()


def settling_s(received: Iterable[Received], late_s: float) -> float:
    """Seconds until the unluckiest page's late writes have taken effect, one after the other.

    Before that no client can know what became of one, so none can go on with its page.
    """
    late = Counter(each.page for each in received if each.fault == FaultKind.LATE)
    return late_s * max(late.values(), default=0)
