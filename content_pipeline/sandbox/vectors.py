"""Vectors that the sandbox provider makes of texts: the same text the same, alike texts alike.

What belongs here: pure functions. Words, pairs of words and runs of letters are counted into
places given by their checksum: texts that share wording share places. Nothing of it is random.
"""

import math
import re
import zlib
from collections.abc import Iterator

_WORD = re.compile(r"\w+")

LETTERS = 4
"""Length of the runs of letters, by which "river" and "rivers" have something in common."""

WEIGHTS = {"word": 1.0, "pair": 0.5, "letters": 0.25}
"""A shared word says more than some shared letters; order counts, and less than wording."""


def vector_of(text: str, dimensions: int, length: int) -> list[float]:
    """A vector of ``length`` one: the first ``dimensions`` numbers of one of ``length`` places.

    As with real models, fewer dimensions are the beginning of the whole vector, made one again.
    """
    places = [0.0] * length
    for kind, feature in _features(text.casefold()):
        checksum = zlib.crc32(f"{kind} {feature}".encode())
        sign = 1.0 if checksum & 1 else -1.0
        places[(checksum >> 1) % length] += sign * WEIGHTS[kind]
    kept = places[:dimensions]
    size = math.sqrt(sum(value * value for value in kept))
    if size == 0:  # nothing of the text fell into the kept places, or it has no words at all
        kept[zlib.crc32(text.encode()) % dimensions] = size = 1.0
    return [value / size for value in kept]


def _features(text: str) -> Iterator[tuple[str, str]]:
    words = _WORD.findall(text)
    for number, word in enumerate(words):
        yield "word", word
        if number:
            yield "pair", f"{words[number - 1]} {word}"
        padded = f"_{word}_"
        for start in range(max(1, len(padded) - LETTERS + 1)):
            yield "letters", padded[start : start + LETTERS]
