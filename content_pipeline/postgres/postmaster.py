"""The server's main process: launching it, recognising it, ending it.

Whether any process of the server is alive is the server lock's answer (see ``locks``); a pid is
used only to send a signal, and only after it was recognised. Not here: the order of these steps
(see ``server``).
"""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.account import Account, run_as
from content_pipeline.postgres.address import PORT, ServerAddress
from content_pipeline.postgres.binaries import Binaries
from content_pipeline.postgres.diagnosis import cannot_start
from content_pipeline.postgres.locks import is_held
from content_pipeline.postgres.store import Store

# The shell forks and ends, so the server is nobody's child that would have to reap it; redirecting
# here, after the change of user, makes the log file the server's own.
_LAUNCH = 'umask 077; log=$1; shift; "$@" </dev/null >"$log" 2>&1 &'
_LAUNCH_TIMEOUT_S = 30

_PID_FILE_LINES = 8

_FAST_STOP_S = 30  # a fast stop writes a checkpoint of up to max_wal_size
_IMMEDIATE_STOP_S = 10  # writes nothing; the next start recovers
_POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class PidFile:
    """What a server wrote into postmaster.pid: true only while the server lock is held."""

    pid: int
    address: ServerAddress | None  # None until the server listens
    ready: bool  # False while it starts, recovers or stops


def read_pid_file(data: Path) -> PidFile | None:
    """Read postmaster.pid; None when there is none, or none that makes sense (yet)."""
    try:
        lines = (data / "postmaster.pid").read_text(errors="surrogateescape").splitlines()
        pid = int(lines[0])
    except (FileNotFoundError, ValueError, IndexError):
        return None
    # Lines: pid, data folder, start time, port, socket folder, TCP address, shared memory, state.
    # The server appends them as it gets on.
    lines += [""] * (_PID_FILE_LINES - len(lines))
    address = None
    if lines[3].isdigit() and lines[4]:
        address = ServerAddress(socket_dir=Path(lines[4]), port=int(lines[3]))
    return PidFile(pid=pid, address=address, ready=lines[7].strip() == "ready")


def launch(store: Store, binaries: Binaries, account: Account, lock: int) -> None:
    """Start the server in a session of its own, holding the locked descriptor ``lock``.

    The session keeps Ctrl-C and a closed terminal away from it. The caller owns the server lock,
    so whatever pid file a dead server left behind is litter.
    """
    (store.data / "postmaster.pid").unlink(missing_ok=True)
    server = [str(binaries.postgres), "-D", str(store.data)]
    shell = ["/bin/sh", "-c", _LAUNCH, "sh", str(store.start_log)]
    said = run_as(account, [*shell, *server], timeout_s=_LAUNCH_TIMEOUT_S, inherited=(lock,)).stdout
    if said:  # the shell itself: it could not write the log, or not fork
        raise cannot_start(store, "it could not be launched", said=said)


def clear_socket(socket_dir: Path) -> None:
    """Delete the socket of a dead server, whose lock file may name a pid that lives again."""
    for name in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):
        (socket_dir / name).unlink(missing_ok=True)


def stop_postmaster(store: Store) -> None:
    """End the server and wait for the last of its processes; call it under the start lock.

    Raises DatabaseUnavailable when it is not ours to end, or does not end.
    """
    for signal_number, patience_s in (
        (signal.SIGINT, _FAST_STOP_S),
        (signal.SIGQUIT, _IMMEDIATE_STOP_S),
    ):
        found = read_pid_file(store.data)
        if found and is_postmaster(found.pid, store.data):
            _signal(found.pid, signal_number, store)
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if not is_held(store.server_lock):
                return
            time.sleep(_POLL_S)
    raise DatabaseUnavailable(
        f"Processes that hold {store.server_lock} did not end within "
        f"{_FAST_STOP_S + _IMMEDIATE_STOP_S} s. They may run in a container or on another machine "
        f"that shares this folder: stop them there. On this machine: fuser {store.server_lock}"
    )


def end_orphans(store: Store) -> None:
    """End what a killed postmaster left behind; call it under the start lock.

    Idle children end by themselves at once, but one that computes does not look around: a long
    statement kept the data folder busy for 25 s. Only Linux shows us who they are; elsewhere
    the start waits for them.
    """
    found = read_pid_file(store.data)
    if found is None or is_postmaster(found.pid, store.data):
        return
    for process in Path("/proc").glob("[0-9]*"):
        pid = int(process.name)
        if _works_in(pid, store.data):
            _signal(pid, signal.SIGQUIT, store)


def is_postmaster(pid: int, data: Path) -> bool:
    """Tell whether process ``pid`` is a PostgreSQL that runs on ``data``."""
    # The first also recognises a server whose project was moved while it ran; the second also
    # works on macOS, and for root in a container that may not look into other users' processes.
    return _works_in(pid, data) or _command_line(pid)[1:3] == ["-D", str(data)]


def socket_was_deleted(pid: int, address: ServerAddress) -> bool:
    """Tell whether the socket is gone for the server itself, not only hidden from us.

    A server started by a systemd unit with a private /tmp, or in a container, has its socket
    where we cannot see it: that one must not be restarted.
    """
    if address.socket.exists():
        return False
    try:
        Path(f"/proc/{pid}/root{address.socket}").lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # no right to look
    return False


def _works_in(pid: int, data: Path) -> bool:
    process = Path(f"/proc/{pid}")
    try:
        # Named as well, or a person's shell that stands in the folder would be taken for it.
        named = (process / "comm").read_bytes() == b"postgres\n"
        return named and (process / "cwd").samefile(data)
    except OSError:
        return False


def _command_line(pid: int) -> list[str]:
    if sys.platform == "linux":
        try:
            raw = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return []
        return [os.fsdecode(part) for part in raw.split(b"\0")]
    ps = ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)]
    done = subprocess.run(ps, capture_output=True, text=True, check=False)  # noqa: S603 # fixed
    program, _, data = done.stdout.strip().partition(" -D ")
    return [program, "-D", data]


def _signal(pid: int, number: signal.Signals, store: Store) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
    except PermissionError:
        raise DatabaseUnavailable(
            f"The PostgreSQL of {store.data} (pid {pid}) runs under another account: only that "
            "account or root can stop it."
        ) from None
