"""The verdict: what provider and folder recorded, turned into numbers and broken promises.

What belongs here: pure arithmetic on records of the other side. Where they are read is
``evidence``; the ledger enters with nothing but the dollars it claims.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from content_pipeline.sandbox.faults import FaultKind

TOLERANCE = Decimal("1.01")
"""Times what the plan forces may be paid."""

CENT = Decimal("0.01")

ON_THE_WAY_S = 1.0
"""After an announcement other calls of the account may still arrive that were decided on before
anybody could know of it: 0.6 s was seen of a worker that had just started on a busy machine."""

UNHEARD_S = 1.0
"""An answer given this shortly before the workers were killed may have been heard by nobody."""

USELESS = frozenset({FaultKind.LENGTH, FaultKind.BROKEN_JSON, FaultKind.EMPTY_CONTENT})
"""What the model itself spoilt: no look-up makes a page of it, so another one must be paid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as the provider saw it arrive."""

    at: datetime
    operation: str
    attempt_id: str | None
    page_job_id: str | None
    fault: str | None
    wait_s: float | None
    """The wait that its answer announced, for the page and for the whole account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """One generation that the provider billed, at list price."""

    at: datetime
    attempt_id: str
    page_job_id: str
    fault: str | None
    usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write of a page, from the folder's own log; in the order of the log."""

    path: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePage:
    """One page as a visitor gets it."""

    path: str
    page_id: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """What the ledger says of money."""

    settled_usd: Decimal
    reserved_usd: Decimal
    uncertain_usd: Decimal
    uncertain_attempts: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that is looked at when the last worker has ended."""

    wanted: frozenset[str]
    """Paths that must be live."""
    poison_jobs: frozenset[str]
    """Page jobs of topics that policy refuses."""
    received: Sequence[Received]
    billed: Sequence[Billed]
    writes: Sequence[Write]
    live: Sequence[LivePage]
    sitemap: Sequence[str]
    """The paths it lists."""
    claimed: Claimed
    kills: Sequence[datetime] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What came of a run, counted on the other side."""

    pages_live: int
    missing: int
    unwanted: int
    """Live pages that nobody asked for, or one page at two paths."""
    attempts: int
    faults: int
    billed: int
    forced: int
    """Generations that a client which recovers lost answers has to pay under this plan."""
    sent_twice: int
    """Attempts that reached the provider more than once."""
    written_twice: int
    stale_overwrites: int
    sitemap_wrong: int
    """Live pages that the sitemap lacks, and entries that are not live or stand there twice."""
    early_for_page: int
    early_for_account: int
    most_calls_per_poison_page: int
    billed_usd: Decimal
    settled_usd: Decimal
    uncertain_usd: Decimal
    dollars_off: Decimal
    """By how much the ledger's dollars and the provider's cannot both be true."""

    @property
    def billed_per_live_page(self) -> float:
        """Generations paid for each page that is live."""
        return self.billed / self.pages_live if self.pages_live else float(self.billed)

    @property
    def forced_per_live_page(self) -> float:
        """The least that it can be under this plan."""
        return self.forced / self.pages_live if self.pages_live else float(self.forced)

    def broken_promises(self) -> list[str]:
        """One sentence for each promise that was broken; empty when all were kept."""
        checks = (
            (self.billed > TOLERANCE * self.forced, "paid more than the plan forces"),
            (self.sent_twice, "an attempt was sent more than once"),
            (self.missing, "a page is missing"),
            (self.unwanted, "a page is live that nobody asked for, or twice"),
            (self.written_twice, "a revision was written more than once"),
            (self.stale_overwrites, "an older revision was written over a newer one"),
            (self.sitemap_wrong, "the sitemap does not list exactly the live pages"),
            (self.early_for_page, "a page was tried again before its announced wait was over"),
            (self.early_for_account, "the account was called before its announced wait was over"),
            (self.most_calls_per_poison_page > 1, "a page that policy refuses was asked again"),
            (self.dollars_off >= CENT, "the ledger's dollars are not those that were billed"),
        )
        return [sentence for is_broken, sentence in checks if is_broken]


def judge(evidence: Evidence) -> Numbers:
    """The numbers of a run."""
    creates = [each for each in evidence.received if each.operation == "create"]
    live_paths = [page.path for page in evidence.live]
    by_job = Counter(each.page_job_id for each in creates)
    sent = Counter(each.attempt_id for each in creates)
    return Numbers(
        pages_live=len(live_paths),
        missing=len(evidence.wanted - set(live_paths)),
        unwanted=_unwanted(evidence.live, evidence.wanted),
        attempts=len(creates),
        faults=sum(each.fault is not None for each in creates),
        billed=len(evidence.billed),
        forced=forced(evidence.billed, jobs=len(evidence.wanted) + len(evidence.poison_jobs)),
        sent_twice=sum(times - 1 for times in sent.values()),
        written_twice=_written_twice(evidence.writes),
        stale_overwrites=_stale_overwrites(evidence.writes),
        sitemap_wrong=_sitemap_wrong(evidence.sitemap, live_paths),
        early_for_page=early_for_page(creates),
        early_for_account=early_for_account(evidence.received, evidence.kills),
        most_calls_per_poison_page=max((by_job[job] for job in evidence.poison_jobs), default=0),
        billed_usd=sum((each.usd for each in evidence.billed), Decimal(0)),
        settled_usd=evidence.claimed.settled_usd,
        uncertain_usd=evidence.claimed.uncertain_usd,
        dollars_off=dollars_off(evidence.billed, evidence.claimed),
    )


def forced(billed: Iterable[Billed], *, jobs: int) -> int:
    """Generations that could not be saved: of each job those up to its first that settles it.

    A generation settles a page when it can be used, or when the model declines. Of more than
    ``jobs`` page jobs the later ones were not asked for: none of theirs counts.
    """
    by_job: defaultdict[str, list[Billed]] = defaultdict(list)
    for each in sorted(billed, key=lambda generation: generation.at):
        by_job[each.page_job_id].append(each)
    return sum(_until_settled(of_job) for of_job in list(by_job.values())[:jobs])


def _until_settled(generations: Sequence[Billed]) -> int:
    for number, each in enumerate(generations, start=1):
        if each.fault not in USELESS:
            return number
    return len(generations)


def _unwanted(live: Iterable[LivePage], wanted: Collection[str]) -> int:
    pages = Counter(page.page_id for page in live if page.path in wanted)
    strangers = sum(page.path not in wanted for page in live)
    return strangers + sum(times - 1 for times in pages.values())


def _written_twice(writes: Iterable[Write]) -> int:
    return sum(times - 1 for times in Counter(writes).values())


def _stale_overwrites(writes: Iterable[Write]) -> int:
    highest: dict[str, int] = {}
    stale = 0
    for write in writes:
        before = highest.get(write.path, 0)
        stale += write.revision < before
        highest[write.path] = max(before, write.revision)
    return stale


def _sitemap_wrong(listed: Sequence[str], live: Sequence[str]) -> int:
    repeated = len(listed) - len(set(listed))
    return len(set(listed) ^ set(live)) + repeated


def early_for_page(creates: Sequence[Received]) -> int:
    """Calls about a page that came before the wait which an answer announced was over."""
    until: dict[str, datetime] = {}
    early = 0
    for each in sorted(creates, key=lambda request: request.at):
        if each.page_job_id is None:
            continue
        early += each.at < until.get(each.page_job_id, each.at)
        if each.wait_s:
            end = each.at + timedelta(seconds=each.wait_s)
            until[each.page_job_id] = max(end, until.get(each.page_job_id, end))
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


def dollars_off(billed: Iterable[Billed], claimed: Claimed) -> Decimal:
    """Dollars that the ledger misses, invents, or still holds for calls that are out.

    What was billed for calls that the ledger calls uncertain must lie within what it keeps for
    them; all else must be settled exactly.
    """
    certain, uncertain = Decimal(0), Decimal(0)
    for each in billed:
        if each.attempt_id in claimed.uncertain_attempts:
            uncertain += each.usd
        else:
            certain += each.usd
    beyond = max(Decimal(0), uncertain - claimed.uncertain_usd)
    return abs(claimed.settled_usd - certain) + beyond + claimed.reserved_usd


def bound_s(received: Sequence[Received], latencies_s: Mapping[str, float], at_once: int) -> float:
    """Seconds that no client could do without: all latency side by side, and the waits."""
    waits = sorted(
        (each.at, each.at + timedelta(seconds=each.wait_s)) for each in received if each.wait_s
    )
    paused = timedelta(0)
    reached: datetime | None = None
    for start, end in waits:
        begin = start if reached is None else max(start, reached)
        paused += max(timedelta(0), end - begin)
        reached = end if reached is None else max(reached, end)
    return sum(latencies_s.values()) / at_once + paused.total_seconds()
