"""Refused topics: rows that must not be worked on as things stand, and why.

What belongs here: the rules between a row and the pages that exist, the value that carries a
refusal, and the rows without a usable id, which no page job can carry. What is wrong with a row by
itself is found in ``core.topics``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.topics import RejectedRow, Topic
from content_pipeline.ledger.schema import rejected_rows


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


def note_rejected_rows(connection: Connection, site: str, rejected: Sequence[RejectedRow]) -> None:
    """Remember the rows of this intake that have no usable id; those of the last one are gone."""
    messages = {row.row_number: row.message for row in rejected if row.key is None}
    known = connection.execute(
        select(rejected_rows.c.row_number, rejected_rows.c.message).where(
            rejected_rows.c.site == site
        )
    )
    if messages == {row.row_number: row.message for row in known}:
        return
    connection.execute(delete(rejected_rows).where(rejected_rows.c.site == site))
    if messages:
        connection.execute(
            insert(rejected_rows),
            [
                {"site": site, "row_number": number, "message": message}
                for number, message in messages.items()
            ],
        )
