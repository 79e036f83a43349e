"""The connection to the ledger and the two kinds of transaction that everything else uses.

What belongs here: the engine, ``begin`` and ``fenced``. No transaction is ever open while a call
to the outside is under way: intent committed, call, outcome committed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, bindparam, create_engine, func, select, text, true

from content_pipeline.core.errors import LeaseLost
from content_pipeline.ledger.schema import leases
from content_pipeline.postgres.idle_checks import check_when_idle

CONNECTIONS = 8
"""Kept and never exceeded. A run's threads hold one for milliseconds, so 8 serve some hundred of
them: with 10 ms for a commit they still take 200 pages a second. With 40, of which 32 were made for
the moment and thrown away, the database took twice the CPU for a page (22 ms, not 10)."""

CONNECTION_WITHIN_S = 300.0
"""A wait for a connection is one for the database, which a thread that has one bears as long."""

CONNECT_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to work on one page now. Every write under it checks ``token``."""

    resource: str
    token: int
    worker: str


_HOLD = (
    select(leases.c.token, func.set_config("synchronous_commit", bindparam("commit"), true()))
    .where(leases.c.resource == bindparam("held"), leases.c.token == bindparam("held_token"))
    .where(leases.c.expires_at > func.clock_timestamp())
    .with_for_update(key_share=True, read=True)
)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger's database. Share one per process; it is safe for threads."""

    engine: Engine

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction that needs no lease: reading, intake, claiming."""
        with self.engine.begin() as connection:
            yield connection

    @contextmanager
    def single(self) -> Iterator[Connection]:
        """A connection for one statement, which is a transaction by itself.

        Nothing is begun and nothing committed: one round trip instead of three.
        """
        with self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def rehearsal(self) -> Iterator[Connection]:
        """A transaction that is always rolled back: what would be so, without making it so."""
        with self.engine.connect() as connection:
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def fenced(self, lease: Lease, *, repeatable: bool = False) -> Iterator[Connection]:
        """A transaction that only the holder of ``lease`` can open, and nobody can steal under.

        The lease row is locked before anything else, so that a worker whose lease has passed to
        another writes nothing, and locks are always taken in one order. Heartbeats are not held
        up: they change no key. Raises LeaseLost.

        ``repeatable`` says that losing it to a power cut only repeats work that costs nothing:
        the commit then does not wait for the disk. Whatever a later transaction that does wait
        builds on is on disk before it, because the log is written in order. So the busy row of a
        budget is held for microseconds instead of a disk's 10 ms, and a page waits for the disk
        4 times instead of 9.
        """
        with self.engine.begin() as connection:
            held = connection.execute(
                _HOLD,
                {
                    "held": lease.resource,
                    "held_token": lease.token,
                    "commit": "off" if repeatable else "on",
                },
            ).one_or_none()
            if held is None:
                raise LeaseLost(f"{lease.worker} no longer holds {lease.resource}: it stops here")
            yield connection

    def dispose(self) -> None:
        """Close all pooled connections."""
        self.engine.dispose()


def limit_statements(connection: Connection, seconds: float) -> None:
    """End each further statement of this transaction that takes longer than ``seconds``.

    It then raises OperationalError, and the transaction is rolled back.
    """
    connection.execute(_LIMIT, {"limit_ms": f"{1000 * seconds:.0f}"})


_LIMIT = text("SELECT set_config('statement_timeout', :limit_ms, true)")


def create_ledger_engine(url: str) -> Engine:
    """An engine for ``url`` (``postgresql+psycopg://…``); nothing is connected yet."""
    engine = create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=CONNECTION_WITHIN_S,
        hide_parameters=True,  # an error that quotes them would quote articles
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "content_pipeline"},
    )
    check_when_idle(engine)
    return engine
