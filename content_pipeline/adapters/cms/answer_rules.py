"""How the answers of a CMS are classified: tables of rules, first match wins.

What belongs here: what a rule is, finding the one that matches, and the rules that hold for any
service. What a vendor's own codes mean stands in that vendor's table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from content_pipeline.adapters.http_calls import Answer, Call
from content_pipeline.adapters.retry_after import announced_wait_s
from content_pipeline.core.failures import Failure, FailureClass

_LONGEST_CODE = 64
"""The longest code of a vendor has 36 characters; a sentence is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What answers with these statuses and codes mean; an empty set matches everything.

    A question that fails changes nothing, so its class may differ from a write's.
    """

    statuses: frozenset[int] = frozenset()
    codes: frozenset[str] = frozenset()
    announces_wait: bool | None = None
    """Only answers with, or without, a usable Retry-After."""
    reading: FailureClass
    writing: FailureClass
    advice: str


def on(*statuses: int) -> frozenset[int]:
    """Exactly these statuses."""
    return frozenset(statuses)


SUCCESS = frozenset(range(200, 300))
REDIRECTS = frozenset(range(300, 400))
REFUSALS = frozenset(range(400, 500))


def rule(failure_class: FailureClass, advice: str, **when: Any) -> Rule:
    """A rule that means the same for a question and a write."""
    return Rule(reading=failure_class, writing=failure_class, advice=advice, **when)


ANY_SERVICE: tuple[Rule, ...] = (
    rule(
        FailureClass.AUTH,
        "the credentials are not accepted; check them in the environment",
        statuses=on(401),
    ),
    rule(
        FailureClass.AUTH,
        "access is refused, by the CMS or by a firewall before it; give the account the rights to "
        "read and write its pages, or let our address through the firewall",
        statuses=on(403),
    ),
    rule(
        FailureClass.CONFLICT,
        "the page is not what was seen before; nothing was written, it is looked at again",
        statuses=on(409, 412),
    ),
    rule(
        FailureClass.THROTTLED,
        "it asks for less traffic; nothing was written, it is tried again",
        statuses=on(429),
    ),
    rule(
        FailureClass.REQUEST,
        "the page is too large for the server; shorten it or raise the server's limit",
        statuses=on(413),
    ),
    rule(
        FailureClass.REQUEST,
        "nothing answers there that publishes pages, nothing was written; correct the address",
        statuses=on(404, 405, 410),
    ),
    Rule(
        statuses=SUCCESS,
        reading=FailureClass.TRANSIENT,
        writing=FailureClass.UNCERTAIN,
        advice="the answer is not what was asked for, a login page perhaps; the page is looked up "
        "before anything else, check address and proxies",
    ),
    rule(
        FailureClass.REQUEST,
        "it answers with a redirect, which is not followed, nothing was written; set the address "
        "that it redirects to, with https and www as there",
        statuses=REDIRECTS,
    ),
    rule(
        FailureClass.THROTTLED,
        "it is in maintenance; nothing was written, it is tried again",
        statuses=on(503),
        announces_wait=True,
    ),
    Rule(
        statuses=on(408, 499),
        reading=FailureClass.TRANSIENT,
        writing=FailureClass.UNCERTAIN,
        advice="a proxy gave up waiting; it may have taken effect and is looked up first",
    ),
    rule(
        FailureClass.REQUEST,
        "the request is refused, nothing was written; the code tells which part",
        statuses=REFUSALS,
    ),
    Rule(
        reading=FailureClass.TRANSIENT,
        writing=FailureClass.UNCERTAIN,
        advice="the CMS, its database or a proxy failed; what was asked may have taken effect and "
        "is looked up before anything else; see the server's log",
    ),
)
"""The end of a vendor's table: it matches every answer."""


def failure_by(
    rules: Iterable[Rule],
    answer: Answer,
    call: Call,
    *,
    codes: Sequence[str | None],
    told: str,
    service: str,
    now: datetime,
) -> Failure:
    """The failure that ``answer`` means for ``call``, by the first of ``rules`` that matches.

    ``codes`` are the vendor's, the one to pass on first; ``told`` says in words what came instead.
    Of the answer only its status and codes are passed on. ``service`` names who answered.
    """
    code = next(iter(codes), None)
    wait_s = announced_wait_s(answer.headers.get("retry-after"), now)
    found = next(rule for rule in rules if _matches(rule, answer.status, set(codes), wait_s))
    said = f"HTTP {answer.status} {code or told}"
    if answer.status in SUCCESS:
        said = f"HTTP {answer.status} with something else than asked for"
    return Failure(
        failure_class=found.writing if call.writes else found.reading,
        message=f"{service}, {call.doing}: answered {said}: {found.advice}",
        code=code,
        http_status=answer.status,
        retry_after_s=wait_s,
    )


def safe_code(value: Any) -> str | None:
    """``value`` if it is a code: letters, digits, - and _, so never a text or a secret."""
    text = value if isinstance(value, str) and len(value) <= _LONGEST_CODE else ""
    return text if text.replace("_", "").replace("-", "").isalnum() and text.isascii() else None


def _matches(rule: Rule, status: int, codes: set[str | None], wait_s: float | None) -> bool:
    if rule.announces_wait is not None and rule.announces_wait is not (wait_s is not None):
        return False
    return (not rule.statuses or status in rule.statuses) and (
        not rule.codes or not rule.codes.isdisjoint(codes)
    )
