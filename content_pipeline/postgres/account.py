"""The operating-system account the embedded server runs under.

An ordinary user runs it as himself. PostgreSQL refuses to run as root, so root hands it to an
account that exists already; no account is created and no permission of a folder that was there
before is changed. Not here: which folders that account is given (see ``store``).
"""

import os
import pwd
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from content_pipeline.core.errors import DatabaseUnavailable

# Tried in this order when root starts the first server of a project that root owns.
UNPRIVILEGED_ACCOUNTS = ("nobody", "postgres", "daemon")

# Everything the server's processes get of an environment: no PG* variable bends them, and no API
# key of the caller can be read from them.
SERVER_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}

_CHECK_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who the server runs as; ``switched`` when that is not who we are (then we are root)."""

    uid: int
    gid: int
    name: str
    switched: bool


def server_account(data: Path, data_home: Path) -> Account:
    """Choose the account: ourselves, or as root the data's owner, the project's owner, nobody.

    The project's owner comes before ``nobody`` so that one run under sudo does not take the
    database away from the user the project belongs to.

    Raises DatabaseUnavailable when the data belong to somebody else, or root finds no account.
    """
    if os.geteuid() != 0:
        return _ourselves(data)
    for folder, must_be_known in ((data, False), (data_home, True)):
        owner = _owner(folder)
        if owner and (_known(owner.st_uid) or not must_be_known) and owner.st_uid != 0:
            return _account(owner.st_uid, owner.st_gid)
    for name in UNPRIVILEGED_ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid, name=name, switched=True)
    raise DatabaseUnavailable(
        "PostgreSQL does not run as root, and none of the accounts "
        f"{', '.join(UNPRIVILEGED_ACCOUNTS)} exists here. Run as an ordinary user, or set "
        "CONTENT_PIPELINE_DATABASE_URL."
    )


def can_use(account: Account, *, folder: Path, program: Path | None = None) -> bool:
    """Tell whether ``account`` can enter ``folder`` and execute ``program``, by trying it.

    A try also sees what mode bits do not show: ACLs, mount options, mandatory access control.
    """
    script = 'cd -- "$1" && { [ -z "$2" ] || [ -x "$2" ]; }'
    command = ["/bin/sh", "-c", script, "sh", str(folder), str(program or "")]
    return run_as(account, command, timeout_s=_CHECK_TIMEOUT_S).returncode == 0


def run_as(
    account: Account,
    command: Sequence[str],
    *,
    timeout_s: float,
    statements: str = "",
    inherited: Collection[int] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a program as ``account``, with ``statements`` as its input; its words are in ``stdout``.

    It gets a session of its own, none of root's groups, and of our descriptors only ``inherited``.
    Raises DatabaseUnavailable when root is not allowed to become the account at all.
    """
    try:
        return subprocess.run(  # noqa: S603 # a fixed program, and no shell reads the arguments
            command,
            input=statements,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd="/",
            env=SERVER_ENVIRONMENT,
            timeout=timeout_s,
            check=False,
            start_new_session=True,  # Ctrl-C is for us; we end or keep what we started
            pass_fds=inherited,
            user=account.uid if account.switched else None,
            group=account.gid if account.switched else None,
            extra_groups=[] if account.switched else None,
        )
    except PermissionError:
        if not account.switched:
            raise
        raise DatabaseUnavailable(
            f"PostgreSQL does not run as root, and this root may not become {account.name} "
            "(a container without the right to change user?). Run as an ordinary user, or set "
            "CONTENT_PIPELINE_DATABASE_URL."
        ) from None


def _ourselves(data: Path) -> Account:
    uid = os.geteuid()
    owner = _owner(data)
    if owner and owner.st_uid != uid:
        theirs = account_name(owner.st_uid)
        raise DatabaseUnavailable(
            f"The database folder {data} belongs to {theirs}, not to {account_name(uid)}. "
            f"Run as {theirs} or as root, or set CONTENT_PIPELINE_DATABASE_URL."
        )
    return Account(uid=uid, gid=os.getegid(), name=account_name(uid), switched=False)


def _account(uid: int, gid: int) -> Account:
    if _known(uid):
        gid = pwd.getpwuid(uid).pw_gid
    return Account(uid=uid, gid=gid, name=account_name(uid), switched=True)


def _owner(folder: Path) -> os.stat_result | None:
    try:
        return folder.stat()
    except FileNotFoundError:
        return None


def _known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def account_name(uid: int) -> str:
    """Return the name of the account ``uid``, or its number in words when it has none."""
    return pwd.getpwuid(uid).pw_name if _known(uid) else f"uid {uid}"
