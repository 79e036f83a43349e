"""What a refusal of a webhook's receiver, or of whatever stands before it, means: one table.

What belongs here: the codes of the contract (``docs/webhook-contract.md``); behind them the rules
that hold for any service. What no answer at all means is decided in ``http_calls``.
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

RULES: tuple[Rule, ...] = (
    rule(
        FailureClass.AUTH,
        "the signature is not accepted: the signing keys differ, or the clocks do; set the same "
        "key on both sides, and let both keep time by NTP",
        codes=frozenset({"signature"}),
    ),
    rule(
        FailureClass.CONFLICT,
        "the page is not what was seen before; nothing was written, it is looked at again",
        codes=frozenset({"changed"}),
    ),
    rule(
        FailureClass.CONFLICT,
        "a page of ours, or another one at the address, exists already; nothing was written",
        codes=frozenset({"exists", "taken"}),
    ),
    rule(
        FailureClass.TERMINAL,
        "the receiver refuses this page for good, nothing was written; its log says why",
        codes=frozenset({"refused"}),
    ),
    rule(
        FailureClass.REQUEST,
        "the receiver cannot do that, nothing was written; correct the capabilities that it "
        "declares, or those of the site's file",
        codes=frozenset({"unsupported"}),
    ),
    rule(
        FailureClass.TRANSIENT,
        "the receiver failed and says that nothing was written; it is tried again",
        codes=frozenset({"not_written"}),
    ),
    rule(
        FailureClass.AUTH,
        "the signature is not accepted; set the same signing key on both sides",
        statuses=on(401),
    ),
    *ANY_SERVICE,
)


def failure_in(answer: Answer, call: Call, *, service: str, now: datetime) -> Failure:
    """The failure that ``answer`` means for ``call``: it is not what was asked for."""
    code = _code(answer)
    return failure_by(
        RULES,
        answer,
        call,
        codes=[] if code is None else [code],
        told="without a code of the contract",
        service=service,
        now=now,
    )


def _code(answer: Answer) -> str | None:
    try:
        document = answer.document()
    except ValueError:
        return None
    error = document.get("error") if isinstance(document, Mapping) else None
    return safe_code(error.get("code")) if isinstance(error, Mapping) else None
