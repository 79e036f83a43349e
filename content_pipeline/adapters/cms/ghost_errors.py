"""What an answer of Ghost, or of whatever stands before it, means: one table.

What belongs here: the rules by Ghost's own types and codes of errors; behind them those that hold
for any service. What no answer at all means is decided in ``http_calls``.
"""

from collections.abc import Mapping
from datetime import datetime

from content_pipeline.adapters.cms.answer_rules import (
    ANY_SERVICE,
    Rule,
    failure_by,
    on,
    rule,
    safe_code,
)
from content_pipeline.adapters.http_calls import Answer, Call
from content_pipeline.core.failures import Failure, FailureClass

NOT_FOUND = "NotFoundError"

RULES: tuple[Rule, ...] = (
    rule(
        FailureClass.AUTH,
        "the token is not accepted: the secret of the Admin API key is wrong, or our clock is more "
        "than five minutes off; copy the key again, and let the machine keep time by NTP",
        codes=frozenset({"INVALID_JWT"}),
    ),
    rule(
        FailureClass.AUTH,
        "the Admin API key is unknown, the integration was removed or its key made anew; set the "
        "new key in the environment",
        codes=frozenset({"UNKNOWN_ADMIN_API_KEY", "UnauthorizedError"}),
    ),
    rule(
        FailureClass.QUOTA,
        "the plan of this Ghost allows no more; raise it, then resume",
        codes=frozenset({"HostLimitError"}),
    ),
    rule(
        FailureClass.AUTH,
        "the key lacks the right; use the Admin API key of a custom integration",
        codes=frozenset({"NoPermissionError"}),
    ),
    rule(
        FailureClass.CONFLICT,
        "the page was changed since it was seen; nothing was written, it is looked at again",
        codes=frozenset({"UpdateCollisionError"}),
    ),
    rule(
        FailureClass.CONFLICT,
        "the page was deleted meanwhile; it is looked at again",
        codes=frozenset({NOT_FOUND}),
    ),
    rule(
        FailureClass.REQUEST,
        "Ghost refuses the page, nothing was written: a title holds at most 255 characters, a meta "
        "description 500; correct it in the table or in the prompt",
        codes=frozenset({"ValidationError"}),
    ),
    rule(
        FailureClass.REQUEST,
        "this Ghost does not know the request, nothing was written; Ghost 5 or 6 is needed",
        codes=frozenset({"RequestNotAcceptableError"}),
    ),
    rule(
        FailureClass.THROTTLED,
        "it starts up or is in maintenance; nothing was written, it is tried again",
        codes=frozenset({"MaintenanceError"}),
    ),
    rule(
        FailureClass.REQUEST,
        "no Admin API was found there, nothing was written; set the address at which /ghost/ shows "
        "the login of the editors",
        statuses=on(404, 405),
    ),
    *ANY_SERVICE,
)


def failure_in(answer: Answer, call: Call, *, service: str, now: datetime) -> Failure:
    """The failure that ``answer`` means for ``call``: it is not what was asked for."""
    return failure_by(
        RULES,
        answer,
        call,
        codes=_codes(answer),
        told="without Ghost's error object",
        service=service,
        now=now,
    )


def is_not_found(answer: Answer) -> bool:
    """Whether Ghost itself says that it has no page of that id."""
    return answer.status == 404 and NOT_FOUND in _codes(answer)


def _codes(answer: Answer) -> list[str | None]:
    """The type of the error, and its code."""
    try:
        document = answer.document()
    except ValueError:
        return []
    errors = document.get("errors") if isinstance(document, Mapping) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    if not isinstance(first, Mapping):
        return []
    return [safe_code(first.get("type")), safe_code(first.get("code"))]
