"""Failure classes: what went wrong, decided once where it happened, and what it means for people.

What belongs here: the closed set of classes and the value that carries one. What an exception of
a vendor means is decided in that vendor's adapter; what to do about a class, in ``retries``.
"""

from dataclasses import dataclass
from enum import StrEnum


class FailureClass(StrEnum):
    """The closed set; the class alone decides what happens next."""

    NOT_SENT = "not_sent"
    """The request never left (refused, DNS, TLS, pool): nothing was paid or written."""
    TRANSIENT = "transient"
    """The other side failed and says so; trying again later is safe and likely to work."""
    THROTTLED = "throttled"
    """The other side asks for less traffic (429, overloaded, maintenance)."""
    QUOTA = "quota"
    """Credit or a spending limit is used up: only a person with the account can end it."""
    AUTH = "auth"
    """Credentials or rights are wrong: every further call would fail as well."""
    REQUEST = "request"
    """The request itself is refused (too long, bad parameter, unknown model)."""
    POLICY = "policy"
    """The model or its provider declines the subject; asking again is not allowed."""
    BAD_OUTPUT = "bad_output"
    """The answer was paid for and cannot be used (cut, empty, not the schema)."""
    UNCERTAIN = "uncertain"
    """The call may have taken effect: ask the other side before anything else."""
    INVALID_INPUT = "invalid_input"
    """The source row cannot become a page as it stands."""
    INVALID_PAGE = "invalid_page"
    """The draft breaks a validation rule of the site."""
    TERMINAL = "terminal"
    """A business rule forbids the page (its URL belongs to another topic, say)."""
    CONFLICT = "conflict"
    """The page on the site is not ours any more: a person edited or created it."""
    STORAGE = "storage"
    """A local disk or file cannot be written."""
    BUDGET = "budget"
    """The next call could pass a cap, so it was not made."""
    INTERNAL = "internal"
    """Our own code failed; a bug report with the page's history is welcome."""


EXPLANATIONS: dict[FailureClass, str] = {
    FailureClass.NOT_SENT: "The service could not be reached; nothing was sent or paid.",
    FailureClass.TRANSIENT: "The service had a fault of its own; it is tried again later.",
    FailureClass.THROTTLED: "The service asked us to slow down; it is tried again when allowed.",
    FailureClass.QUOTA: "The account has no credit left; top it up, then retry.",
    FailureClass.AUTH: "The service rejects our credentials or rights; correct them, then retry.",
    FailureClass.REQUEST: "The service refuses this request; change the prompt, model or input.",
    FailureClass.POLICY: "The model declines this subject; a person must decide about the page.",
    FailureClass.BAD_OUTPUT: "The model's answer was paid for but cannot be used.",
    FailureClass.UNCERTAIN: "The call may have taken effect; the other side is asked first.",
    FailureClass.INVALID_INPUT: "The source row is unusable; correct it and run again.",
    FailureClass.INVALID_PAGE: "The draft breaks a validation rule; see the findings.",
    FailureClass.TERMINAL: "A rule of the site forbids this page as it stands.",
    FailureClass.CONFLICT: "The page on the site was changed by somebody else; it is left alone.",
    FailureClass.STORAGE: "A local disk or folder cannot be written; free or fix it, then retry.",
    FailureClass.BUDGET: "The next call could pass a cap; raise the cap or wait for a new day.",
    FailureClass.INTERNAL: "The pipeline itself failed; please report it with the page's history.",
}
"""For people, kept apart from the sanitised technical message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One classified failure. ``message`` never holds a prompt, model text or a secret."""

    failure_class: FailureClass
    message: str
    code: str | None = None
    """The other side's own error code, verbatim."""
    type: str | None = None
    """The other side's own error type, verbatim."""
    http_status: int | None = None
    request_id: str | None = None
    """The other side's id of the request, for a support case."""
    retry_after_s: float | None = None
    """The wait the other side announced, in seconds; None when it announced none."""

    @property
    def explanation(self) -> str:
        """What a content team should know and do, in one sentence."""
        return EXPLANATIONS[self.failure_class]
