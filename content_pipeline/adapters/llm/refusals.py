"""HTTP answers that are not a completion: what their status, code and type mean.

What belongs here: the tables of codes and statuses, and the failure built from them. Exceptions
are ``classify``'s; the shape of error bodies is ``envelope``'s.
"""

from collections.abc import Mapping
from datetime import datetime

from content_pipeline.adapters.llm.envelope import ErrorEnvelope, envelope_in_body
from content_pipeline.adapters.llm.headers import request_id, retry_after_s
from content_pipeline.core.failures import Failure, FailureClass

CODES: tuple[tuple[FailureClass, frozenset[str]], ...] = (
    # First: an empty account hides behind 429 with a type of its own or an ordinary code.
    (
        FailureClass.QUOTA,
        frozenset(
            {
                "billing_error",
                "billing_hard_limit_reached",
                "billing_not_active",
                "budget_exceeded",
                "credit_balance_exhausted",
                "insufficient_credits",
                "insufficient_quota",
                "organization_spend_limit_exceeded",
                "organization_usage_limit_exceeded",
                "project_spend_limit_exceeded",
            }
        ),
    ),
    (
        FailureClass.AUTH,
        frozenset(
            {
                "account_deactivated",
                "authentication_error",
                "invalid_api_key",
                "invalid_organization",
                "ip_not_authorized",
                "permission_error",
                "unsupported_country_region_territory",
            }
        ),
    ),
    (
        FailureClass.POLICY,
        frozenset(
            {
                "bio_policy",
                "content_filter",
                "content_policy_violation",
                "invalid_prompt",
                "misalignment_policy_violation",
                "moderation_blocked",
                "responsibleaipolicyviolation",
            }
        ),
    ),
    (
        FailureClass.REQUEST,
        frozenset(
            {
                "context_length_exceeded",
                "data_residency_mismatch",
                "deploymentnotfound",
                "exceed_context_size_error",
                "invalid_json_schema",
                "model_not_found",
                "string_above_max_length",
                "unsupported_parameter",
                "unsupported_value",
            }
        ),
    ),
    (
        FailureClass.THROTTLED,
        frozenset(
            {
                "engine_overloaded",
                "overloaded_error",
                "rate_limit_error",
                "rate_limit_exceeded",
                "server_is_overloaded",
                "service_unavailable_error",
                "slow_down",
            }
        ),
    ),
)
"""Codes and types that decide whatever the status says, in order of precedence. Each of them
means that the request was refused before a model ran."""

POLICY_SUFFIX = "content_policy_violation"
"""Providers put the kind of content in front: ``sexual_content_policy_violation``."""

STATUSES: Mapping[int, FailureClass] = {
    401: FailureClass.AUTH,
    402: FailureClass.QUOTA,
    403: FailureClass.AUTH,
    408: FailureClass.UNCERTAIN,
    # Our idempotency key names one attempt, and an attempt is sent once: a conflict can only be
    # with a copy that an intermediary sent, and that one may have gone through.
    409: FailureClass.UNCERTAIN,
    499: FailureClass.UNCERTAIN,
    429: FailureClass.THROTTLED,
    451: FailureClass.POLICY,
}

ENVELOPE_STATUSES: Mapping[int, FailureClass] = {
    500: FailureClass.TRANSIENT,
    503: FailureClass.THROTTLED,
    529: FailureClass.THROTTLED,
}
"""Only with the provider's own error object; a gateway's page says nothing about the model."""

ADVICE: Mapping[FailureClass, str] = {
    FailureClass.TRANSIENT: "the provider had a fault of its own; the call may have been billed",
    FailureClass.THROTTLED: "the provider asks for less traffic; nothing was generated",
    FailureClass.QUOTA: "the account's credit or spending limit is used up; top it up or raise it",
    FailureClass.AUTH: (
        "the provider rejects the API key or its rights; check the key, its project, the region "
        "and access to the model"
    ),
    FailureClass.REQUEST: (
        "the provider refuses this request; check base_url, the model's name, the parameters and "
        "the length of the prompt"
    ),
    FailureClass.POLICY: "the provider's content policy declines the subject; a person must decide",
    FailureClass.UNCERTAIN: (
        "a gateway may have answered in the provider's place; the completion may exist and be "
        "billed, so it is looked up before anything else"
    ),
}


def classify_answer(
    status: int, headers: Mapping[str, str], body: bytes, *, service: str, now: datetime
) -> Failure:
    """The failure in an HTTP answer of ``status`` outside 2xx. ``service`` names who answered."""
    envelope = envelope_in_body(body)
    return describe(
        _class_of(status, envelope),
        envelope,
        status=status,
        headers=headers,
        service=service,
        now=now,
    )


def classify_error_object(
    envelope: ErrorEnvelope,
    *,
    status: int | None,
    headers: Mapping[str, str],
    service: str,
    now: datetime,
    unknown: FailureClass = FailureClass.UNCERTAIN,
) -> Failure:
    """The failure in an error object that came without an HTTP error: inside a 200 or a stream.

    Only a code we know decides, or a code that is itself an HTTP status (OpenRouter); without
    one it is ``unknown``: as a rule the call may have been completed and billed.
    """
    failure_class = _class_of_names(envelope)
    if failure_class is None and envelope.code is not None and envelope.code.isdecimal():
        failure_class = STATUSES.get(int(envelope.code))
    return describe(
        failure_class or unknown,
        envelope,
        status=status,
        headers=headers,
        service=service,
        now=now,
    )


def describe(
    failure_class: FailureClass,
    envelope: ErrorEnvelope | None,
    *,
    status: int | None,
    headers: Mapping[str, str],
    service: str,
    now: datetime,
) -> Failure:
    """The failure in our own words: of the provider's only identifiers are passed on."""
    code = envelope.code if envelope else None
    kind = envelope.type if envelope else None
    facts = [f"HTTP {status}"] if status is not None else ["an error"]
    facts += [f"{name} {value}" for name, value in (("type", kind), ("code", code)) if value]
    if envelope is None:
        facts.append("no error object")
    return Failure(
        failure_class=failure_class,
        message=f"{service} answered {', '.join(facts)}: {ADVICE[failure_class]}",
        code=code,
        type=kind,
        http_status=status,
        request_id=request_id(headers),
        retry_after_s=retry_after_s(headers, now),
    )


def _class_of(status: int, envelope: ErrorEnvelope | None) -> FailureClass:
    if envelope is not None:
        by_names = _class_of_names(envelope)
        if by_names is not None:
            return by_names
        if status == 403 and envelope.moderated:
            return FailureClass.POLICY
        if status in ENVELOPE_STATUSES:
            return ENVELOPE_STATUSES[status]
    if status in STATUSES:
        if status == 429 and envelope is not None and envelope.too_large:
            return FailureClass.REQUEST
        return STATUSES[status]
    return FailureClass.REQUEST if 300 <= status < 500 else FailureClass.UNCERTAIN


def _class_of_names(envelope: ErrorEnvelope) -> FailureClass | None:
    for failure_class, codes in CODES:
        if envelope.names & codes:
            throttled = failure_class is FailureClass.THROTTLED
            if throttled and envelope.out_of_quota:
                return FailureClass.QUOTA
            return FailureClass.REQUEST if throttled and envelope.too_large else failure_class
    if any(name.endswith(POLICY_SUFFIX) for name in envelope.names):
        return FailureClass.POLICY
    return None
