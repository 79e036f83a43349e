"""How PostgreSQL carries out a statement: what it reads, and by which index."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, event, text

Plan = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One statement as it was sent to the database."""

    statement: str
    values: Any

    @property
    def has_plan(self) -> bool:
        """Whether it reads or writes tables, so that it can be explained."""
        return self.statement.split(maxsplit=1)[0].upper() in {
            "SELECT", "WITH", "UPDATE", "INSERT", "DELETE",
        }  # fmt: skip


@contextmanager
def listening(where: Engine | Connection) -> Iterator[list[Said]]:
    """Everything that is said to ``where`` inside."""
    said: list[Said] = []

    def note(_connection: object, _cursor: object, statement: str, values: Any, *_: object) -> None:
        said.append(Said(statement=statement, values=values))

    event.listen(where, "before_cursor_execute", note)
    try:
        yield said
    finally:
        event.remove(where, "before_cursor_execute", note)


def said_by(connection: Connection, asks: Callable[[Connection], object]) -> list[Said]:
    """What ``asks`` says."""
    with listening(connection) as said:
        asks(connection)
    return said


def plan_of(connection: Connection, said: Said) -> Plan:
    """How the statement would be carried out now; it is not."""
    values = said.values[0] if isinstance(said.values, list) else said.values
    cursor = connection.connection.cursor()
    cursor.execute(f"EXPLAIN (FORMAT JSON) {said.statement}", values)
    ((found,),) = cursor.fetchall()
    plan: Plan = found[0]["Plan"]
    return plan


def as_on_a_large_site(connection: Connection) -> None:
    """Plan until the end of the transaction as if reading a whole table were never worth it."""
    for way in ("seqscan", "bitmapscan"):
        connection.execute(text(f"SET LOCAL enable_{way} = off"))


def nodes(plan: Plan) -> Iterator[Plan]:
    """The steps of a plan."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def read_whole(plan: Plan) -> set[str]:
    """The tables that are read from their first row to the last."""
    return {node["Relation Name"] for node in nodes(plan) if node["Node Type"].endswith("Seq Scan")}


def indexes(plan: Plan) -> set[str]:
    """The indexes that are used."""
    return {node["Index Name"] for node in nodes(plan) if "Index Name" in node}


def shown(plan: Plan) -> str:
    """For the message of a test that failed."""
    return json.dumps(plan, indent=1)
