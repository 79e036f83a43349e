"""Where a running server listens, and whether it answers there.

Alive means: a connection was made and ``SELECT 1`` came back. Pids, pid files and listening
sockets were each seen to claim a life that was not there. Not here: starting and stopping.
"""

from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

ROLE = "content_pipeline"  # no superuser: what works here also works on a team's own server
DATABASE = "content_pipeline"
PORT = 5432  # only part of the socket's name; nothing listens on TCP

_CONNECT_TIMEOUT_S = 2  # a local connect takes 3 ms; a stopped server never answers


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """A server on this machine, as connection parameters."""

    socket_dir: Path
    port: int = PORT
    user: str = ROLE
    database: str = DATABASE

    @property
    def socket(self) -> Path:
        """The socket itself."""
        return self.socket_dir / f".s.PGSQL.{self.port}"


def answers(address: ServerAddress) -> bool:
    """Tell whether the server executes statements now."""
    conninfo = make_conninfo(
        host=str(address.socket_dir),
        port=address.port,
        user=address.user,
        dbname=address.database,
        connect_timeout=_CONNECT_TIMEOUT_S,
    )
    try:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.errors.ConnectionTimeout:
        return False
    except psycopg.OperationalError:
        # Refused with a reason of its own ("too many clients already") is alive as well; still
        # starting or already stopping is not.
        return pq.PGconn.ping(conninfo.encode()) == pq.Ping.OK
