"""The connection to the ledger and the two kinds of transaction that everything else uses.

What belongs here: the engine, ``begin`` and ``fenced``. No transaction is ever open while a call
to the outside is under way: intent committed, call, outcome committed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, create_engine, select, text

from content_pipeline.core.errors import LeaseLost
from content_pipeline.ledger.schema import leases

POOL_SIZE = 8
POOL_OVERFLOW = 32
"""A run's threads hold a connection for milliseconds, so 40 serve some hundred of them."""

CONNECT_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to work on one page now. Every write under it checks ``token``."""

    resource: str
    token: int
    worker: str


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
    def fenced(self, lease: Lease) -> Iterator[Connection]:
        """A transaction that only the holder of ``lease`` can open, and nobody can steal under.

        The lease row is locked before anything else, so that a worker whose lease has passed to
        another writes nothing, and locks are always taken in one order. Heartbeats are not held
        up: they change no key. Raises LeaseLost.
        """
        with self.engine.begin() as connection:
            held = connection.execute(
                select(leases.c.token)
                .where(leases.c.resource == lease.resource, leases.c.token == lease.token)
                .where(leases.c.expires_at > text("clock_timestamp()"))
                .with_for_update(key_share=True, read=True)
            ).one_or_none()
            if held is None:
                raise LeaseLost(f"{lease.worker} no longer holds {lease.resource}: it stops here")
            yield connection

    def dispose(self) -> None:
        """Close all pooled connections."""
        self.engine.dispose()


def create_ledger_engine(url: str) -> Engine:
    """An engine for ``url`` (``postgresql+psycopg://…``); nothing is connected yet."""
    return create_engine(
        url,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "content_pipeline"},
    )
