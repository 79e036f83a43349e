"""Kept rows: the rows of the topic table as the ledger holds them since they were taken in.

What belongs here: reading some of them back, a slice at a time, by key or by bucket. They are worth
reading where ``taken_tables`` knows of which table all of them are.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from content_pipeline.core.buckets import TopicsOf
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.topics import Topic
from content_pipeline.ledger.buckets import SLICE
from content_pipeline.ledger.intake import Part
from content_pipeline.ledger.refused import Refused
from content_pipeline.ledger.schema import SCHEMA, TopicStatus

# Not the columns of the wanted page job: after a rollback that is an earlier one, of other input.
_ROW = f"""
    SELECT t.topic_key, t.slot, t.name, t.row_number, t.status, t.message, t.input_hash, p.path,
           j.input_columns, j.failure_class
    FROM {SCHEMA}.topics t
    LEFT JOIN {SCHEMA}.pages p ON p.page_id = t.page_id
    LEFT JOIN LATERAL (
        SELECT j.input_columns, j.failure_class FROM {SCHEMA}.page_jobs j
        WHERE j.site = t.site AND j.topic_key = t.topic_key AND j.input_hash = t.input_hash
        LIMIT 1) j ON true
    WHERE t.site = :site AND t.status <> 'retired'"""  # noqa: S608 - only our own constants

_OF_KEYS = text(f"{_ROW} AND t.topic_key = ANY(:keys) ORDER BY t.row_number").bindparams(
    bindparam("keys", type_=ARRAY(Text))
)

_OF_SLOTS = text(
    f"""{_ROW} AND t.slot BETWEEN :first AND :last AND (t.slot, t.topic_key) > (:slot, :topic_key)
    ORDER BY t.slot, t.topic_key LIMIT :most"""
)


def of_topics(
    connection: Connection, site: str, only: Collection[str] | TopicsOf, most: int = SLICE
) -> Iterator[Part]:
    """The rows of the topics in ``only`` that are in the table, at most ``most`` at once."""
    if isinstance(only, TopicsOf):
        for name in sorted(only.names):
            yield from _of_bucket(connection, site, only, name, most)
        return
    keys = list(only)
    for start in range(0, len(keys), most):
        values = {"site": site, "keys": keys[start : start + most]}
        yield _part(connection.execute(_OF_KEYS, values).mappings().all())


def _of_bucket(
    connection: Connection, site: str, only: TopicsOf, name: str, most: int
) -> Iterator[Part]:
    slots = only.buckets.slots(name)
    place: Mapping[str, Any] = {"slot": slots.first, "topic_key": ""}
    while True:
        values = {"site": site, "first": slots.first, "last": slots.last, "most": most, **place}
        rows = connection.execute(_OF_SLOTS, values).mappings().all()
        yield _part(rows)
        if len(rows) < most:
            return
        place = {"slot": rows[-1]["slot"], "topic_key": rows[-1]["topic_key"]}


def _part(rows: Sequence[RowMapping]) -> Part:
    return Part(
        topics=[(row["row_number"], _topic(row)) for row in rows if not _is_refused(row)],
        refused=[_refused(row) for row in rows if _is_refused(row)],
    )


def _is_refused(row: RowMapping) -> bool:
    return bool(row["status"] == TopicStatus.REJECTED)


def _topic(row: RowMapping) -> Topic:
    assert row["input_columns"] is not None, "no intake leaves a topic without a page job"
    return Topic(
        key=row["topic_key"],
        name=row["name"],
        path=row["path"],
        columns=row["input_columns"],
        input_hash=row["input_hash"],
    )


def _refused(row: RowMapping) -> Refused:
    failure = Failure(failure_class=FailureClass(row["failure_class"]), message=row["message"])
    return Refused(
        key=row["topic_key"], row_number=row["row_number"], name=row["name"], failure=failure
    )
