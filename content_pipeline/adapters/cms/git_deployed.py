"""Which commit of the repository visitors see, as the site itself says.

What belongs here: reading the one small text, over HTTP or from a file, that the deployment writes
when it has put a commit in place.
"""

import re
from pathlib import Path

import httpx2

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

MOST_BYTES = 4096
"""The text holds one commit id; what is longer is a web page about something else."""

DEADLINE_S = 10.0
"""Of each step of the request."""

_COMMIT = re.compile(rb"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")


def deployed_commit(where: str) -> str:
    """The commit id that stands at ``where``, an http(s) URL or a file.

    Raises CallFailed (transient) when there is none to be read.
    """
    try:
        text = _fetched(where) if "://" in where else _start_of(Path(where))
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise _unreadable(where, f"{type(error).__name__}") from error
    found = _COMMIT.search(text)
    if found is None:
        raise _unreadable(where, "no commit id stands there")
    return found[0].decode()


def _fetched(url: str) -> bytes:
    headers = {"Cache-Control": "no-cache"}
    with httpx2.stream(
        "GET", url, headers=headers, timeout=DEADLINE_S, follow_redirects=True
    ) as answer:
        answer.raise_for_status()
        return next(answer.iter_bytes(MOST_BYTES), b"")


def _start_of(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES)


def _unreadable(where: str, why: str) -> CallFailed:
    return CallFailed(
        Failure(
            failure_class=FailureClass.TRANSIENT,
            message=f"the deployed commit cannot be read from {where}: {why}; let the deployment "
            "write the commit's id there",
        )
    )
