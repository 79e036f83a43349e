"""Bringing a dead embedded server back from inside a connect.

Nobody watches the embedded server: a killed one stayed dead for as long as anybody looked (185 s)
until some process asked for it. With this hook every connect asks. Not here: engines themselves,
and connections already lost (``pool_pre_ping`` or ``idle_checks`` replaces those).
"""

from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect

from content_pipeline.postgres.server import EmbeddedServer


def install_heal(engine: Engine, server: EmbeddedServer | None) -> None:
    """Make each new connection of ``engine`` start ``server`` first if it does not answer.

    One more try per connect, so an error that a start does not heal is still raised; so is
    DatabaseUnavailable when the server does not come up. Does nothing for the team's own
    database (``server`` None), which is not ours to start.
    """
    if server is None:
        return

    def connect(
        dialect: Dialect, _record: object, args: list[Any], parameters: dict[str, Any]
    ) -> DBAPIConnection:
        try:
            return dialect.connect(*args, **parameters)
        except dialect.loaded_dbapi.OperationalError:
            address = server.ensure_running()
            # It may listen elsewhere than when the engine was made.
            healed = parameters | {"host": str(address.socket_dir), "port": str(address.port)}
            return dialect.connect(*args, **healed)

    event.listen(engine, "do_connect", connect)
