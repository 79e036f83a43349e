"""A lost connection is replaced before it is used, and a living one is not asked each time."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Engine, QueuePool, create_engine, text
from sqlalchemy.engine.interfaces import DBAPIConnection

from content_pipeline.postgres.idle_checks import IDLE_S, check_when_idle
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.postgres.urls import embedded_database_url

DRIVERS = ("postgresql+psycopg2", "postgresql+psycopg")


@dataclass
class Watched:
    """An engine that keeps one connection, and what is asked through it."""

    engine: Engine
    now: float = 0.0
    pings: int = 0
    others: Engine = field(init=False)

    def __post_init__(self) -> None:
        self.others = create_engine(self.engine.url)
        asked = self.engine.dialect.do_ping

        def counted(dbapi_connection: DBAPIConnection) -> bool:
            self.pings += 1
            return asked(dbapi_connection)

        self.engine.dialect.do_ping = counted  # type: ignore[method-assign]

    def use(self) -> int:
        """Use the connection; the server's process behind it."""
        with self.engine.connect() as connection:
            pid: int = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        return pid

    def cut(self, pid: int) -> None:
        """Let the server end a connection."""
        with self.others.connect() as connection:
            end = text("SELECT pg_terminate_backend(:pid, 5000)")
            assert connection.execute(end, {"pid": pid}).scalar_one()


@pytest.fixture(params=DRIVERS)
def watched(request: pytest.FixtureRequest, shared: EmbeddedServer) -> Iterator[Watched]:
    shared.ensure_running()
    url = embedded_database_url(shared)
    address = url.dagster_url if request.param.endswith("psycopg2") else url.ledger_url
    engine = create_engine(address, poolclass=QueuePool, pool_size=1, isolation_level="AUTOCOMMIT")
    made = Watched(engine=engine)
    check_when_idle(engine, clock=lambda: made.now)
    yield made
    engine.dispose()
    made.others.dispose()


def test_a_connection_in_use_is_not_asked(watched: Watched) -> None:
    pids = {watched.use() for _ in range(5)}
    assert len(pids) == 1
    assert watched.pings == 0


def test_one_that_has_lain_idle_is_asked_once(watched: Watched) -> None:
    pid = watched.use()
    watched.now += IDLE_S
    assert watched.use() == pid
    assert watched.use() == pid
    assert watched.pings == 1


@pytest.mark.parametrize("idle_s", [0.0, 10 * IDLE_S])
def test_one_that_the_server_has_ended_is_replaced_at_once(idle_s: float, watched: Watched) -> None:
    pid = watched.use()
    watched.cut(pid)
    watched.now += idle_s
    assert watched.use() != pid


def test_each_new_connection_is_used_unasked(watched: Watched) -> None:
    watched.use()
    watched.engine.dispose()
    watched.use()
    watched.now += IDLE_S
    watched.use()
    assert watched.pings == 1
