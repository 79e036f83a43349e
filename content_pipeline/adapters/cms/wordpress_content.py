"""The content of a WordPress page: our text with our mark in it, and the text back out of it.

What belongs here: composing and taking apart, so that a page read back equals what was published.
The mark is an HTML comment inside the first element: editors and filters keep it there, and outside
of one WordPress would make an empty paragraph of it. Its first part is what is searched for.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from content_pipeline.core.cms import Document, Marker

_MARK = re.compile(
    r"<!-- cp:key=([A-Za-z0-9_.-]{1,64}) rev=([1-9][0-9]{0,9}) h=([A-Za-z0-9]{1,64}) -->"
)
_FIRST_TAG = re.compile(r"<[a-z][a-z0-9]*(?: [^<>]*)?>")
_JSON_LD = re.compile(r'\n<script type="application/ld\+json">[^<]*</script>\Z')

_JSON_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
"""No ``<`` inside a script element, so that none can end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a page's content turned out to be."""

    marker: Marker | None
    """None when it holds no mark, or more than one."""
    body_html: str
    """Without our mark and our JSON-LD."""


def search_token(page_id: str) -> str:
    """What the content of every page with our mark for ``page_id`` holds."""
    return f"cp:key={page_id}"


def compose(document: Document, *, json_ld: bool) -> str:
    """The content that holds ``document``."""
    mark, body = _format(document.marker), document.body_html
    first = _FIRST_TAG.match(body)
    at = first.end() if first else 0
    script = _script(document.json_ld) if json_ld else ""
    return body[:at] + mark + body[at:] + script


def take_apart(content: str) -> Content:
    """The mark and the text in the raw ``content`` of any page."""
    marks = list(_MARK.finditer(content))
    if len(marks) != 1:
        return Content(marker=None, body_html=content)
    mark = marks[0]
    text = content[: mark.start()] + content[mark.end() :]
    return Content(
        marker=Marker(page_id=mark[1], revision=int(mark[2]), content_hash=mark[3]),
        body_html=_JSON_LD.sub("", text),
    )


def _format(marker: Marker) -> str:
    token = search_token(marker.page_id)
    return f"<!-- {token} rev={marker.revision} h={marker.content_hash} -->"


def _script(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True).translate(_JSON_IN_SCRIPT)
    return f'\n<script type="application/ld+json">{text}</script>'
