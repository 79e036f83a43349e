"""The embedded server of one project: ensure it runs, stop it, tell about it.

The server outlives every process that uses it, on purpose: any of them may start it, none owns
it, and a killed one takes nothing along. Not here: which database the project uses (see ``urls``).
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.account import account_name, server_account
from content_pipeline.postgres.address import ServerAddress, answers
from content_pipeline.postgres.binaries import Binaries, find_binaries, reachable_binaries
from content_pipeline.postgres.cluster import check_version, create_cluster, write_settings
from content_pipeline.postgres.diagnosis import cannot_start
from content_pipeline.postgres.files import Owner, owner_of
from content_pipeline.postgres.locks import is_held, locked, try_lock
from content_pipeline.postgres.postmaster import (
    clear_socket,
    end_orphans,
    is_postmaster,
    launch,
    read_pid_file,
    socket_was_deleted,
    stop_postmaster,
)
from content_pipeline.postgres.sockets import forget_socket_folder, private_socket_folder
from content_pipeline.postgres.store import (
    SYSTEM_HOME,
    Store,
    choose_store,
    find_store,
    make_project_folder,
    project_folder,
)

_START_DEADLINE_S = 90  # a restart takes 0.2 s, replaying 512 MB of log on a slow disk a minute
_LOCK_WAIT_S = 120  # longer than the start or stop that the holder of the lock may be in
_SOCKET_GRACE_S = 1  # a server that stops takes its socket away 0.02 s before it is gone
_POLL_S = 0.02


class ServerState(StrEnum):
    """What a look at the server found."""

    ABSENT = "absent"  # never started here: no data yet
    STOPPED = "stopped"
    RUNNING = "running"
    NOT_ANSWERING = "not answering"  # its processes live: starting, stopping, or hung


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """What ``status`` found; paths are absolute."""

    state: ServerState
    data_dir: Path
    log_dir: Path
    socket_dir: Path | None  # None unless it runs
    pid: int | None  # None unless it runs
    account: str | None  # the operating-system account the data belong to
    explanation: str  # one or two sentences for a person


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """The PostgreSQL below ``data_home`` (the project's ``.content_pipeline`` folder).

    ``system_home`` is where root puts data its unprivileged account could not reach otherwise;
    ``start_deadline_s`` bounds, in seconds, one start with its recovery.
    """

    data_home: Path
    system_home: Path = field(default=SYSTEM_HOME, kw_only=True)
    start_deadline_s: float = field(default=_START_DEADLINE_S, kw_only=True)
    find_binaries: Callable[[], Binaries] = field(default=find_binaries, kw_only=True, repr=False)

    def ensure_running(self) -> ServerAddress:
        """Return the address of the running server, started if need be.

        Safe for any number of processes and threads at once; 5 ms when the server is up. Raises
        DatabaseUnavailable, with the server's last words and what to do, when it cannot be
        brought up within ``start_deadline_s``.
        """
        home = self.data_home.resolve()
        with _disk_errors_explained(home):
            store = find_store(home)
            if store and (address := _answering(store)):
                return address
            owner = make_project_folder(home)
            with locked(_start_lock(home), owner, _LOCK_WAIT_S):
                return self._bring_up(home, owner)

    def stop(self) -> bool:
        """Stop the server; returns False when it was not running.

        A process that still uses the database starts it again at its next connect. Raises
        DatabaseUnavailable when the server cannot be stopped.
        """
        home = self.data_home.resolve()
        with _disk_errors_explained(home):
            store = find_store(home)
            if store is None:
                return False
            with locked(_start_lock(home), owner_of(home), _LOCK_WAIT_S):
                if not is_held(store.server_lock):
                    return False
                found = read_pid_file(store.data)
                stop_postmaster(store)
                if found and found.address:
                    forget_socket_folder(found.address.socket_dir)
                return True

    def status(self) -> ServerStatus:
        """Look at the server; starts nothing and makes no data."""
        home = self.data_home.resolve()
        with _disk_errors_explained(home):
            store = find_store(home) or Store(home=project_folder(home), outside_project=False)
            alive = is_held(store.server_lock)
            found = read_pid_file(store.data) if alive else None
            state = _state(store, alive=alive)
        running = state is ServerState.RUNNING
        address = found.address if found and running else None
        return ServerStatus(
            state=state,
            data_dir=store.data,
            log_dir=store.log,
            socket_dir=address.socket_dir if address else None,
            pid=found.pid if found and running else None,
            account=account_name(store.data.stat().st_uid) if store.data.exists() else None,
            explanation=_explanation(store, state, home),
        )

    def _bring_up(self, home: Path, owner: Owner | None) -> ServerAddress:
        """Wait for, heal or start the server; the caller holds the start lock."""
        store = self._prepared_store(home, owner)
        started_at = time.monotonic()
        launched = False
        while time.monotonic() < started_at + self.start_deadline_s:
            if address := _answering(store):
                return address
            lock = try_lock(store.server_lock, owner_of(store.data))
            if lock is not None:
                try:
                    if launched:  # and ended again
                        raise cannot_start(store, "it ended while starting")
                    self._launch(store, home, lock)
                    launched = True
                finally:
                    os.close(lock)  # the server's processes keep it locked
            elif time.monotonic() > started_at + _SOCKET_GRACE_S and _lost_its_socket(store):
                stop_postmaster(store)
            else:
                end_orphans(store)
            time.sleep(_POLL_S)
        raise cannot_start(
            store,
            f"its processes live but it did not answer within {self.start_deadline_s:.0f} s",
            advice="If it is recovering (see the log), try again later. If another container or "
            "machine runs it on this folder, stop it there. Otherwise end it with "
            "`content-pipeline db stop` and try again.",
        )

    def _prepared_store(self, home: Path, owner: Owner | None) -> Store:
        store = find_store(home)
        if store is None:
            account = server_account(project_folder(home) / "data", home)
            store = choose_store(home, account, self.system_home)
        if not store.data.exists():
            account = server_account(store.data, home)
            binaries = reachable_binaries(self.find_binaries(), account, self.system_home)
            create_cluster(store, binaries, account, owner)
        check_version(store)
        return store

    def _launch(self, store: Store, home: Path, lock: int) -> None:
        account = server_account(store.data, home)
        binaries = reachable_binaries(self.find_binaries(), account, self.system_home)
        socket_dir = private_socket_folder(store.data, account)
        clear_socket(socket_dir)
        write_settings(store, socket_dir, account)
        launch(store, binaries, account, lock)


def _start_lock(home: Path) -> Path:
    return project_folder(home) / "start.lock"


def _answering(store: Store) -> ServerAddress | None:
    """Return where the server of this very data folder answers, or None.

    The held lock proves that the address in postmaster.pid is of a server on this folder: the pid
    file of a copied project names the socket of the original.
    """
    if not is_held(store.server_lock):
        return None
    found = read_pid_file(store.data)
    # Not asked before it says it is ready: a recovery of minutes would log 50 refusals a second.
    if found is None or found.address is None or not found.ready:
        return None
    return found.address if answers(found.address) else None


def _lost_its_socket(store: Store) -> bool:
    found = read_pid_file(store.data)
    return (
        found is not None
        and found.address is not None
        and is_postmaster(found.pid, store.data)
        and socket_was_deleted(found.pid, found.address)
    )


def _state(store: Store, *, alive: bool) -> ServerState:
    if not store.data.exists():
        return ServerState.ABSENT
    if not alive:
        return ServerState.STOPPED
    return ServerState.RUNNING if _answering(store) else ServerState.NOT_ANSWERING


_STATE_EXPLAINED = {
    ServerState.ABSENT: "No database yet: the first command that needs one makes it.",
    ServerState.STOPPED: "The server is stopped: the next command that needs it starts it.",
    ServerState.RUNNING: "The server runs and answers; it stays up until it is stopped.",
    ServerState.NOT_ANSWERING: (
        "Processes of the server live but it does not answer: it is starting, stopping or hung."
    ),
}


def _explanation(store: Store, state: ServerState, home: Path) -> str:
    explained = _STATE_EXPLAINED[state]
    if store.outside_project:
        explained += (
            " Its data are not in the project: PostgreSQL does not run as root, and the account "
            f"it runs under cannot enter {project_folder(home)}. Back up {store.home} as well."
        )
    return explained


@contextmanager
def _disk_errors_explained(home: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise DatabaseUnavailable(
            f"No permission for {error.filename or project_folder(home)}: the embedded PostgreSQL "
            "of this project belongs to another account. Run as that account or as root, or set "
            "CONTENT_PIPELINE_DATABASE_URL."
        ) from error
    except OSError as error:
        raise DatabaseUnavailable(
            f"The files of the embedded PostgreSQL cannot be used: {error.strerror} "
            f"({error.filename or project_folder(home)}). Correct that, or set "
            "CONTENT_PIPELINE_DATABASE_URL."
        ) from error
