"""What git says when it fails, as the class of failure it means.

What belongs here: reading git's words, and taking out of them what may be shown. Git has exit
statuses for nothing but success; its words are stable under ``LC_ALL=C``.
"""

import re
from enum import StrEnum

from content_pipeline.adapters.cms.git_command import Finished
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

MOST_SHOWN = 200
"""Characters of git's words in a message."""

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@|\b(?:ghp|gho|ghs|glpat|github_pat)[_-]\S+")

_AUTH = (
    *("Authentication failed", "could not read Username", "could not read Password"),
    *("Permission denied", "returned error: 401", "returned error: 403", "Access denied"),
    *("terminal prompts disabled", "Host key verification failed", "access denied or repository"),
    *("Repository not found", "repository '", "does not appear to be a git repository"),
    *("service not enabled", "dubious ownership"),
)
_FORBIDDEN = (
    *("protected branch", "Protected branch", "not allowed to push", "read-only", "archived"),
    *("deny updating", "not permitted to push", "insufficient permission"),
)
_NOT_SENT = (
    *("Could not resolve host", "Failed to connect", "Couldn't connect", "Connection refused"),
    *("unable to connect", "No route to host", "Network is unreachable", "Name or service not"),
    *("Could not resolve hostname", "SSL certificate problem", "connect to host"),
)
_NO_BRANCH = ("couldn't find remote ref",)
_NO_SPACE = ("No space left on device", "Disk quota exceeded")
_BROKEN_CLONE = ("object file", "bad object", "not a git repository", "loose object", "index-pack")


class Refusal(StrEnum):
    """What a push that reached the other side came to."""

    MOVED = "moved"
    """The branch is not what the push expected."""
    LOCKED = "locked"
    """A lock file stands in the remote repository."""
    REFUSED = "refused"
    """A hook or a rule of the remote repository declined it."""
    FORBIDDEN = "forbidden"
    """Nobody like us may push to the branch, whatever it is."""
    UNSTORED = "unstored"
    """The remote repository could not store what it was sent."""


_REJECTED = re.compile(r"^!\t[^\t]*\t(.*)$", re.MULTILINE)
_MOVED = ("stale info", "fetch first", "non-fast-forward", "but expected", "reference already")


def refusal_of(push: Finished) -> tuple[Refusal, str] | None:
    """What the remote repository made of a push, and its words; None when it did not say."""
    rejected = _REJECTED.search(push.output.decode(errors="replace"))
    if rejected is None:
        return None
    said = f"{rejected[1]}\n{push.errors}"
    if any(word in said for word in _MOVED):
        return Refusal.MOVED, shown(rejected[1])
    if "File exists" in said:
        return Refusal.LOCKED, remote_words(push.errors) or shown(rejected[1])
    if "unpack" in rejected[1] or any(word in said for word in _NO_SPACE):
        return Refusal.UNSTORED, remote_words(push.errors) or shown(rejected[1])
    if any(word in said for word in _FORBIDDEN):
        return Refusal.FORBIDDEN, remote_words(push.errors) or shown(rejected[1])
    return Refusal.REFUSED, remote_words(push.errors) or shown(rejected[1])


def failed(doing: str, finished: Finished, *, lost: FailureClass) -> CallFailed:
    """The failure of a command; ``lost`` is the class of one that was cut off in the middle."""
    failure_class, advice = _meaning(finished, lost)
    words = "it did not end in time" if not finished.in_time else shown(_last_words(finished))
    return CallFailed(
        Failure(
            failure_class=failure_class,
            message=f"{doing} failed: {words or f'exit status {finished.status}'}; {advice}",
            code=str(finished.status),
        )
    )


def _meaning(finished: Finished, lost: FailureClass) -> tuple[FailureClass, str]:
    said = finished.errors
    ours = "\n".join(line for line in said.splitlines() if not line.startswith("remote:"))
    if not finished.in_time:
        return lost, "the remote is asked again later"
    if any(word in said for word in _NO_BRANCH):
        return FailureClass.REQUEST, "push the site to that branch first, or correct `cms.branch`"
    if any(word in ours for word in _NO_SPACE):
        return FailureClass.STORAGE, "free space on the local disk, then retry"
    if any(word in said for word in _NOT_SENT):
        return FailureClass.NOT_SENT, "check the remote's address and the network"
    if any(word in said for word in _AUTH):
        return FailureClass.AUTH, "check the remote's address, the credentials and their rights"
    if any(word in ours for word in _BROKEN_CLONE):
        return FailureClass.STORAGE, "the local copy may be damaged; delete it, it is made anew"
    return lost, "the remote is asked again later"


def _last_words(finished: Finished) -> str:
    """The line that says most: the first fatal one, else the last."""
    lines = [line.strip() for line in finished.errors.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:", "remote:"))]
    return (fatal or lines or [""])[0]


def remote_words(errors: str) -> str:
    """The first line that the remote's own hook or git said."""
    lines = (
        line.removeprefix("remote:").strip() for line in errors.splitlines() if "remote:" in line
    )
    return shown(next(filter(None, lines), ""))


def shown(words: str) -> str:
    """``words`` as one line that may be shown: no credentials, no controls, not endless."""
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return _CREDENTIALS.sub("***@", line)[:MOST_SHOWN]
