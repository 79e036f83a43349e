"""What an answer of WordPress, or of whatever stands before it, means: one table.

What belongs here: the rules, each by status and WordPress's own error code, first match wins. A
question that fails changes nothing, so its class differs from a write's with the same answer. What
no answer at all means is decided in ``http_calls``.
"""

from collections.abc import Mapping
from datetime import datetime

from content_pipeline.adapters.cms.answer_rules import (
    REDIRECTS,
    REFUSALS,
    SUCCESS,
    Rule,
    failure_by,
    on,
    safe_code,
)
from content_pipeline.adapters.http_calls import Answer, Call
from content_pipeline.core.failures import Failure, FailureClass

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
        statuses=on(401),
        reading=FailureClass.AUTH,
        writing=FailureClass.AUTH,
        advice="the credentials are not accepted; check user and application password, and that "
        "the site is reached by https, without which WordPress takes none",
    ),
    Rule(
        statuses=on(403),
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
        statuses=on(409, 412),
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
        statuses=on(429),
        reading=FailureClass.THROTTLED,
        writing=FailureClass.THROTTLED,
        advice="the host asks for less traffic; nothing was written, it is tried again",
    ),
    Rule(
        statuses=on(413),
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
        statuses=on(404),
        reading=FailureClass.REQUEST,
        writing=FailureClass.REQUEST,
        advice="no REST API was found there, nothing was written; correct the site's address and "
        "choose a permalink structure other than Plain",
    ),
    # --- what may have happened ------------------------------------------------------------------
    Rule(
        statuses=SUCCESS,
        reading=FailureClass.TRANSIENT,
        writing=FailureClass.UNCERTAIN,
        advice="the answer is not what WordPress sends: a login page, or a plugin prints something "
        "before it; the page is looked up before anything else, check plugins and proxies",
    ),
    Rule(
        statuses=REDIRECTS,
        reading=FailureClass.REQUEST,
        writing=FailureClass.REQUEST,
        advice="it answers with a redirect, which is not followed, nothing was written; set the "
        "address that WordPress itself shows, with https and www as there",
    ),
    Rule(
        statuses=on(503),
        announces_wait=True,
        reading=FailureClass.THROTTLED,
        writing=FailureClass.THROTTLED,
        advice="it is in maintenance; nothing was written, it is tried again",
    ),
    Rule(
        statuses=on(408, 499),
        reading=FailureClass.TRANSIENT,
        writing=FailureClass.UNCERTAIN,
        advice="a proxy gave up waiting; it may have taken effect and is looked up first",
    ),
    Rule(
        statuses=REFUSALS,
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
    return failure_by(
        RULES,
        answer,
        call,
        codes=[code, *details],
        told="without WordPress's error object",
        service=service,
        now=now,
    )


def error_code(answer: Answer) -> str | None:
    """WordPress's own code of an error; None when the answer is no error of WordPress."""
    return _codes(answer)[0]


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
    found = (safe_code(detail.get("code")) for detail in inner if isinstance(detail, Mapping))
    return safe_code(document.get("code")), frozenset(filter(None, found))
