"""Batches: a set of due partitions, pages or buckets, cut into Dagster runs.

What belongs here: the pure decision which of them go as a range of partitions and which as a list.
A range is what people know as a backfill: its partitions show as materializing. But a scattered set
has one range per stretch, 167 for 300 random pages of 600, and a run takes some 5 s to start.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

LEAST_SHARE = 0.5
"""Of a full batch: a shorter stretch is put together with others, so that there are never more than
about twice as many runs as full ones would be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The partitions of one run."""

    partitions: tuple[str, ...]
    is_range: bool
    """They stand side by side in the order of the partitions."""


def batches(order: Sequence[str], due: Collection[str], most: int) -> list[Batch]:
    """``due`` in batches of at most ``most``; ``order``: all partitions. Others are left out."""
    ranges: list[Batch] = []
    scattered: list[str] = []
    for stretch in _stretches(order, frozenset(due)):
        if len(stretch) >= most * LEAST_SHARE:
            ranges += [Batch(partitions=part, is_range=True) for part in _parts(stretch, most)]
        else:
            scattered += stretch
    return ranges + [Batch(partitions=part, is_range=False) for part in _parts(scattered, most)]


def _stretches(order: Sequence[str], due: frozenset[str]) -> list[list[str]]:
    found: list[list[str]] = []
    is_open = False
    for key in order:
        if key in due:
            if not is_open:
                found.append([])
            found[-1].append(key)
        is_open = key in due
    return found


def _parts(keys: Sequence[str], most: int) -> list[tuple[str, ...]]:
    """``keys`` in as few parts as possible, of about one size."""
    count = -(-len(keys) // most)
    return [
        tuple(keys[len(keys) * at // count : len(keys) * (at + 1) // count]) for at in range(count)
    ]
