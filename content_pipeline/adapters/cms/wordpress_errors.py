"""What an answer of WordPress, or of whatever stands before it, means: one table.

What belongs here: the rules, each by status and WordPress's own error code, first match wins. A
question that fails changes nothing, so its class differs from a write's with the same answer. What
no answer at all means is decided in ``http_calls``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from content_pipeline.adapters.http_calls import Answer, Call
from content_pipeline.adapters.retry_after import announced_wait_s
from content_pipeline.core.failures import Failure, FailureClass

_LONGEST_CODE = 64
"""The longest code of WordPress itself has 36 characters; a sentence is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What answers with these statuses and codes mean; an empty set matches everything."""

    statuses: frozenset[int] = frozenset()
    codes: frozenset[str] = frozenset()
    announces_wait: bool | None = None
    """Only answers with, or without, a usable Retry-After."""
    reading: FailureClass
    writing: FailureClass
    advice: str


def _on(*statuses: int) -> frozenset[int]:
    return frozenset(statuses)


_SUCCESS = frozenset(range(200, 300))
_REDIRECTS = frozenset(range(300, 400))
_REFUSALS = frozenset(range(400, 500))

RULES: tuple[Rule, ...] = (
    # --- who we are -----------------------------------------------------------------------------
    Rule(
        codes=frozenset({"incorrect_password", "invalid_username", "invalid_email"}),
        reading=FailureClass.AUTH,
        writing=FailureClass.AUTH,
        advice="the user or the application password is wrong or was revoked; create a new "
        "application password and set it in the environment",
    ),
    Rule(
        codes=frozenset({"rest_cannot_publish", "rest_cannot_edit", "rest_cannot_delete"}),
        reading=FailureClass.AUTH,
        writing=FailureClass.AUTH,
        advice="the user lacks the right to publish, edit or delete it; give the user the role "
        "of an editor",
    ),
    Rule(
        statuses=_on(401),
        reading=FailureClass.AUTH,
        writing=FailureClass.AUTH,
        advice="the credentials are not accepted; check user and application password, and that "
        "the site is reached by https, without which WordPress takes none",
    ),
    Rule(
        statuses=_on(403),
        reading=FailureClass.AUTH,
        writing=FailureClass.AUTH,
        advice="access is refused, by WordPress or by a firewall before it; give the user the role "
        "of an editor, or let our address through the firewall",
    ),
    Rule(
        codes=frozenset({"rest_forbidden_status", "rest_forbidden_context"}),
        reading=FailureClass.AUTH,
        writing=FailureClass.AUTH,
        advice="who asks may not see drafts, so nothing can be said; check user and application "
        "password, and give the user the role of an editor",
    ),
    # --- who else writes ------------------------------------------------------------------------
    Rule(
        codes=frozenset({"content_pipeline_busy"}),
        reading=FailureClass.THROTTLED,
        writing=FailureClass.THROTTLED,
        advice="another write of the same page is running; nothing was written, it is tried again",
    ),
    Rule(
        codes=frozenset({"content_pipeline_known_key", "content_pipeline_taken"}),
        reading=FailureClass.CONFLICT,
        writing=FailureClass.CONFLICT,
        advice="a page with our mark, or one at its address, exists already; nothing was written",
    ),
    Rule(
        statuses=_on(409, 412),
        reading=FailureClass.CONFLICT,
        writing=FailureClass.CONFLICT,
        advice="the page is not what was seen before; nothing was written, it is looked at again",
    ),
    Rule(
        codes=frozenset({"rest_post_exists", "rest_post_invalid_id", "rest_already_trashed"}),
        reading=FailureClass.CONFLICT,
        writing=FailureClass.CONFLICT,
        advice="the page or its parent was removed or created meanwhile; it is looked at again",
    ),
    # --- how much ------------------------------------------------------------------------------
    Rule(
        statuses=_on(429),
        reading=FailureClass.THROTTLED,
        writing=FailureClass.THROTTLED,
        advice="the host asks for less traffic; nothing was written, it is tried again",
    ),
    Rule(
        statuses=_on(413),
        reading=FailureClass.REQUEST,
        writing=FailureClass.REQUEST,
        advice="the page is too large for the server; shorten it or raise the server's limit",
    ),
    # --- what ----------------------------------------------------------------------------------
    Rule(
        codes=frozenset({"db_insert_error", "db_update_error"}),
        reading=FailureClass.TERMINAL,
        writing=FailureClass.TERMINAL,
        advice="the database refuses this text, most often for its length or a character it cannot "
        "hold; nothing was written, shorten the title or the text",
    ),
    Rule(
        codes=frozenset({"rest_trash_not_supported"}),
        reading=FailureClass.REQUEST,
        writing=FailureClass.REQUEST,
        advice="the site has no trash (EMPTY_TRASH_DAYS is 0), so nothing was removed; remove the "
        "page by hand",
    ),
    Rule(
        codes=frozenset({"rest_no_route"}),
        reading=FailureClass.REQUEST,
        writing=FailureClass.REQUEST,
        advice="the REST API has no such route, nothing was written; allow wp/v2 for the user, or "
        "correct content_type",
    ),
    Rule(
        statuses=_on(404),
        reading=FailureClass.REQUEST,
        writing=FailureClass.REQUEST,
        advice="no REST API was found there, nothing was written; correct the site's address and "
        "choose a permalink structure other than Plain",
    ),
    # --- what may have happened ------------------------------------------------------------------
    Rule(
        statuses=_SUCCESS,
        reading=FailureClass.TRANSIENT,
        writing=FailureClass.UNCERTAIN,
        advice="the answer is not what WordPress sends: a login page, or a plugin prints something "
        "before it; the page is looked up before anything else, check plugins and proxies",
    ),
    Rule(
        statuses=_REDIRECTS,
        reading=FailureClass.REQUEST,
        writing=FailureClass.REQUEST,
        advice="it answers with a redirect, which is not followed, nothing was written; set the "
        "address that WordPress itself shows, with https and www as there",
    ),
    Rule(
        statuses=_on(503),
        announces_wait=True,
        reading=FailureClass.THROTTLED,
        writing=FailureClass.THROTTLED,
        advice="it is in maintenance; nothing was written, it is tried again",
    ),
    Rule(
        statuses=_on(408, 499),
        reading=FailureClass.TRANSIENT,
        writing=FailureClass.UNCERTAIN,
        advice="a proxy gave up waiting; it may have taken effect and is looked up first",
    ),
    Rule(
        statuses=_REFUSALS,
        reading=FailureClass.REQUEST,
        writing=FailureClass.REQUEST,
        advice="the request is refused, nothing was written; the code tells which part",
    ),
    Rule(
        reading=FailureClass.TRANSIENT,
        writing=FailureClass.UNCERTAIN,
        advice="the site, its database or a proxy failed; what was asked may have taken effect and "
        "is looked up before anything else; see the server's error log",
    ),
)


def failure_in(answer: Answer, call: Call, *, service: str, now: datetime) -> Failure:
    """The failure that ``answer`` means for ``call``: it is not what was asked for.

    ``service`` names who answered. Of the answer only its status and codes are passed on.
    """
    code, details = _codes(answer)
    wait_s = announced_wait_s(answer.headers.get("retry-after"), now)
    rule = next(rule for rule in RULES if _matches(rule, answer.status, {code, *details}, wait_s))
    told = f"HTTP {answer.status}" + (f" {code}" if code else " without WordPress's error object")
    if answer.status in _SUCCESS:
        told = f"HTTP {answer.status} with something else than asked for"
    return Failure(
        failure_class=rule.writing if call.writes else rule.reading,
        message=f"{service}, {call.doing}: answered {told}: {rule.advice}",
        code=code,
        http_status=answer.status,
        retry_after_s=wait_s,
    )


def error_code(answer: Answer) -> str | None:
    """WordPress's own code of an error; None when the answer is no error of WordPress."""
    return _codes(answer)[0]


def _matches(rule: Rule, status: int, codes: set[str | None], wait_s: float | None) -> bool:
    if rule.announces_wait is not None and rule.announces_wait is not (wait_s is not None):
        return False
    return (not rule.statuses or status in rule.statuses) and (
        not rule.codes or not rule.codes.isdisjoint(codes)
    )


def _codes(answer: Answer) -> tuple[str | None, frozenset[str]]:
    """The error's code, and the codes of the parameters that it is about."""
    try:
        document = answer.document()
    except ValueError:
        return None, frozenset()
    if not isinstance(document, Mapping):
        return None, frozenset()
    data = document.get("data")
    details = data.get("details") if isinstance(data, Mapping) else None
    inner = details.values() if isinstance(details, Mapping) else ()
    found = (_safe(detail.get("code")) for detail in inner if isinstance(detail, Mapping))
    return _safe(document.get("code")), frozenset(filter(None, found))


def _safe(value: Any) -> str | None:
    """``value`` if it is a code: letters, digits and underscores, so never a text or a secret."""
    text = value if isinstance(value, str) and len(value) <= _LONGEST_CODE else ""
    return text if text.replace("_", "").replace("-", "").isalnum() and text.isascii() else None
