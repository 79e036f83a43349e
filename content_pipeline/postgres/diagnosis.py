"""What to tell a person when the embedded server does not come up.

One error: what happened, the server's last words, and what to do about them. Not here: deciding
that it failed.
"""

import os
from pathlib import Path

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.store import Store

_HANDED_OVER = "redirecting log output to logging collector"

_TAIL_LINES = 12
_TAIL_BYTES = 16_384

# What PostgreSQL, initdb and the loader say (part of the line) -> what a person can do.
_ADVICE = (
    ("No space left on device", "Free disk space; an empty database needs 50 MB."),
    ("Disk quota exceeded", "Free disk space or raise the quota."),
    ("Read-only file system", "Put the project on a disk that can be written."),
    ("user does not exist", "Give the account an entry in /etc/passwd; PostgreSQL needs its name."),
    ("Permission denied", "Let the account of the server use the path the message names."),
    ("invalid permissions", "Give the data folder mode 0700 again."),
    ("error while loading shared libraries", "Install the library the message names."),
    ("could not create shared memory", "Raise the shared memory limits of the kernel."),
    ("could not create semaphores", "Raise the semaphore limits of the kernel."),
    ("Cannot allocate memory", "Free memory; the server asks for 150 MB."),
    ("postgresql.auto.conf", "Correct the setting that ALTER SYSTEM left in that file."),
    ("checkpoint record", "The data are damaged: restore the folder from a backup."),
)
_NO_ADVICE = "The server's log says more; nothing of the data was changed."


def cannot_start(
    store: Store, what: str, *, said: str | None = None, advice: str = ""
) -> DatabaseUnavailable:
    """Build the error; ``said`` defaults to the end of the server's log."""
    words = _last_lines(log_tail(store) if said is None else said)
    if not advice:
        advice = next((text for phrase, text in _ADVICE if phrase in words), _NO_ADVICE)
    return DatabaseUnavailable(
        f"The embedded PostgreSQL did not start: {what}.\n"
        f"  data: {store.data}\n  log:  {store.log}\n"
        + "".join(f"  | {line}\n" for line in words.splitlines())
        + f"{advice} Or set CONTENT_PIPELINE_DATABASE_URL to another PostgreSQL."
    )


def log_tail(store: Store) -> str:
    """Return the last words of the latest start."""
    said = _tail(store.start_log)
    if _HANDED_OVER not in said:  # it ended before it opened its log, where only older words are
        return said
    logs = sorted(store.log.glob("postgres-*.log"), key=lambda file: file.stat().st_mtime)
    return _tail(logs[-1]) if logs else said


def _tail(log: Path) -> str:
    try:
        # Root reads in a folder of an unprivileged account here: no link leads it elsewhere.
        descriptor = os.open(log, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        return file.read().decode(errors="replace")


def _last_lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-_TAIL_LINES:])
