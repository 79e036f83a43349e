"""The files of a server's background process: its lock and its record in one data folder.

What belongs here: what the process writes and the supervisor reads. The lock is held for as long
as the process lives and vanishes with it, however it ends; the record says where it listens and
which instance it is, and may be left over from one that is gone.
"""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from content_pipeline.core.errors import LockHeld

RECORD_FILE = "port.json"
LOCK_FILE = "server.lock"
LOG_FILE = "server.log"
HANDOVER_S = 1.5
"""How long a new process waits for one that is just ending: longer than its drain of 0.5 s."""
EXIT_HELD = 3
"""Exit code of a process that found the folder held by another one."""


class InstanceRecord(BaseModel):
    """Where an instance listens, and the token that proves an answer to come from it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    base_url: str
    port: int
    pid: int
    token: str


def read_record(folder: Path) -> InstanceRecord | None:
    """The record in ``folder``, or None when there is no readable one."""
    try:
        return InstanceRecord.model_validate_json((folder / RECORD_FILE).read_bytes())
    except (OSError, ValidationError):
        return None


def write_record(folder: Path, record: InstanceRecord) -> None:
    """Replace the record, so that a reader sees the old or the new one and never a part."""
    partial = folder / f"{RECORD_FILE}.{record.pid}"
    partial.write_text(record.model_dump_json() + "\n")
    partial.replace(folder / RECORD_FILE)


@contextmanager
def locked(path: Path, wait_s: float, what: str) -> Iterator[None]:
    """Hold the lock file ``path``. Raises LockHeld when another holds it for too long."""
    deadline = time.monotonic() + wait_s
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LockHeld(f"{path} is still locked after {wait_s:g} s: {what}") from None
                time.sleep(0.02)
        yield
