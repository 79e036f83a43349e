"""Vectors: what an embedding says of a text, kept as bytes, and how alike two of them are.

What belongs here: the one form in which vectors are kept and compared, and what makes one unusable.
Which pages are compared is asked in ``operations.similarity``.
"""

import math
import struct
from collections.abc import Iterable, Sequence

from content_pipeline.core.identity import digest

BYTES_PER_NUMBER = 4
"""Little-endian float32, as providers send them: 6 kB for 1,536 numbers, which as JSON are 20."""

MOST_NUMBERS = 16_384
"""Four times the longest that any provider in the price list offers; more can only be a fault."""

KNOWN_LENGTHS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
"""Numbers of a model's vector when no other length is asked for."""


class NotAVector(ValueError):
    """The numbers are no usable vector; the message tells what is wrong with them."""


def packed(values: Iterable[float]) -> bytes:
    """The vector of ``values``. Raises NotAVector for a number that float32 cannot hold."""
    numbers = list(values)
    try:
        return struct.pack(f"<{len(numbers)}f", *numbers)
    except (OverflowError, struct.error):
        raise NotAVector("it holds something that is no number of a vector") from None


def unpacked(vector: bytes) -> tuple[float, ...]:
    """The numbers of ``vector``."""
    return struct.unpack(f"<{length_of(vector)}f", vector)


def length_of(vector: bytes) -> int:
    """How many numbers ``vector`` holds. Raises NotAVector for bytes that are not all numbers."""
    length, rest = divmod(len(vector), BYTES_PER_NUMBER)
    if rest:
        raise NotAVector(f"{len(vector)} bytes are no whole numbers")
    return length


def check(vector: bytes, *, model: str, dimensions: int | None) -> None:
    """Raise NotAVector unless ``vector`` can be kept and compared.

    ``dimensions``: the length that was asked for; None means the model's own, where it is known.
    """
    length = length_of(vector)
    expected = dimensions or KNOWN_LENGTHS.get(model)
    if not 0 < length <= MOST_NUMBERS:
        raise NotAVector(f"it has {length} numbers")
    if expected is not None and length != expected:
        raise NotAVector(f"it has {length} numbers where {expected} were expected")
    numbers = unpacked(vector)
    if not all(map(math.isfinite, numbers)):
        raise NotAVector("one of its numbers is infinite or none at all")
    if not any(numbers):
        raise NotAVector("all its numbers are zero, so it points nowhere")


def description(vector: bytes, model_identity: str) -> dict[str, str | int]:
    """What is kept beside a vector, in the place of a step's JSON output."""
    return {
        "model": model_identity,
        "dimensions": length_of(vector),
        "digest": digest("vector", vector.hex()),
    }


def nearest(vector: bytes, others: Sequence[bytes]) -> tuple[int, float] | None:
    """Which of ``others`` is most alike and its cosine similarity, -1 to 1; None of none.

    All are checked vectors of one length. Exact: every pair is computed, 10,000 of 1,536 numbers
    in 0.03 s.
    """
    import numpy as np  # 0.1 s that a command line without embeddings need not wait for

    if not others:
        return None
    kind = np.dtype("<f4")
    one = np.frombuffer(vector, kind)
    matrix = np.frombuffer(b"".join(others), kind).reshape(len(others), len(one))
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    cosines = matrix @ one / (lengths * np.sqrt(one @ one))
    best = int(np.argmax(cosines))
    return best, max(-1.0, min(1.0, float(cosines[best])))
