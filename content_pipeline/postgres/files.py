"""Making files and folders that belong to a given owner, whole or not at all.

Root writes into folders of an unprivileged account here; so a name is never followed through a
symbolic link, and a file that exists is replaced, not written into. Not here: what goes into them.
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who a new file is given to; only root can give to anybody but himself."""

    uid: int
    gid: int


def owner_of(folder: Path) -> Owner | None:
    """Return the owner of ``folder`` when we are root and he is not, else None (us)."""
    if os.geteuid() != 0:
        return None
    found = folder.stat()
    return Owner(uid=found.st_uid, gid=found.st_gid) if found.st_uid != 0 else None


def make_folder(path: Path, *, mode: int, owner: Owner | None) -> None:
    """Make one folder with exactly ``mode``; one that exists is left as it is."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return
    path.chmod(mode)
    if owner is not None:
        os.chown(path, owner.uid, owner.gid, follow_symlinks=False)


def write_file(path: Path, content: bytes, *, mode: int, owner: Owner | None) -> None:
    """Put a whole file in place of ``path``: a reader sees the old one or the new one."""
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            if owner is not None:
                os.fchown(file.fileno(), owner.uid, owner.gid)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:  # boundary: clears away what is half made, then raises
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in ``path`` outlive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
