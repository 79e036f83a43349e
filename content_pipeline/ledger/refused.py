"""Refused topics: rows that must not be worked on as things stand, and why.

What belongs here: the rules between a row and the pages that exist, and the value that carries a
refusal. What is wrong with a row by itself is found in ``core.topics``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.topics import RejectedRow, Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A topic that must not be worked on, and why."""

    key: str
    row_number: int
    name: str
    failure: Failure


def refused_row(row: RejectedRow) -> Refused:
    """A row with a usable id that cannot become a page by itself."""
    assert row.key is not None
    failure = Failure(failure_class=FailureClass.INVALID_INPUT, message=row.message)
    return Refused(key=row.key, row_number=row.row_number, name=row.key, failure=failure)


def refusal_of(topic: Topic, known_path: str | None, owners: Mapping[str, str]) -> Failure | None:
    """Why ``topic`` may not have its page; None when it may.

    ``known_path``: where its page stands already; ``owners``: path → topic for the whole site.
    """
    if known_path not in (None, topic.path):
        return Failure(
            failure_class=FailureClass.TERMINAL,
            message=(
                f"topic {topic.key!r} is published under {known_path} and its row now asks for "
                f"{topic.path}; a page does not move by itself. Restore the row, or give the new "
                "page a topic id of its own"
            ),
        )
    owner = owners.get(topic.path, topic.key)
    if owner != topic.key:
        return Failure(
            failure_class=FailureClass.TERMINAL,
            message=(
                f"topics {owner!r} and {topic.key!r} both claim {topic.path}; it belongs to "
                f"{owner!r}. Give {topic.key!r} another name or path"
            ),
        )
    return None
