"""Buckets: which pages share a partition on a site that has too many for one each.

What belongs here: the pure function from a topic's id to its bucket, and the names of buckets. A
bucket is a stretch of hash values and not a remainder, so the ledger finds its topics by one plain
index whatever the number of buckets is, and a changed number costs it nothing.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from content_pipeline.core.errors import ConfigurationError

SLOTS = 2**32
"""Values of the hash: so many that the buckets of 1,000,000 topics differ by chance alone."""

MOST_BUCKETS = 50_000
"""As many partitions of one site as Dagster's UI takes."""


class PartitionBy(StrEnum):
    """What one Dagster partition of a site stands for."""

    PAGE = "page"
    BUCKET = "bucket"


def slot_of(topic_key: str) -> int:
    """The topic's hash, from 0 to SLOTS - 1; the column ``topics.slot`` holds the same."""
    return int.from_bytes(hashlib.sha256(topic_key.encode()).digest()[:4], "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """A stretch of hash values, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """The buckets of a site, ``count`` of them; their names are the partitions' keys."""

    count: int

    def name(self, number: int) -> str:
        """The name of bucket ``number``, counted from 0, e.g. ``b0042-of-1000``.

        It tells the count: under another one b0042 would hold other pages, and must not be taken
        for the bucket that Dagster remembers.
        """
        return f"b{number:0{len(str(self.count))}}-of-{self.count}"

    def names(self) -> Iterator[str]:
        """All names, in order."""
        return map(self.name, range(self.count))

    def name_of(self, topic_key: str) -> str:
        """The name of the bucket that a topic belongs to."""
        return self.name(slot_of(topic_key) * self.count // SLOTS)

    def slots(self, name: str) -> Slots:
        """The hash values of the bucket called ``name``. Raises ConfigurationError for another.

        Such a name comes from a run that was requested before ``buckets`` was changed.
        """
        digits = name.removeprefix("b").partition("-")[0]
        number = int(digits) if digits.isascii() and digits.isdigit() else self.count
        if number >= self.count or self.name(number) != name:
            raise ConfigurationError(
                f"{name!r} is none of the site's {self.count} buckets: their number was changed "
                "since this was requested; nothing is lost, request the buckets of now"
            )
        return Slots(first=self._first(number), last=self._first(number + 1) - 1)

    def _first(self, number: int) -> int:
        return -(-number * SLOTS // self.count)


@dataclass(frozen=True, slots=True)
class TopicsOf:
    """The topics of some buckets, as a set that knows its members without holding them."""

    buckets: Buckets
    names: frozenset[str]

    def __contains__(self, topic_key: object) -> bool:
        return isinstance(topic_key, str) and self.buckets.name_of(topic_key) in self.names
