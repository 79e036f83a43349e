"""Causes: failures that differ in their values alone are one cause, which a person ends at once.

What belongs here: folding a message to what its pages have in common, the fingerprint of a cause,
and what a person can do about a class. Which pages fail is the ledger's to say.
"""

import re
from dataclasses import dataclass

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.identity import digest

PREFIX = "cause:"
"""Begins every fingerprint. No topic id, path or page id holds a colon at its sixth place, so a
command can take either."""

FINGERPRINT_LENGTH = 8
"""Hex digits: a site has a few dozen causes at most."""

LONGEST_CAUSE = 300
"""Characters of a folded message that tell causes apart; a provider's essay is cut."""

_QUOTED = re.compile(r"(?<!\w)(?<!column )(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?!\w)")
"""A value as ``repr`` writes it. A column's name stays: it is the cause ("price is empty")."""

_ROW = re.compile(r"\brow \d+(?: \([^()]*\))?")
_ADDRESS = re.compile(r"\bhttps?://[^\s'\"]+|(?<![\w/<])/(?!\S*\.py:\d)[^\s;,'\"]*/[^\s;,'\"]*")
"""A URL or a path, but not the place in our own code that failed: that is the cause."""

_ID = re.compile(
    r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b(?=\w*[A-Za-z])(?=\w*\d)\w{4,}\b"
)
"""A word of letters and digits: req_8f3a, and the parts of chatcmpl-9Xy7abcd."""

_NUMBER = re.compile(r"(?<!\d)(?<!\.py:)\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What failed pages have in common."""

    fingerprint: str
    failure_class: FailureClass
    text: str
    """The message without its values."""


def cause_of(failure_class: FailureClass, message: str) -> Cause:
    """The cause that a failure's class and message stand for."""
    text = folded(message)
    key = digest("cause", failure_class, text)[:FINGERPRINT_LENGTH]
    return Cause(fingerprint=PREFIX + key, failure_class=failure_class, text=text)


def folded(message: str) -> str:
    """``message`` without quoted values, rows, addresses, numbers and ids."""
    text = _QUOTED.sub("…", message)
    text = _ROW.sub("row …", text)
    text = _ADDRESS.sub("…", text)
    text = _ID.sub("#", text)
    text = " ".join(_NUMBER.sub("#", text).split())
    text = text.removesuffix(": …")
    return text if len(text) <= LONGEST_CAUSE else text[: LONGEST_CAUSE - 1] + "…"


WHAT_TO_DO: dict[FailureClass, str] = {
    FailureClass.NOT_SENT: "make the service reachable, then `repair retry`",
    FailureClass.TRANSIENT: "wait until the service is well, then `repair retry`",
    FailureClass.THROTTLED: "ask for a higher limit or lower in_flight, then `repair retry`",
    FailureClass.QUOTA: "top up the account, then `repair retry`",
    FailureClass.AUTH: "correct the credentials, then `repair retry`",
    FailureClass.REQUEST: "correct prompt, model or limits and run; or `repair fix-input`",
    FailureClass.POLICY: "change the row or drop it; asking again is not allowed",
    FailureClass.BAD_OUTPUT: "change prompt, schema or limits and run; or `repair retry`",
    FailureClass.UNCERTAIN: "`repair retry`: the other side is asked before anything is repeated",
    FailureClass.INVALID_INPUT: "correct the table and run, or `repair fix-input`",
    FailureClass.INVALID_PAGE: "correct prompt, rules or row and run; or `repair regenerate`",
    FailureClass.TERMINAL: "correct the table and run",
    FailureClass.CONFLICT: "decide whose page it is, put it back or remove it, then `repair retry`",
    FailureClass.STORAGE: "free or fix the disk, then `repair retry`",
    FailureClass.BUDGET: "raise the cap in the site file, then `repair retry`",
    FailureClass.INTERNAL: "report it with `repair show`; after an update, `repair retry`",
}
"""What ends a cause, in the words of the command line."""
