"""Row numbers: where a topic's row stands in the table, in whose order people see topics.

What belongs here: keeping them. A row that only moved is not a changed one: nothing is wanted
because of it.
"""

from collections.abc import Mapping

from sqlalchemy import ARRAY, Connection, Integer, RowMapping, Text, bindparam, func, update

from content_pipeline.ledger.schema import topics


def keep(
    connection: Connection,
    site: str,
    numbers: Mapping[str, int],
    known: Mapping[str, RowMapping],
) -> None:
    """Let the topics of ``numbers`` (key → row number) stand there, and change nothing else.

    ``known``: the topics as they were, by key. One row put in at the top moves all the others, so
    it is one statement for all.
    """
    moved = {
        key: number
        for key, number in numbers.items()
        if key in known and known[key]["row_number"] != number
    }
    if moved:
        values = {"keys": list(moved), "numbers": list(moved.values())}
        connection.execute(_KEEP, {"of_site": site, **values})


_NUMBERED = (
    func.unnest(bindparam("keys", type_=ARRAY(Text)), bindparam("numbers", type_=ARRAY(Integer)))
    .table_valued("topic_key", "row_number", name="numbered")
    .render_derived()
)
_KEEP = (
    update(topics)
    .where(topics.c.site == bindparam("of_site"), topics.c.topic_key == _NUMBERED.c.topic_key)
    .values(row_number=_NUMBERED.c.row_number)
)
