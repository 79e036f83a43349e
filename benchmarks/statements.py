"""Counting what is said to the database, by the transaction of the operation that says it.

What belongs here: listening to an engine. It costs time itself, so a counted pass is never the one
whose CPU is reported.
"""

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from rich.table import Table
from sqlalchemy import Connection, Engine, event

from content_pipeline import operations

_FOLDER = next(iter(operations.__path__))


@dataclass(slots=True)
class Transactions:
    """All transactions of one function of the operations."""

    statements: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    begun: int = 0
    """Those with a BEGIN and a COMMIT of their own."""

    @property
    def round_trips(self) -> int:
        """Of all of them: the statements, and what frames them."""
        return sum(self.statements) + 2 * self.begun

    @property
    def median_ms(self) -> float:
        """From BEGIN to the end of COMMIT."""
        return 1000 * statistics.median(self.seconds)


@dataclass(slots=True)
class _UnderWay:
    name: str
    began_at: float
    is_begun: bool
    statements: int = 0


@contextmanager
def counted(engine: Engine) -> Iterator[Mapping[str, Transactions]]:
    """By function, all transactions that ``engine`` carries out inside, as they end."""
    done: dict[str, Transactions] = defaultdict(Transactions)
    under_way: dict[object, _UnderWay] = {}

    def began(connection: Connection) -> None:
        raw = connection.connection.dbapi_connection
        commits_itself = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
        under_way[raw] = _UnderWay(
            name=_operation(), began_at=time.perf_counter(), is_begun=not commits_itself
        )

    def said(connection: Connection, *_statement: object) -> None:
        under_way[connection.connection.dbapi_connection].statements += 1

    def returned(raw: object, _record: object) -> None:
        # COMMIT has its event before it is sent; only here its wait for the disk is over.
        if (one := under_way.pop(raw, None)) is not None:
            done[one.name].statements.append(one.statements)
            done[one.name].seconds.append(time.perf_counter() - one.began_at)
            done[one.name].begun += one.is_begun

    listeners = (("begin", began), ("before_cursor_execute", said), ("checkin", returned))
    for name, listener in listeners:
        event.listen(engine, name, listener)
    try:
        yield done
    finally:
        for name, listener in listeners:
            event.remove(engine, name, listener)


def _operation() -> str:
    """The innermost function of the operations that is at work in this thread."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_FOLDER):
            module = frame.f_globals["__name__"].rpartition(".")[2]
            return f"{module}.{frame.f_code.co_name}"
        frame = frame.f_back
    return "elsewhere"


def statement_table(title: str, transactions: Mapping[str, Transactions], pages: int) -> Table:
    """What is said for one page, by transaction, the most talkative first."""
    table = Table(title=title, title_justify="left")
    columns = ("transaction", "a page", "statements", "round trips", "median ms, in the crowd")
    for name in columns:
        table.add_column(name, justify="left" if name == "transaction" else "right")
    for name, each in sorted(transactions.items(), key=lambda item: -item[1].round_trips):
        table.add_row(
            name,
            f"{len(each.statements) / pages:.2f}",
            f"{sum(each.statements) / pages:.2f}",
            f"{each.round_trips / pages:.2f}",
            f"{each.median_ms:.1f}",
        )
    table.add_section()
    every = transactions.values()
    table.add_row(
        "all",
        f"{sum(len(each.statements) for each in every) / pages:.2f}",
        f"{sum(sum(each.statements) for each in every) / pages:.2f}",
        f"{sum(each.round_trips for each in every) / pages:.2f}",
        "",
    )
    return table
