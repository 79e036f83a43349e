"""The text of a page back out of its web page, as ``page_html`` wrote it or a person left it.

What belongs here: finding title, description and body again, so that people can compare two texts
and the pipeline can tell whether a page still says what our mark on it claims.
"""

import html
import re

from content_pipeline.core.cms import Marker, RemoteContent
from content_pipeline.core.identity import content_hash

_TITLE = re.compile(r"<h1>(.*?)</h1>", re.DOTALL)
_DESCRIPTION = re.compile(r'<meta name="description" content="([^"]*)">')
_BODY = re.compile(r"<article>\s*<h1>.*?</h1>\n(.*)\n</article>", re.DOTALL)


def read_page(page: bytes) -> RemoteContent:
    """What ``page`` says; a part that cannot be found is empty, a lost body is the whole page."""
    text = page.decode(errors="replace")
    body = _BODY.search(text)
    return RemoteContent(
        title=_first(_TITLE, text),
        meta_description=_first(_DESCRIPTION, text),
        body_html=body[1] if body else text,
    )


def says_what_it_is_marked(content: RemoteContent, marker: Marker | None) -> bool:
    """Whether ``content`` is, to the letter, the text that ``marker`` was made for."""
    if marker is None:
        return False
    held = content_hash(content.title, content.meta_description, content.body_html)
    return held == marker.content_hash


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return html.unescape(found[1]) if found else ""
