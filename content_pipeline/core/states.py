"""The life of a page job: every state, and every move the pipeline may make, on one page.

The database refuses the rest: a CHECK on the states, and a trigger that looks each move up in
``allowed_moves``, a table the migrations fill from ``MOVES``. Each member says who leaves it and
what a crash there means. ``docs/states.md`` is drawn from this module and tested against it.
"""

from enum import StrEnum


class PageJobState(StrEnum):
    """Where one page job stands. Each is a durable checkpoint."""

    QUEUED = "queued"
    """Wanted. A worker that gets the page's lease leaves it. A crash changes nothing."""
    RESERVED = "reserved"
    """A worker holds the page and the worst-case cost. Nothing was sent: a crash repeats it."""
    GENERATING = "generating"
    """The intent of a paid call is on record. After a crash the raw answer is read if it was
    saved; otherwise the call is uncertain and the provider is asked."""
    GENERATED = "generated"
    """A draft is stored and paid for. A crash costs nothing: validation starts again."""
    VALIDATING = "validating"
    """The rules are being applied. They change nothing, so a crash repeats them."""
    READY_TO_PUBLISH = "ready_to_publish"
    """The draft is fit for the site. A crash repeats the look before publishing."""
    PUBLISHING = "publishing"
    """The intent of a publish is on record. After a crash the CMS is asked before any write."""
    PUBLISHED = "published"
    """The CMS was read back and holds our revision. Left when a newer revision takes over."""
    WITHDRAWING = "withdrawing"
    """The page is to be taken off the site. Doing so twice is harmless: a crash repeats it."""
    FAILED_RETRYABLE = "failed_retryable"
    """Waits until ``next_attempt_at``, then goes on at its last checkpoint."""
    GENERATION_UNCERTAIN = "generation_uncertain"
    """A paid call may have completed. Only the provider's word, or the end of the time it could
    still answer in, leads out."""
    PUBLISH_UNCERTAIN = "publish_uncertain"
    """A write may have reached the CMS. Only a look at the CMS leads out."""
    FAILED_TERMINAL = "failed_terminal"
    """A person must act: nothing here is retried by itself. Left by a repair with a cause."""
    DEAD_LETTERED = "dead_lettered"
    """Failed too often in one way; kept with its whole history. Left by a repair with a cause."""
    CANCELLED = "cancelled"
    """A person stopped it before it was published. Left by a repair with a cause."""
    WITHDRAWN = "withdrawn"
    """The CMS was read back and visitors see the page no more. Left when its topic comes back."""
    SUPERSEDED = "superseded"
    """A newer page job of the page took its place. Left when this very input is asked for again:
    its stored draft is then published as a new revision, and nothing is paid."""


class PublicStatus(StrEnum):
    """The seven states that people outside the pipeline are shown."""

    QUEUED = "queued"
    RUNNING = "running"
    RETRY_WAIT = "retry_wait"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCEL_REQUESTED = "cancel_requested"
    CANCELLED = "cancelled"


_S = PageJobState

MOVES: dict[tuple[PageJobState, PageJobState], str] = {
    # the way of a page that meets no trouble
    (_S.QUEUED, _S.RESERVED): "a worker holds the page, the worst case is reserved",
    (_S.RESERVED, _S.GENERATING): "the intent of the paid call is committed",
    (_S.GENERATING, _S.GENERATED): "the answer is paid, stored and an article",
    (_S.GENERATING, _S.QUEUED): "a step's output is stored and the next step is wanted",
    (_S.QUEUED, _S.GENERATED): "every step's output is stored already: nothing is paid",
    (_S.GENERATED, _S.VALIDATING): "the site's rules are applied",
    (_S.VALIDATING, _S.READY_TO_PUBLISH): "no rule is broken",
    (_S.READY_TO_PUBLISH, _S.PUBLISHING): "the intent of the publish is committed",
    (_S.PUBLISHING, _S.PUBLISHED): "the CMS was read back and holds this revision",
    (_S.VALIDATING, _S.QUEUED): (
        "the draft breaks a rule; one more is asked for, with the findings"
    ),
    # waiting, and going on at the last checkpoint
    (_S.RESERVED, _S.QUEUED): "the provider may not be called now; the reservation is given back",
    (_S.QUEUED, _S.FAILED_RETRYABLE): "a cap does not allow the call yet",
    (_S.GENERATING, _S.FAILED_RETRYABLE): "the provider failed in a way worth another try",
    (_S.PUBLISHING, _S.FAILED_RETRYABLE): "the CMS failed before anything was written",
    (_S.FAILED_RETRYABLE, _S.QUEUED): "the wait is over; there is no draft yet",
    (_S.FAILED_RETRYABLE, _S.READY_TO_PUBLISH): "the wait is over; the draft is kept",
    # outcomes nobody knows yet, and what the other side says about them
    (_S.GENERATING, _S.GENERATION_UNCERTAIN): "the call was sent and its answer is lost",
    (_S.GENERATION_UNCERTAIN, _S.GENERATED): "the provider had the answer: it is recovered",
    (_S.GENERATION_UNCERTAIN, _S.QUEUED): "the outcome is settled; the next call is wanted",
    (_S.PUBLISHING, _S.PUBLISH_UNCERTAIN): "the write was sent and its answer is lost",
    (_S.PUBLISH_UNCERTAIN, _S.PUBLISHED): "the CMS holds the revision: nothing is written again",
    (_S.PUBLISH_UNCERTAIN, _S.READY_TO_PUBLISH): "the CMS proved that nothing was written",
    # a person must act
    (_S.QUEUED, _S.FAILED_TERMINAL): "the input or a rule of the site forbids the page",
    (_S.RESERVED, _S.FAILED_TERMINAL): "the call cannot be made as configured",
    (_S.GENERATING, _S.FAILED_TERMINAL): "the provider refuses for good",
    (_S.GENERATION_UNCERTAIN, _S.FAILED_TERMINAL): "what came back can never become a page",
    (_S.VALIDATING, _S.FAILED_TERMINAL): "the draft breaks a rule",
    (_S.READY_TO_PUBLISH, _S.FAILED_TERMINAL): "the target is not ours to write",
    (_S.PUBLISHING, _S.FAILED_TERMINAL): "the CMS refuses for good, or somebody changed the page",
    (_S.PUBLISH_UNCERTAIN, _S.FAILED_TERMINAL): "the CMS's word stays unclear",
    # failed too often in one way
    (_S.QUEUED, _S.DEAD_LETTERED): "the money or the time for this page job is used up",
    (_S.GENERATING, _S.DEAD_LETTERED): "the tries or the time for them are used up",
    (_S.GENERATION_UNCERTAIN, _S.DEAD_LETTERED): "the paid tries or the time for them are used up",
    (_S.VALIDATING, _S.DEAD_LETTERED): "the draft made with the findings breaks a rule as well",
    (_S.PUBLISHING, _S.DEAD_LETTERED): "the tries or the time for them are used up",
    # stopped by a person; never while a call is out, whose outcome must be known first
    (_S.QUEUED, _S.CANCELLED): "cancelled before anything was paid",
    (_S.RESERVED, _S.CANCELLED): "cancelled before the call",
    (_S.GENERATED, _S.CANCELLED): "cancelled; the paid draft is kept",
    (_S.VALIDATING, _S.CANCELLED): "cancelled; the paid draft is kept",
    (_S.READY_TO_PUBLISH, _S.CANCELLED): "cancelled before publishing",
    (_S.FAILED_RETRYABLE, _S.CANCELLED): "cancelled while waiting",
    # replaced by newer input
    (_S.QUEUED, _S.SUPERSEDED): "newer input is wanted; nothing was paid",
    (_S.RESERVED, _S.SUPERSEDED): "newer input is wanted; nothing was paid",
    (_S.GENERATED, _S.SUPERSEDED): "newer input is wanted; the draft is kept",
    (_S.VALIDATING, _S.SUPERSEDED): "newer input is wanted; the draft is kept",
    (_S.READY_TO_PUBLISH, _S.SUPERSEDED): "a newer revision is wanted or already live",
    (_S.PUBLISHING, _S.SUPERSEDED): "the CMS already holds a newer revision",
    (_S.PUBLISH_UNCERTAIN, _S.SUPERSEDED): "the CMS already holds a newer revision",
    (_S.FAILED_RETRYABLE, _S.SUPERSEDED): "newer input is wanted",
    (_S.PUBLISHED, _S.SUPERSEDED): "a newer revision is live and proved",
    (_S.SUPERSEDED, _S.QUEUED): "this input is wanted again; it never had a draft",
    (_S.SUPERSEDED, _S.GENERATED): "this input is wanted again; its draft is reused",
    (_S.SUPERSEDED, _S.GENERATION_UNCERTAIN): "wanted again; a lost call is asked about first",
    # put back on the site, or taken off it
    (_S.PUBLISHED, _S.READY_TO_PUBLISH): "ours is wanted back on the site; nothing is paid",
    (_S.PUBLISHED, _S.WITHDRAWING): "its topic is retired, and the site takes such pages off",
    (_S.WITHDRAWING, _S.WITHDRAWN): "the CMS was read back and shows the page no more",
    (_S.WITHDRAWING, _S.READY_TO_PUBLISH): "its topic came back before the page was taken off",
    (
        _S.WITHDRAWING,
        _S.FAILED_TERMINAL,
    ): "the page was changed on the site, or refuses to go",
    (_S.WITHDRAWING, _S.DEAD_LETTERED): "the tries are used up",
    (_S.WITHDRAWN, _S.GENERATED): "its topic is back; its draft is reused",
    (_S.FAILED_TERMINAL, _S.WITHDRAWING): "repaired; the page is still to be taken off",
    (_S.DEAD_LETTERED, _S.WITHDRAWING): "repaired; the page is still to be taken off",
    (_S.FAILED_TERMINAL, _S.SUPERSEDED): "a person keeps the page as it is on the site",
    # repaired by a person, who states the cause
    (_S.FAILED_TERMINAL, _S.QUEUED): "repaired; there is no usable draft",
    (_S.FAILED_TERMINAL, _S.GENERATED): "repaired; the draft is kept and checked again",
    (_S.FAILED_TERMINAL, _S.GENERATION_UNCERTAIN): "repaired; a lost call is asked about first",
    (_S.DEAD_LETTERED, _S.QUEUED): "repaired; there is no usable draft",
    (_S.DEAD_LETTERED, _S.GENERATED): "repaired; the draft is kept and checked again",
    (_S.DEAD_LETTERED, _S.GENERATION_UNCERTAIN): "repaired; a lost call is asked about first",
    (_S.CANCELLED, _S.QUEUED): "wanted again; there is no usable draft",
    (_S.CANCELLED, _S.GENERATED): "wanted again; the draft is kept and checked again",
    (_S.CANCELLED, _S.GENERATION_UNCERTAIN): "wanted again; a lost call is asked about first",
}
"""Every allowed move and why it is made. What is not here, the database refuses."""

FINAL = frozenset(
    {_S.PUBLISHED, _S.FAILED_TERMINAL, _S.DEAD_LETTERED, _S.CANCELLED, _S.SUPERSEDED, _S.WITHDRAWN}
)
"""No worker touches these by itself."""

WORKABLE = frozenset(PageJobState) - FINAL
"""A worker may claim these once ``next_attempt_at`` has come."""


CANCELLABLE = WORKABLE - {_S.PUBLISHING, _S.PUBLISH_UNCERTAIN, _S.WITHDRAWING}
"""A wish to cancel is accepted in these and then wins: no publish begins any more. Once one has
begun, success may win, and only the CMS knows."""


class Stage(StrEnum):
    """The three parts of a page's way, as people select them: the Dagster assets of a site."""

    DRAFT = "draft"
    PAGE = "page"
    ARTIFACT = "artifact"


ALL_STAGES = frozenset(Stage)

_STAGES: dict[PageJobState, frozenset[Stage]] = {
    _S.QUEUED: frozenset({Stage.DRAFT}),
    _S.RESERVED: frozenset({Stage.DRAFT}),
    _S.GENERATING: frozenset({Stage.DRAFT}),
    _S.GENERATION_UNCERTAIN: frozenset({Stage.DRAFT}),
    _S.GENERATED: frozenset({Stage.PAGE}),
    _S.VALIDATING: frozenset({Stage.PAGE}),
    _S.READY_TO_PUBLISH: frozenset({Stage.ARTIFACT}),
    _S.PUBLISHING: frozenset({Stage.ARTIFACT}),
    _S.PUBLISH_UNCERTAIN: frozenset({Stage.ARTIFACT}),
    _S.WITHDRAWING: frozenset({Stage.ARTIFACT}),
    _S.FAILED_RETRYABLE: frozenset({Stage.DRAFT, Stage.ARTIFACT}),
}


def states_of(stages: frozenset[Stage]) -> frozenset[PageJobState]:
    """The workable states that work on ``stages`` may take a job out of."""
    return frozenset(state for state, wanted in _STAGES.items() if wanted & stages)


NEEDS_PERSON = frozenset({_S.FAILED_TERMINAL, _S.DEAD_LETTERED})

_WAITING = frozenset({_S.FAILED_RETRYABLE, _S.GENERATION_UNCERTAIN, _S.PUBLISH_UNCERTAIN})


def public_status(state: PageJobState, *, cancel_requested: bool) -> PublicStatus:
    """What people are shown of a page job in ``state``."""
    if state is _S.CANCELLED:
        return PublicStatus.CANCELLED
    if state in (_S.PUBLISHED, _S.SUPERSEDED, _S.WITHDRAWN):
        return PublicStatus.SUCCEEDED
    if state in NEEDS_PERSON:
        return PublicStatus.FAILED
    if cancel_requested:
        return PublicStatus.CANCEL_REQUESTED
    if state is _S.QUEUED:
        return PublicStatus.QUEUED
    return PublicStatus.RETRY_WAIT if state in _WAITING else PublicStatus.RUNNING


NEXT: dict[PageJobState, str] = {
    _S.QUEUED: "a worker takes it as soon as one is free",
    _S.RESERVED: "its worker makes the paid call",
    _S.GENERATING: "its worker waits for the provider",
    _S.GENERATED: "the site's rules are applied to the draft",
    _S.VALIDATING: "the site's rules are applied to the draft",
    _S.READY_TO_PUBLISH: "the CMS is looked at, then the draft is published",
    _S.PUBLISHING: "its worker publishes and reads back",
    _S.PUBLISHED: "nothing: the page is live and proved",
    _S.FAILED_RETRYABLE: "it is tried again when the wait is over",
    _S.GENERATION_UNCERTAIN: "the provider is asked whether the call completed",
    _S.PUBLISH_UNCERTAIN: "the CMS is asked whether the write took effect",
    _S.FAILED_TERMINAL: "a person corrects the cause, then retries it",
    _S.DEAD_LETTERED: "a person finds the cause, then retries it",
    _S.CANCELLED: "nothing: it was stopped",
    _S.WITHDRAWING: "the page is taken off the site, then the CMS is read back",
    _S.WITHDRAWN: "nothing: the page is off the site",
    _S.SUPERSEDED: "nothing: a newer page job took its place",
}
"""What happens next, for people."""
