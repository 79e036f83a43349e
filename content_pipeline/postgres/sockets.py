"""The private folder a server's Unix socket lives in.

It is the whole access control of the embedded server. pg_hba.conf says ``trust``, so whoever can
open the socket is any database user he likes; but to open it he must pass two folders of mode 0700
that belong to the server's account, and the socket itself has mode 0700: only that account and
root get there. Nothing is lost against a password: the same account could read the data files, and
``peer`` cannot be used because root connects to a server that runs as somebody else. When root
starts the server as ``nobody``, every other process of ``nobody`` on the machine is inside that
circle; it would be with any method, the data files being nobody's.
"""

import hashlib
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.account import Account
from content_pipeline.postgres.files import Owner, make_folder

# A socket's path ends at 103 bytes on macOS and 107 on Linux, a project's path does not.
#
# /tmp and not $XDG_RUNTIME_DIR: systemd deletes the latter at the user's last log-out while the
# server stays up; nor $TMPDIR, which differs between a terminal, cron and launchd. Cleaners spare
# the socket: PostgreSQL touches it every hour.
SOCKET_HOME = Path("/tmp")  # noqa: S108 # the folders made in it are private and checked

_SQUATTED_TRIES = 3
_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")  # needs no quoting in postgresql.conf nor in a URL


def private_socket_folder(data: Path, account: Account, home: Path = SOCKET_HOME) -> Path:
    """Make, or find, the folder for the socket of the server on ``data``.

    Its name is a hash of the data's path and of the cluster's own number: a project that was
    deleted and made anew does not meet the socket of the old server, which needs up to a minute to
    notice that its files are gone and deletes its socket by name when it does.

    Raises DatabaseUnavailable when no private folder can be made.
    """
    owner = Owner(uid=account.uid, gid=account.gid) if account.switched else None
    name = hashlib.sha256(os.fsencode(data) + _cluster_number(data)).hexdigest()[:12]
    ours = home / f"content-pipeline-{account.uid}"
    for _ in range(_SQUATTED_TRIES):
        try:
            if _private(ours, account, owner) and _private(ours / name, account, owner):
                return _checked_name(ours / name)
        except OSError as error:
            raise DatabaseUnavailable(
                f"Cannot make the folder for the socket of PostgreSQL in {home}: "
                f"{error.strerror}. Make {home} writable, or set CONTENT_PIPELINE_DATABASE_URL."
            ) from error
        # Somebody else made the folder first, by accident or to listen in: leave it to him.
        ours = home / f"content-pipeline-{account.uid}-{secrets.token_hex(4)}"
    raise DatabaseUnavailable(f"Cannot make a private folder in {home}; delete {ours} and retry.")


def forget_socket_folder(folder: Path) -> None:
    """Delete the folder of a server that was stopped; its next start makes it again."""
    with suppress(OSError):  # not empty, or deleted already: either way nothing depends on it
        folder.rmdir()


def _private(folder: Path, account: Account, owner: Owner | None) -> bool:
    make_folder(folder, mode=0o700, owner=owner)
    found = folder.lstat()
    mode = stat.S_IMODE(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == account.uid and mode == 0o700


def _cluster_number(data: Path) -> bytes:
    """Return the system identifier initdb drew, the first 8 bytes of pg_control."""
    with (data / "global" / "pg_control").open("rb") as file:
        return file.read(8)


def _checked_name(folder: Path) -> Path:
    if not _PLAIN.fullmatch(str(folder)):
        raise DatabaseUnavailable(f"The socket folder {folder} has characters that need quoting.")
    return folder
