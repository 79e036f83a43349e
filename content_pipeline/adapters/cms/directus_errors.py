"""What an answer of Directus, or of whatever stands before it, means: one table.

What belongs here: the rules by Directus's own codes; behind them those that hold for any service.
What no answer at all means is decided in ``http_calls``.
"""

from collections.abc import Mapping
from datetime import datetime

from content_pipeline.adapters.cms.answer_rules import (
    ANY_SERVICE,
    Rule,
    failure_by,
    rule,
    safe_code,
)
from content_pipeline.adapters.http_calls import Answer, Call
from content_pipeline.core.failures import Failure, FailureClass

FORBIDDEN = "FORBIDDEN"

RULES: tuple[Rule, ...] = (
    rule(
        FailureClass.AUTH,
        "the token is not accepted, expired, or its user is not active; set the static token of an "
        "active user",
        codes=frozenset(
            {"INVALID_CREDENTIALS", "INVALID_TOKEN", "TOKEN_EXPIRED", "USER_SUSPENDED"}
        ),
    ),
    rule(
        FailureClass.AUTH,
        "the token may not do that, or the collection or one of its fields does not exist: "
        "Directus says the same of both; give the user's policy create, read, update and delete "
        "on the whole collection, and correct cms.collection and cms.fields",
        codes=frozenset({FORBIDDEN}),
    ),
    rule(
        FailureClass.CONFLICT,
        "an item with our key, or another one at the address, exists already; nothing was written",
        codes=frozenset({"RECORD_NOT_UNIQUE"}),
    ),
    rule(
        FailureClass.REQUEST,
        "a field refuses what it is sent, nothing was written; see which rules the fields of the "
        "collection have",
        codes=frozenset(
            {"FAILED_VALIDATION", "VALUE_TOO_LONG", "VALUE_OUT_OF_RANGE", "NOT_NULL_VIOLATION"}
        ),
    ),
    rule(
        FailureClass.REQUEST,
        "the request is refused, nothing was written; a page beyond MAX_PAYLOAD_SIZE (1 MB unless "
        "set) is refused so as well",
        codes=frozenset({"INVALID_PAYLOAD"}),
    ),
    rule(
        FailureClass.THROTTLED,
        "it is under pressure and did not begin; nothing was written, it is tried again",
        codes=frozenset({"UNDER_PRESSURE"}),
    ),
    *ANY_SERVICE,
)


def failure_in(answer: Answer, call: Call, *, service: str, now: datetime) -> Failure:
    """The failure that ``answer`` means for ``call``: it is not what was asked for."""
    code = error_code(answer)
    return failure_by(
        RULES,
        answer,
        call,
        codes=[] if code is None else [code],
        told="without Directus's error object",
        service=service,
        now=now,
    )


def error_code(answer: Answer) -> str | None:
    """Directus's own code of an error; None when the answer is no error of Directus."""
    try:
        document = answer.document()
    except ValueError:
        return None
    errors = document.get("errors") if isinstance(document, Mapping) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    more = first.get("extensions") if isinstance(first, Mapping) else None
    return safe_code(more.get("code")) if isinstance(more, Mapping) else None
