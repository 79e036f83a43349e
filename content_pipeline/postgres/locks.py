"""Two locks that the kernel drops by itself when their holders are gone.

The *start lock* lets one process at a time start or stop the server. The *server lock* is held by
the server's own processes: they inherit the locked descriptor, so it is free exactly when the last
of them has ended. That decides "is anything alive on this data folder" where a pid cannot: after a
power cut the pid in postmaster.pid may be anybody's, and a zombie's pid still exists.

flock, not lockf: it belongs to the open file, so it passes to a child and also keeps the threads
of one process apart. Not here: what is done under a lock.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.files import Owner

_POLL_S = 0.02  # far below the 0.2 s a restart takes, far above the cost of one try (4 us)


def try_lock(path: Path, owner: Owner | None) -> int | None:
    """Lock ``path`` and return the open descriptor, or None when somebody holds it."""
    descriptor = _open(path, owner)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        raise DatabaseUnavailable(
            f"The file system of {path} cannot lock files ({error.strerror}). Put the project on a "
            "local disk, or set CONTENT_PIPELINE_DATABASE_URL."
        ) from error
    return descriptor


def is_held(path: Path) -> bool:
    """Tell whether somebody holds the lock; changes nothing, also when the file is missing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared: two processes that look at once do not take each other for the holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def locked(path: Path, owner: Owner | None, wait_s: float) -> Iterator[None]:
    """Hold the lock for the block; raises DatabaseUnavailable after ``wait_s`` seconds."""
    deadline = time.monotonic() + wait_s
    while (descriptor := try_lock(path, owner)) is None:
        if time.monotonic() > deadline:
            raise DatabaseUnavailable(
                f"Another process has held {path} for {wait_s:.0f} s, starting or stopping "
                "PostgreSQL. Look for a hanging process of this project, end it and try again."
            )
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        # Unlocked by name, not only closed: a child forked meanwhile shares the open file.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _open(path: Path, owner: Owner | None) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if owner is not None and os.fstat(descriptor).st_uid != owner.uid:
        os.fchown(descriptor, owner.uid, owner.gid)
    return descriptor
