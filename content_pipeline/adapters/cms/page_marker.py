"""Our mark in a web page: written into its head, and read back from whatever stands there now.

What belongs here: the text form of a mark and the strict search for it. Anything but exactly one
well-formed mark in the head counts as no mark, so the page is taken for somebody else's.
"""

import re
from html.parser import HTMLParser

from content_pipeline.core.cms import Marker

META_NAME = "content-pipeline"

INDEX_MARK = "index"
"""The mark of a page that lists others and is written anew whenever they change."""

HEAD_BYTES = 64 * 1024
"""Our mark stands in the first kilobyte; a stranger's file may be of any size."""

FED_CHARACTERS = 1024
"""At a time: our own head is over after two of these."""

_MARK = re.compile(r"page=([A-Za-z0-9_.-]{1,64}) rev=([1-9][0-9]{0,9}) hash=([A-Za-z0-9]{1,64})")


def format_marker(marker: Marker) -> str:
    """The mark as the content of the page's meta element."""
    return f"page={marker.page_id} rev={marker.revision} hash={marker.content_hash}"


def parse_marker(text: str | None) -> Marker | None:
    """The marker in ``text``, or None when it is not exactly one of ours."""
    match = _MARK.fullmatch(text or "")
    if match is None:
        return None
    return Marker(page_id=match[1], revision=int(match[2]), content_hash=match[3])


def mark_of(page: bytes) -> str | None:
    """The content of the page's one mark; None when its head holds none, or more than one."""
    reader = _HeadReader()
    text = page[:HEAD_BYTES].decode(errors="replace")
    try:
        for start in range(0, len(text), FED_CHARACTERS):
            reader.feed(text[start : start + FED_CHARACTERS])
            if not reader.in_head:  # the rest is most of the page, and cannot hold a mark
                break
    except AssertionError:  # how html.parser of Python 3.11 refuses the likes of `<![x[`
        return None
    return reader.marks[0] if len(reader.marks) == 1 else None


class _HeadReader(HTMLParser):
    """Collects the marks of a document's head; a body may quote whatever it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[str | None] = []
        self.in_head = True
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body":
            self.in_head = False
        elif tag == "title":
            # Python 3.11 reads a title as markup; browsers, and later versions, read it as text.
            self._in_title = True
        elif tag == "meta" and self.in_head and not self._in_title:
            found = dict(attrs)
            if found.get("name") == META_NAME:
                self.marks.append(found.get("content"))

    def handle_endtag(self, tag: str) -> None:
        if tag == "head":
            self.in_head = False
        elif tag == "title":
            self._in_title = False
