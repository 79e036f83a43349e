"""A site's folder: files that are read whole and replaced whole, or not at all.

What belongs here: the file system under a published site. A reader sees the old bytes or the new
ones, whenever a process is killed; writers take turns under one lock; nothing outside the folder
is reached, whatever symbolic links stand in it. What the files mean is the caller's. POSIX only:
it walks by directory descriptors, so no link can be slipped in between a check and a write.

The folder ``.content-pipeline`` below the root is private to this module (mode 0700):
``lock`` is held while writing, ``incoming`` is the file on its way, ``writes.log`` is what writers
record about the files they replaced, one line each.
"""

import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

PRIVATE_FOLDER = ".content-pipeline"
LOCK = "lock"
INCOMING = "incoming"
WRITES_LOG = "writes.log"

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Larger than the largest allowed sitemap (50 MiB); anything beyond is not a file of a site."""

LOCK_TIMEOUT_S = 30.0
"""A write takes milliseconds, so a lock held this long belongs to a stopped process."""

LOCK_POLL_S = 0.002

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

_ADVICE = {
    errno.ENOSPC: "the disk is full; free space, then retry",
    errno.EDQUOT: "the disk quota is used up; free space, then retry",
    errno.EFBIG: "the file is larger than allowed here",
    errno.EACCES: "no permission; give the pipeline's user the right to it",
    errno.EPERM: "no permission; give the pipeline's user the right to it",
    errno.EROFS: "the file system is read-only; mount it writable",
    errno.ENOTDIR: "a file or a symbolic link (never followed) stands where a folder should",
    errno.ELOOP: "a symbolic link stands where a file should; links are never followed",
    errno.EISDIR: "a folder stands where a file should; move it away",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFolder:
    """The files below ``root``; a name is relative to it, with slashes."""

    root: Path
    lock_timeout_s: float = LOCK_TIMEOUT_S
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    """Of this process's threads: one of them asks for the file's lock again and again, not 64."""

    def read(self, name: str) -> bytes | None:
        """The bytes of the file now; None when there is none. Raises CallFailed (storage)."""
        *folders, leaf = _parts(name)
        with _storage_failures(f"cannot read {name} in {self.root}"):
            try:
                with _opened_folder(self.root, folders) as folder:
                    return _read_regular_file(folder, leaf)
            except FileNotFoundError:
                return None

    def names(self) -> tuple[str, ...]:
        """What stands directly in the root, sorted. Raises CallFailed (storage)."""
        with _storage_failures(f"cannot list {self.root}"):
            return tuple(sorted(path.name for path in self.root.iterdir()))

    def files_called(self, leaf: str, *, written_since_s: float = 0.0) -> list[str]:
        """Names of all files called ``leaf`` below the root that were written since a time.

        ``written_since_s``: seconds since 1970. No link is followed. Raises CallFailed (storage).
        """
        found: list[str] = []
        with _storage_failures(f"cannot list {self.root}"):
            for folder, folders, files in os.walk(self.root):
                folders[:] = [name for name in folders if name != PRIVATE_FOLDER]
                path = Path(folder) / leaf
                with suppress(FileNotFoundError):
                    if leaf in files and path.lstat().st_mtime >= written_since_s:
                        found.append(path.relative_to(self.root).as_posix())
        return found

    def problem(self) -> str | None:
        """Why nothing could be written below the root now; None when it could be."""
        place = next(path for path in (self.root, *self.root.parents) if path.exists())
        if not place.is_dir():
            return f"{place} is a file, so {self.root} cannot be a folder; move it away"
        if not os.access(place, os.W_OK | os.X_OK):
            return f"{place} cannot be written; give the pipeline's user the right to it"
        return None

    @contextmanager
    def writing(self) -> Iterator["FolderWriter"]:
        """The only writer of the folder, among all threads and processes, until left.

        Raises CallFailed: transient when another process keeps the lock, storage for the rest.
        """
        with ExitStack() as stack:
            with _storage_failures(f"cannot lock {self.root}"):
                self.root.mkdir(parents=True, exist_ok=True)
                private = stack.enter_context(
                    _opened_folder(self.root, [PRIVATE_FOLDER], create=True)
                )
                lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=private)
                stack.callback(os.close, lock)
                deadline = time.monotonic() + self.lock_timeout_s
                if not self._turn.acquire(timeout=self.lock_timeout_s):
                    raise _locked(self.root, self.lock_timeout_s)
                stack.callback(self._turn.release)
                _take(lock, deadline, self.root, self.lock_timeout_s)
            # Unlocked by hand: a child process forked meanwhile holds the descriptor open.
            stack.callback(fcntl.flock, lock, fcntl.LOCK_UN)
            yield FolderWriter(root=self.root, private=private)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderWriter:
    """The right to write, while the folder's lock is held."""

    root: Path
    private: int = field(repr=False)
    """Descriptor of the private folder."""

    def replace(self, name: str, data: bytes) -> None:
        """Put ``data`` in the place of the file, in one step that a crash cannot split.

        Raises CallFailed: storage when the old file still stands, uncertain when the new one may
        be lost by a power failure.
        """
        *folders, leaf = _parts(name)
        with _storage_failures(f"cannot write {name} in {self.root}"):
            try:
                self._write_incoming(data)
                with _opened_folder(self.root, folders, create=True) as folder:
                    os.rename(INCOMING, leaf, src_dir_fd=self.private, dst_dir_fd=folder)
                    with _storage_failures(
                        f"wrote {name} in {self.root}, but not surely to disk",
                        failure_class=FailureClass.UNCERTAIN,
                    ):
                        os.fsync(folder)
            except OSError:
                with suppress(FileNotFoundError):
                    os.unlink(INCOMING, dir_fd=self.private)
                raise

    def remove(self, name: str) -> None:
        """Take the file away. Raises CallFailed (storage)."""
        *folders, leaf = _parts(name)
        with (
            _storage_failures(f"cannot remove {name} in {self.root}"),
            _opened_folder(self.root, folders) as folder,
        ):
            os.unlink(leaf, dir_fd=folder)
            os.fsync(folder)

    def record(self, line: str) -> None:
        """Append ``line`` to the log of writes. Raises CallFailed (uncertain: the write stands)."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        opener = _opener(self.private, flags, 0o600)
        with (
            _storage_failures(
                f"wrote to {self.root}, but cannot log it", failure_class=FailureClass.UNCERTAIN
            ),
            open(WRITES_LOG, "ab", buffering=0, opener=opener) as file,
        ):
            file.write(line.encode() + b"\n")

    def _write_incoming(self, data: bytes) -> None:
        # Whoever holds the lock owns this name, so what stands there was left by a dead process.
        with suppress(FileNotFoundError):
            os.unlink(INCOMING, dir_fd=self.private)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(INCOMING, "wb", opener=_opener(self.private, flags, 0o666)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def _opener(folder: int, flags: int, mode: int) -> Callable[[str, int], int]:
    return lambda name, _flags: os.open(name, flags, mode, dir_fd=folder)


def _parts(name: str) -> list[str]:
    """The path parts of ``name``. Callers check names of strangers; this is the second wall."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError(f"{name!r} is not the name of a file below a site's folder")
    return parts


@contextmanager
def _opened_folder(root: Path, folders: Sequence[str], *, create: bool = False) -> Iterator[int]:
    """A descriptor of the folder, reached step by step from ``root`` without following a link.

    ``root`` itself may be a link: its owner chose it.
    """
    with ExitStack() as stack:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, folder)
        for name in folders:
            folder = _enter(folder, name, create=create)
            stack.callback(os.close, folder)
        yield folder


def _enter(parent: int, name: str, *, create: bool) -> int:
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o700 if name == PRIVATE_FOLDER else 0o777, dir_fd=parent)
    os.fsync(parent)
    return os.open(name, _FOLDER_FLAGS, dir_fd=parent)


def _read_regular_file(folder: int, name: str) -> bytes:
    # Not blocking, or a named pipe standing there would hold the worker for ever.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(name, "rb", opener=_opener(folder, flags, 0)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if status.st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, "file too large")
        return file.read()


def _take(lock: int, deadline: float, root: Path, timeout_s: float) -> None:
    """``deadline``: an instant of ``time.monotonic``."""
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise _locked(root, timeout_s) from None
            time.sleep(LOCK_POLL_S)
        else:
            return


def _locked(root: Path, timeout_s: float) -> CallFailed:
    return CallFailed(
        Failure(
            failure_class=FailureClass.TRANSIENT,
            message=f"another process has held the lock of {root} for {timeout_s:g} s; "
            "nothing was written; look for a stopped process that uses the folder",
        )
    )


@contextmanager
def _storage_failures(
    what: str, *, failure_class: FailureClass = FailureClass.STORAGE
) -> Iterator[None]:
    """Any OSError inside becomes a CallFailed that says what failed and what to do."""
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, error.strerror or type(error).__name__)
        raise CallFailed(
            Failure(
                failure_class=failure_class,
                message=f"{what}: {advice}",
                code=errno.errorcode.get(error.errno or 0),
                type=type(error).__name__,
            )
        ) from error
