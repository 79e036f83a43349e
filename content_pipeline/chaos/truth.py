"""The verdict: what provider and site recorded, turned into numbers and broken promises.

What belongs here: pure arithmetic on the provider's records. The site's are judged in
``site_truth``; the ledger enters with nothing but the dollars it claims.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from content_pipeline.chaos.site_truth import SiteNumbers, SiteRecords, Wanted, judge_site
from content_pipeline.chaos.waits import Received, early_for_account, early_for_page
from content_pipeline.sandbox.faults import FaultKind

TOLERANCE = Decimal("1.01")
"""Times what the plan forces may be paid."""

CENT = Decimal("0.01")

USELESS = frozenset({FaultKind.LENGTH, FaultKind.BROKEN_JSON, FaultKind.EMPTY_CONTENT})
"""What the model itself spoilt: no look-up makes a page of it, so another one must be paid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """One generation that the provider billed, at list price."""

    at: datetime
    attempt_id: str
    page_job_id: str
    fault: str | None
    usd: Decimal


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

    wanted: Wanted
    poison_jobs: frozenset[str]
    """Page jobs of topics that policy refuses."""
    received: Sequence[Received]
    """What reached the provider."""
    billed: Sequence[Billed]
    site: SiteRecords
    claimed: Claimed
    kills: Sequence[datetime] = ()

    @property
    def jobs(self) -> int:
        """How many page jobs were asked for."""
        return len(self.wanted.live) + len(self.wanted.changed) + len(self.poison_jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What came of a run, counted on the other side."""

    site: SiteNumbers
    attempts: int
    faults: int
    billed: int
    forced: int
    """Generations that a client which recovers lost answers has to pay under this plan."""
    sent_twice: int
    """Attempts that reached the provider more than once."""
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
        return self.billed / self.site.pages_live if self.site.pages_live else float(self.billed)

    @property
    def forced_per_live_page(self) -> float:
        """The least that it can be under this plan."""
        return self.forced / self.site.pages_live if self.site.pages_live else float(self.forced)

    def broken_promises(self) -> list[str]:
        """One sentence for each promise that was broken; empty when all were kept."""
        checks = (
            (self.billed > TOLERANCE * self.forced, "paid more than the plan forces"),
            (self.sent_twice, "an attempt was sent more than once"),
            (self.early_for_page, "a page was tried again before its announced wait was over"),
            (self.early_for_account, "the account was called before its announced wait was over"),
            (self.most_calls_per_poison_page > 1, "a page that policy refuses was asked again"),
            (self.dollars_off >= CENT, "the ledger's dollars are not those that were billed"),
        )
        own = [sentence for is_broken, sentence in checks if is_broken]
        return own + self.site.broken_promises()


def judge(evidence: Evidence) -> Numbers:
    """The numbers of a run."""
    creates = [each for each in evidence.received if each.operation == "create"]
    by_job = Counter(each.page for each in creates)
    sent = Counter(each.attempt_id for each in creates)
    return Numbers(
        site=judge_site(evidence.site, evidence.wanted, evidence.kills),
        attempts=len(creates),
        faults=sum(each.fault is not None for each in creates),
        billed=len(evidence.billed),
        forced=forced(evidence.billed, jobs=evidence.jobs),
        sent_twice=sum(times - 1 for times in sent.values()),
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
