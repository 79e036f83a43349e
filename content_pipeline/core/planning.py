"""Plans: which pages of a site are due and why, which are not and why not, and what fits today.

What belongs here: the decision as pure functions of how each page stands, and the plan as a value.
What a call will cost is ``forecast``'s; reading how pages stand is the ledger's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.forecast import Basis
from content_pipeline.core.money import Usage
from content_pipeline.core.states import NEEDS_PERSON, PageJobState

_S = PageJobState


class Due(StrEnum):
    """Why a page is worked on."""

    NEW = "new"
    CHANGED_INPUT = "changed input"
    CHANGED_WAY = "changed way of making"
    STALE = "stale by age"
    MADE_ANEW = "asked to be made anew"
    RELEASED = "released from repair"
    WANTED_AGAIN = "wanted again"
    WAITED = "waiting past due"
    UNCERTAIN = "uncertain"
    TAKEN_OFF = "to be taken off the site"


class Skipped(StrEnum):
    """Why a page is left alone."""

    UNCHANGED = "unchanged and published"
    REJECTED = "rejected row"
    NEEDS_PERSON = "needs a person"
    CANCELLED = "cancelled"
    ROLLED_BACK = "its way of making was rolled back"
    WAITS = "waits for its time"
    PUBLISH_RATE = "publish rate reached"
    BUDGET = "no room in the budget today"
    HOPELESS = "no budget would ever allow it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """How one topic's page would stand once the table is taken in."""

    topic_key: str
    page_job_id: str
    page_id: str | None
    state: PageJobState
    is_rejected: bool
    """The row cannot become a page."""
    failure_class: FailureClass | None
    is_due: bool
    was_released: bool
    """A person took it up again after it had failed or been stopped."""
    was_public: bool
    waits_for_turn: bool
    """The publish rate keeps it back: it is ready, or its draft is not paid for yet."""
    has_draft: bool
    nonce: str
    input_hash: str
    generation_version: str
    shown_input_hash: str | None
    """Of what the site shows now; None when it shows nothing of ours."""
    shown_version: str | None
    spent_usd: Decimal
    is_asked_again: bool
    input_columns: Mapping[str, str] = field(repr=False)

    @property
    def is_paid_next(self) -> bool:
        """Whether its next step is a paid call, or may turn out to be one."""
        before_draft = (_S.QUEUED, _S.RESERVED, _S.GENERATION_UNCERTAIN, _S.FAILED_RETRYABLE)
        return self.state in before_draft and not self.has_draft


def judge(stand: Stand, job_before: str | None, version: str) -> Due | Skipped:
    """Whether a page is due, and the reason either way.

    ``job_before``: the page job that its topic wants at present; ``version``: the site's way of
    making pages. A page that a rollback keeps from being made by it is skipped.
    """
    if stand.is_rejected:
        return Skipped.REJECTED
    if stand.state in NEEDS_PERSON:
        return Skipped.NEEDS_PERSON
    if stand.state is _S.CANCELLED:
        return Skipped.CANCELLED
    if stand.state in (_S.PUBLISHED, _S.SUPERSEDED, _S.WITHDRAWN):
        overtaken = stand.generation_version != version
        return Skipped.ROLLED_BACK if overtaken else Skipped.UNCHANGED
    if stand.state is _S.WITHDRAWING:
        return Due.TAKEN_OFF
    if stand.state in (_S.GENERATION_UNCERTAIN, _S.PUBLISH_UNCERTAIN):
        return Due.UNCERTAIN
    if stand.waits_for_turn and not stand.has_draft:
        return _wish(stand, job_before)  # how many drafts are paid for is a question of today
    if not stand.is_due and stand.failure_class is not FailureClass.BUDGET:
        return Skipped.PUBLISH_RATE if stand.waits_for_turn else Skipped.WAITS
    if stand.state is _S.FAILED_RETRYABLE or stand.waits_for_turn:
        return Due.WAITED
    return _wish(stand, job_before)


def _wish(stand: Stand, job_before: str | None) -> Due:
    is_wanted_already = stand.page_job_id == job_before
    if stand.was_released and is_wanted_already:
        return Due.RELEASED
    if not stand.was_public:
        return Due.NEW
    if stand.shown_input_hash is None:
        return Due.WANTED_AGAIN
    if stand.input_hash != stand.shown_input_hash:
        return Due.CHANGED_INPUT
    if stand.generation_version != stand.shown_version:
        return Due.CHANGED_WAY
    if stand.nonce:
        return Due.MADE_ANEW if is_wanted_already else Due.STALE
    return Due.WANTED_AGAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """One paid call of one page."""

    step: str
    model: str
    usage: Usage
    """Expected, of one call."""
    calls: float
    """Expected number of calls: more than one where such calls had to be repeated."""
    expected_usd: Decimal
    worst_usd: Decimal
    """What is reserved for one call."""
    latency_s: float
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPage:
    """One page that is due."""

    topic_key: str
    reason: Due
    is_new: bool
    """It was never public, so the publish rate counts it."""
    spent_usd: Decimal
    """On this page job so far."""
    calls: tuple[PlannedCall, ...]

    @property
    def expected_usd(self) -> Decimal:
        """What the page will probably cost."""
        return sum((call.expected_usd for call in self.calls), Decimal(0))

    @property
    def worst_usd(self) -> Decimal:
        """What the page can cost when each of its calls is made once."""
        return sum((call.worst_usd for call in self.calls), Decimal(0))

    @property
    def dearest_usd(self) -> Decimal:
        """The most that must be free at once: the worst case of its dearest call."""
        return max((call.worst_usd for call in self.calls), default=Decimal(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedPage:
    """One page that is left alone."""

    topic_key: str
    reason: Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """The dollars that a plan must do with."""

    page_usd: Decimal
    day_usd: Decimal
    """The lower of the whole day's caps; what it does not hold, no day will."""
    room_usd: Decimal
    """What may still be reserved today."""


class Verdict(StrEnum):
    """Whether the budget allows what is due."""

    FITS = "fits"
    PARTLY = "fits partly"
    NEVER = "never fits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a site's next run would do."""

    site: str
    at: datetime
    today: tuple[PlannedPage, ...]
    """Within the publish rate and the budgets; those that cost nothing first, then by the table."""
    later: tuple[PlannedPage, ...]
    """Due as well, and skipped for today by the publish rate or a budget."""
    skipped: tuple[SkippedPage, ...]
    """With those of ``later``."""
    purse: Purse
    calls_at_once: int

    @property
    def calls(self) -> tuple[PlannedCall, ...]:
        """All paid calls of today."""
        return tuple(call for page in self.today for call in page.calls)

    @property
    def expected_usd(self) -> Decimal:
        """Of today's pages."""
        return sum((page.expected_usd for page in self.today), Decimal(0))

    @property
    def worst_usd(self) -> Decimal:
        """Of today's pages, each call made once and as dear as can be."""
        return sum((page.worst_usd for page in self.today), Decimal(0))

    @property
    def expected_input_tokens(self) -> int:
        """Of today's pages."""
        return round(sum(call.usage.input_tokens * call.calls for call in self.calls))

    @property
    def expected_output_tokens(self) -> int:
        """Of today's pages."""
        return round(sum(call.usage.output_tokens * call.calls for call in self.calls))

    @property
    def duration_s(self) -> float:
        """About how long today's calls take, as many at once as may be."""
        work_s = sum(call.latency_s * call.calls for call in self.calls)
        slowest_s = max(
            (sum(call.latency_s for call in page.calls) for page in self.today), default=0.0
        )
        return max(slowest_s, work_s / self.calls_at_once)

    @property
    def basis(self) -> Basis:
        """The least sure of what the expected dollars rest on."""
        return max(
            (call.basis for call in self.calls), key=list(Basis).index, default=Basis.HISTORY
        )

    @property
    def verdict(self) -> Verdict:
        """Whether the budgets allow what is due."""
        refused = [page.reason for page in self.skipped if page.reason in _OF_MONEY]
        if not refused:
            return Verdict.FITS
        never = all(reason is Skipped.HOPELESS for reason in refused)
        return Verdict.NEVER if never and not self.today else Verdict.PARTLY


_OF_MONEY = (Skipped.BUDGET, Skipped.HOPELESS)


def allot(
    pages: Iterable[PlannedPage], *, new_pages: int | None, drafts_ahead: int = 0, purse: Purse
) -> tuple[list[PlannedPage], list[tuple[PlannedPage, Skipped]]]:
    """Which of the due ``pages`` are for today, and which not and why.

    ``new_pages``: so many that never were public may go out; None: any number. ``drafts_ahead``: of
    so many more the drafts are paid for. A page fits when its dearest call can be reserved after
    all pages before it came to what is expected of them.
    """
    today: list[PlannedPage] = []
    later: list[tuple[PlannedPage, Skipped]] = []
    room, new = purse.room_usd, 0
    for page in pages:
        ahead = drafts_ahead if page.calls else 0
        if page.is_new and new_pages is not None and new >= new_pages + ahead:
            later.append((page, Skipped.PUBLISH_RATE))
        elif _is_hopeless(page, purse):
            later.append((page, Skipped.HOPELESS))
        elif page.dearest_usd > room:
            later.append((page, Skipped.BUDGET))
        else:
            today.append(page)
            new += page.is_new
            room -= page.expected_usd
    return today, later


def _is_hopeless(page: PlannedPage, purse: Purse) -> bool:
    if not page.calls:
        return False
    first = page.calls[0].worst_usd
    return page.dearest_usd > purse.day_usd or page.spent_usd + first > purse.page_usd


def counted(reasons: Sequence[StrEnum]) -> dict[str, int]:
    """Reason → number of pages, in the order in which the reasons are listed."""
    order = [*Due, *Skipped]
    found = sorted(set(reasons), key=order.index)
    return {reason.value: list(reasons).count(reason) for reason in found}
