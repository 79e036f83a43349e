"""How a slug comes about: from a title or a wish, and made unique among siblings.

What belongs here: pure text rules, as measured: folded umlauts, 200 bytes, suffixes from 2 on.
"""

import re
import unicodedata
from collections.abc import Callable
from urllib.parse import quote

LONGEST = 200
"""Bytes of the column."""

_RESERVED = re.compile(r"(?:page)?\d+|feed|rdf|rss2?|atom|embed")
"""What a URL below a page means something else by."""

_FOLDED = str.maketrans(
    {
        "ß": "s", "Æ": "AE", "æ": "ae", "Ø": "O", "ø": "o", "Œ": "OE", "œ": "oe", "Ł": "L",
        "ł": "l", "Đ": "D", "đ": "d", "Þ": "TH", "þ": "th", "ð": "d", "€": "E", "£": "",
    }
)  # fmt: skip
"""Letters that do not decompose into a base letter and an accent."""


def sanitised_slug(wish: str) -> str:
    """``wish`` as a slug: ASCII in lower case, other scripts percent-encoded; may be empty."""
    text = re.sub(r"<[^>]*>", "", wish)
    text = _without_accents(text)
    octets = re.sub(r"%(?![0-9a-fA-F]{2})", "", text)
    encoded = _encoded(octets.lower()).lower()
    encoded = re.sub(r"&[^;\s]+;", "", encoded)
    encoded = re.sub(r"[./]|%c2%a0|%e2%80%9[34]", "-", encoded)
    encoded = re.sub(r"[^%a-z0-9 _-]", "", encoded)
    return re.sub(r"-+", "-", re.sub(r"\s+", "-", encoded)).strip("-")


def _without_accents(text: str) -> str:
    """Latin letters without their accents; other scripts keep theirs."""
    if text.isascii():
        return text
    return "".join(map(_bare, unicodedata.normalize("NFC", text.translate(_FOLDED))))


def _bare(letter: str) -> str:
    decomposed = unicodedata.normalize("NFKD", letter)
    bare = "".join(part for part in decomposed if not unicodedata.combining(part))
    return bare if bare.isascii() else letter


def _encoded(text: str) -> str:
    """``text`` with everything beyond ASCII percent-encoded, cut to the column by whole letters."""
    parts: list[str] = []
    length = 0
    for letter in text:
        part = letter if letter.isascii() else quote(letter.encode(errors="replace"))
        length += len(part)
        if length > LONGEST:
            break
        parts.append(part)
    return "".join(parts)


def unique_slug(slug: str, is_taken: Callable[[str], bool]) -> str:
    """``slug``, or its first free successor: ``slug-2``, then ``slug-3``."""
    if not slug or not (_RESERVED.fullmatch(slug) or is_taken(slug)):
        return slug
    number = 2
    while True:
        ending = f"-{number}"
        candidate = slug[: LONGEST - len(ending)].rstrip("-") + ending
        if not is_taken(candidate):
            return candidate
        number += 1
