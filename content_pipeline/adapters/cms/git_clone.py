"""Our private copy of the site's repository: its history, without a working tree.

What belongs here: the git commands of one branch, and the lock that lets all threads and processes
of a project share the copy. The copy is a cache: deleted, it is made anew. Only ``push`` changes
anything anywhere else, and it names the commit that it replaces.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from content_pipeline.adapters.cms.git_command import REMOTE, Finished, Git
from content_pipeline.adapters.cms.git_failures import Refusal, failed, refusal_of
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

LOCK_FILE = "content-pipeline.lock"

LOCK_TIMEOUT_S = 120.0
"""A fetch and a push of a large site take seconds; what holds the lock this long is stuck."""

LOCK_POLL_S = 0.005

_OUTGOING = "refs/outgoing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who our commits are by."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Blob:
    """A file of a commit: its name in the repository and the id of its content."""

    name: str
    blob_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GitClone:
    """The copy in ``git.folder`` of the remote's ``branch``."""

    git: Git
    branch: str
    author: Author
    lock_timeout_s: float = LOCK_TIMEOUT_S

    @contextmanager
    def locked(self) -> Iterator["LockedClone"]:
        """The right to fetch and push, among all processes, until left.

        Raises CallFailed: transient when another process keeps the lock, storage for the rest.
        """
        folder = self.git.folder
        with ExitStack() as stack:
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                lock = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                stack.callback(os.close, lock)
            except OSError as error:
                raise CallFailed(
                    Failure(
                        failure_class=FailureClass.STORAGE,
                        message=f"{folder} cannot be written: {error.strerror}",
                    )
                ) from error
            self._take(lock)
            stack.callback(fcntl.flock, lock, fcntl.LOCK_UN)
            self._clear_after_a_crash()
            yield LockedClone(clone=self, lock=lock)

    def blobs(self, blob_ids: Sequence[str]) -> dict[str, bytes]:
        """The contents of ``blob_ids``. Raises CallFailed (storage)."""
        if not blob_ids:
            return {}
        asked = "".join(f"{blob_id}\n" for blob_id in blob_ids).encode()
        output = self._ask("cat-file", "--batch", stdin=asked)
        found: dict[str, bytes] = {}
        at = 0
        for blob_id in blob_ids:
            end = output.index(b"\n", at)
            head = output[at:end].split()
            if len(head) != 3:
                raise _damaged(self.git.folder)
            size = int(head[2])
            found[blob_id] = output[end + 1 : end + 1 + size]
            at = end + 1 + size + 1
        return found

    def listing(self, commit: str, folder: str) -> list[Blob]:
        """All files below ``folder`` at ``commit``."""
        output = self._ask("ls-tree", "-r", "-z", commit, "--", f"{folder}/")
        lines = (entry.partition("\t") for entry in output.decode(errors="replace").split("\0"))
        return [
            Blob(name, meta.split()[2])
            for meta, _, name in lines
            if meta.startswith(("100", "120"))
        ]

    def changed(self, old: str, new: str, folder: str) -> list[Blob]:
        """Files below ``folder`` that differ between two commits; a deleted one has no id."""
        if old == new:
            return []
        arguments = ("diff-tree", "-r", "-z", "--no-renames", old, new, "--", f"{folder}/")
        parts = self._ask(*arguments).decode(errors="replace").split("\0")
        pairs = zip(parts[0::2], parts[1::2], strict=False)
        return [Blob(name, "" if meta.endswith(" D") else meta.split()[3]) for meta, name in pairs]

    def knows(self, commit: str) -> bool:
        """Whether ``commit`` is part of the history that was fetched."""
        return self.git.run("cat-file", "-e", f"{commit}^{{commit}}").status == 0

    def same_at(self, commit: str, blobs: Sequence[Blob]) -> set[str]:
        """Names of those ``blobs`` that ``commit`` holds with the same content.

        None when the commit was never on the branch.
        """
        asked = "".join(f"{commit}:{blob.name}\n" for blob in blobs).encode()
        lines = self._ask("cat-file", "--batch-check=%(objectname)", stdin=asked).splitlines()
        return {
            blob.name
            for blob, line in zip(blobs, lines, strict=False)
            if line.decode(errors="replace") == blob.blob_id
        }

    def count(self, since: str, until: str) -> int:
        """Commits of ``until`` that ``since`` does not have."""
        return int(self._ask("rev-list", "--count", f"{since}..{until}"))

    def mentions(self, commit: str, words: str, names: Sequence[str]) -> bool:
        """Whether a file of ``names`` (patterns) at ``commit`` holds ``words``."""
        arguments = ("grep", "-q", "-F", "-e", words, commit, "--", *names)
        return self.git.run(*arguments).status == 0

    def newest(self) -> str:
        """The newest commit that was fetched."""
        return self._ask("rev-parse", "--verify", f"{self.tracking}^{{commit}}").decode().strip()

    def _ask(self, *arguments: str, stdin: bytes = b"") -> bytes:
        finished = self.git.run(*arguments, stdin=stdin)
        if finished.status != 0:
            raise failed(f"reading {self.git.folder}", finished, lost=FailureClass.STORAGE)
        return finished.output

    def _take(self, lock: int) -> None:
        deadline = time.monotonic() + self.lock_timeout_s
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise CallFailed(
                        Failure(
                            failure_class=FailureClass.TRANSIENT,
                            message=f"another process has used {self.git.folder} for "
                            f"{self.lock_timeout_s:g} s; nothing was sent",
                        )
                    ) from None
                time.sleep(LOCK_POLL_S)
            else:
                return

    def _clear_after_a_crash(self) -> None:
        """Take git's own lock files away: whoever left them is gone, or our lock were held."""
        folder = self.git.folder
        names = ("config", "HEAD", "packed-refs", "shallow", "gc.pid", _OUTGOING, self.tracking)
        for name in names:
            with suppress(FileNotFoundError, NotADirectoryError):
                (folder / f"{name}.lock").unlink()

    @property
    def tracking(self) -> str:
        """The reference that holds what was fetched last."""
        return f"refs/remotes/{REMOTE}/{self.branch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedClone:
    """What may be done to the copy, and with it, while its lock is held."""

    clone: GitClone
    lock: int

    def fetch(self, *, known: str | None = None) -> str:
        """Bring the branch here; the id of its newest commit, which may be the ``known`` one.

        Raises CallFailed: request for a branch that does not exist, auth, not_sent, transient,
        storage.
        """
        folder, branch, tracking = self.clone.git.folder, self.clone.branch, self.clone.tracking
        doing = f"fetching branch {branch} of {self.clone.git.remote.url}"
        if known is not None and (folder / "objects").is_dir():
            # A third of the cost of a fetch that brings nothing, and most bring nothing.
            asked = self._run("ls-remote", REMOTE, f"refs/heads/{branch}")
            if asked.status == 0 and asked.output.decode().split("\t")[0] == known:
                return known
        else:
            self._prepare()
        fetched = self._run(
            *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
            *("--no-auto-gc", REMOTE, f"+refs/heads/{branch}:{tracking}"),
        )
        if fetched.status != 0:
            raise failed(doing, fetched, lost=FailureClass.TRANSIENT)
        return self.clone.newest()

    def _prepare(self) -> None:
        """Make the copy, or tidy it up, once in the life of a process."""
        made = self._run("init", "--quiet", "--bare", "--template=")
        if made.status != 0:
            raise failed("making the local copy", made, lost=FailureClass.STORAGE)
        self._run("gc", "--auto", "--quiet")

    def commit(
        self, parent: str, files: Mapping[str, bytes | None], *, message: str, at: datetime
    ) -> str:
        """A commit on top of ``parent`` with ``files`` written, or deleted where None.

        The same arguments give the same id. Raises CallFailed (storage); nothing was sent.
        """
        by = self.clone.author
        who = f"{by.name} <{by.email}> {int(at.timestamp())} +0000"
        stream = [
            f"feature done\ncommit {_OUTGOING}\nmark :1\nauthor {who}\ncommitter {who}\n".encode(),
            _data(message.encode()),
            f"from {parent}\n".encode(),
            *_file_commands(files.items()),
            b"\nget-mark :1\ndone\n",
        ]
        made = self._run("fast-import", "--quiet", "--force", stdin=b"".join(stream))
        if made.status != 0:
            raise failed("making a commit", made, lost=FailureClass.STORAGE)
        return made.output.decode().strip()

    def push(self, commit: str, *, over: str, dry_run: bool = False) -> tuple[Refusal, str] | None:
        """Make ``commit`` the branch if that is ``over``; why not, or None when it was done.

        Raises CallFailed: auth or not_sent when nothing was sent, uncertain when nobody knows.
        """
        branch = f"refs/heads/{self.clone.branch}"
        pushed = self._run(
            *("push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"),
            *(["--dry-run"] if dry_run else []),
            *(f"--force-with-lease={branch}:{over}", REMOTE, f"{commit}:{branch}"),
        )
        if pushed.status == 0:
            return None
        refusal = refusal_of(pushed)
        if refusal is None:
            doing = f"pushing to {self.clone.git.remote.url}"
            raise failed(doing, pushed, lost=FailureClass.UNCERTAIN)
        return refusal

    def _run(self, *arguments: str, stdin: bytes = b"") -> Finished:
        return self.clone.git.run(*arguments, stdin=stdin, held=[self.lock])


def _file_commands(files: Iterable[tuple[str, bytes | None]]) -> Iterator[bytes]:
    for name, data in files:
        quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        if data is None:
            yield f"D {quoted}\n".encode()
        else:
            yield f"M 100644 inline {quoted}\n".encode()
            yield _data(data)


def _data(data: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(data), data)


def _damaged(folder: Path) -> CallFailed:
    return CallFailed(
        Failure(
            failure_class=FailureClass.STORAGE,
            message=f"the copy of the site in {folder} is damaged; delete the folder, it is made "
            "anew",
        )
    )
