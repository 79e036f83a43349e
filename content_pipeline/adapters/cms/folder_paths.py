"""Which file of a site's folder a canonical path stands for, and which paths are refused.

What belongs here: the pure rule, strict because a path decides where on a disk is written. A web
server decodes a URL before it looks for a file, so a path here is the decoded one.
"""

import re

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

PAGE_FILE = "index.html"

MAX_SEGMENT_BYTES = 255
"""The longest file name of every common file system."""

MAX_PATH_BYTES = 600
"""Thrice as long when percent-encoded, and then still below the 2,048 of a sitemap's URL."""

MAX_SEGMENTS = 16
"""Every step holds a descriptor open while a file is written."""

_FORBIDDEN = re.compile(r'[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff\\%?#:*"<>|]')
"""Spaces and controls, and what a URL or a Windows share gives another meaning."""

_RESERVED_ROOT = re.compile(r"(sitemap|index|robots)(-\d+)?\.(xml|html|txt)", re.IGNORECASE)
"""Files beside the pages; a folder of that name would stand in their way."""


def page_file(path: str) -> str:
    """The file that serves ``path``, relative to the root: ``/a/b/`` is ``a/b/index.html``.

    Raises CallFailed of class invalid_input for a path that cannot or must not be a file.
    """
    problem = _problem(path)
    if problem:
        raise CallFailed(
            Failure(
                failure_class=FailureClass.INVALID_INPUT,
                message=f"the path {path[:80]!a} cannot be published to a folder: {problem}",
            )
        )
    return path[1:] + PAGE_FILE


def _problem(path: str) -> str | None:
    if len(path) < 3 or not (path.startswith("/") and path.endswith("/")):
        return "it must start with and end in a slash and name at least one folder"
    if _FORBIDDEN.search(path):
        return 'it holds a space, a control character or one of \\ % ? # : * " < > |'
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    segments = path[1:-1].split("/")
    if len(segments) > MAX_SEGMENTS:
        return f"it is more than {MAX_SEGMENTS} folders deep"
    if _RESERVED_ROOT.fullmatch(segments[0]):
        return f"{segments[0]} is kept for a file of the site"
    return next(filter(None, map(_segment_problem, segments)), None)


def _segment_problem(segment: str) -> str | None:
    if not segment:
        return "two slashes follow each other"
    if segment.startswith("."):
        return "a folder's name starts with a dot"
    if segment.casefold() == PAGE_FILE:
        return f"a folder cannot be called {PAGE_FILE}"
    if len(segment.encode()) > MAX_SEGMENT_BYTES:
        return f"a folder's name is longer than {MAX_SEGMENT_BYTES} bytes"
    return None
