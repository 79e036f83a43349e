"""Changes of pages as commits: many threads hand theirs in, one of them pushes for all.

What belongs here: whether a change may be made on top of the newest commit, the queue, and what
follows when the branch moved, a lock stands in the way or an answer was lost. Pages that arrive
while a push is under way go into the next commit together.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from content_pipeline.adapters.cms.git_clone import GitClone, LockedClone
from content_pipeline.adapters.cms.git_failures import Refusal
from content_pipeline.adapters.cms.git_site_index import SiteIndex
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

TRIES = 6
"""Pushes of one commit's changes before giving up for now: each lost to another's push."""

MOST_AT_ONCE = 100
"""Changes of one commit: a person can still read what it did."""

Files = Mapping[str, bytes | None]
"""File name → its new content; None deletes it."""


class Change(Protocol):
    """One page's change, decided anew on every commit it is tried on."""

    @property
    def title(self) -> str:
        """What the change does, for the commit's message."""
        ...

    def files(self, index: SiteIndex, now: datetime) -> Files:
        """What to write on top of what ``index`` describes; nothing when it is so already.

        Raises CallFailed: conflict when the page is not what the caller saw.
        """
        ...


@dataclass(slots=True, kw_only=True)
class _Order:
    """A change on its way."""

    change: Change
    is_settled: bool = False
    failure: CallFailed | None = None

    def settle(self, failure: CallFailed | None = None) -> None:
        self.failure, self.is_settled = failure, True


@dataclass(slots=True, kw_only=True)
class GitWriter:
    """Writes to the branch of ``clone`` and keeps ``index`` at its newest commit."""

    clone: GitClone
    index: SiteIndex
    clock: Callable[[], datetime]
    _queue: list[_Order] = field(default_factory=list)
    _queue_lock: threading.Lock = field(default_factory=threading.Lock)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _begun: int = 0
    _ended: int = 0
    _fetch_failure: CallFailed | None = None

    def write(self, change: Change) -> None:
        """Make the change public on the branch, or find it made.

        Raises CallFailed: conflict, what the change itself is refused for, transient or storage
        (nothing was pushed), request (the remote's rules), auth, not_sent, or uncertain.
        """
        order = _Order(change=change)
        with self._queue_lock:
            self._queue.append(order)
        while not order.is_settled:
            with self._turn:
                if not order.is_settled:
                    self._push(self._next_orders())
        if order.failure is not None:
            raise order.failure

    def refresh(self) -> None:
        """Bring the index to the newest commit there is now. Raises CallFailed.

        Threads that ask while a fetch is under way share the next one.
        """
        with self._queue_lock:
            begun_before = self._begun
        with self._turn:
            if self._ended <= begun_before:
                with self._queue_lock:
                    self._begun += 1
                self._fetch_failure = None
                try:
                    with self.clone.locked() as locked:
                        self._advance(locked)
                except CallFailed as failed:
                    self._fetch_failure = failed
                self._ended = self._begun
            failure = self._fetch_failure
        if failure is not None:
            raise CallFailed(failure.failure)

    def _next_orders(self) -> list[_Order]:
        with self._queue_lock:
            taken, self._queue = self._queue[:MOST_AT_ONCE], self._queue[MOST_AT_ONCE:]
        return taken

    def _push(self, orders: Sequence[_Order]) -> None:
        """Settle all ``orders``, whatever happens."""
        try:
            with self.clone.locked() as locked:
                self._push_together(locked, orders)
        except CallFailed as failed:
            for order in _open(orders):
                order.settle(CallFailed(failed.failure))
        finally:
            for order in _open(orders):  # only a defect of ours leaves one: nobody waits for ever
                order.settle(_undone())

    def _push_together(self, locked: LockedClone, orders: Sequence[_Order]) -> None:
        refusal, words = Refusal.MOVED, ""
        for _ in range(TRIES):
            head = self._advance(locked)
            now = self.clock()
            files = self._files_of(orders, now)
            if not files:
                break
            message = _message(_open(orders))
            commit = locked.commit(head, files, message=message, at=now)
            answer = self._sent(locked, commit, over=head)
            if answer is None:
                self._advance(locked, at_least=commit)
                break
            refusal, words = answer
            if refusal is Refusal.REFUSED and len(list(_open(orders))) > 1:
                self._push_each(locked, orders)
                return
            if refusal not in (Refusal.MOVED, Refusal.LOCKED):
                raise _refused(refusal, words, self.clone)
        else:
            raise _refused(refusal, words, self.clone)
        for order in _open(orders):
            order.settle()

    def _push_each(self, locked: LockedClone, orders: Sequence[_Order]) -> None:
        """One by one: a page that the remote declines must not stand in the way of others."""
        for order in list(_open(orders)):
            try:
                self._push_together(locked, [order])
            except CallFailed as failed:
                order.settle(failed)

    def _files_of(self, orders: Sequence[_Order], now: datetime) -> dict[str, bytes | None]:
        """The files of all changes that may be made; the others are settled here."""
        files: dict[str, bytes | None] = {}
        for order in _open(orders):
            try:
                wanted = order.change.files(self.index, now)
            except CallFailed as failed:
                order.settle(failed)
                continue
            if wanted.keys() & files.keys():
                order.settle(_raced(order.change))
            elif wanted:
                files |= wanted
            else:
                order.settle()
        return files

    def _sent(self, locked: LockedClone, commit: str, *, over: str) -> tuple[Refusal, str] | None:
        """As ``LockedClone.push``; a lost answer is looked for in the branch itself."""
        try:
            return locked.push(commit, over=over)
        except CallFailed as failed:
            if failed.failure.failure_class is not FailureClass.UNCERTAIN:
                raise
            try:
                head = locked.fetch()
            except CallFailed:
                raise failed from None
            if head == commit or self.clone.count(head, commit) == 0:
                return None
            raise

    def _advance(self, locked: LockedClone, *, at_least: str | None = None) -> str:
        """Bring the index to the newest commit, or to ``at_least`` without asking the remote."""
        head = at_least or locked.fetch()
        before, folder = self.index.commit, self.index.content_folder
        if before == head:
            return head
        if before is None or not self.clone.knows(before):
            changed = self.clone.listing(head, folder)
        else:
            changed = self.clone.changed(before, head, folder)
        self.index.advance(head, changed, self.clone.blobs)
        return head


def _open(orders: Sequence[_Order]) -> Iterator[_Order]:
    return (order for order in orders if not order.is_settled)


def _message(orders: Iterator[_Order]) -> str:
    titles = [order.change.title for order in orders]
    if len(titles) == 1:
        return f"{titles[0]}\n"
    return f"Change {len(titles)} pages\n\n" + "".join(f"{title}\n" for title in titles)


def _refused(refusal: Refusal, words: str, clone: GitClone) -> CallFailed:
    where = f"branch {clone.branch} of {clone.git.remote.url}"
    failure_class, message = {
        Refusal.MOVED: (
            FailureClass.TRANSIENT,
            f"{where} moved {TRIES} times while we pushed; nothing was written",
        ),
        Refusal.LOCKED: (
            FailureClass.STORAGE,
            f"{where} is locked by a git process, perhaps one that crashed ({words}); when none "
            "runs there, remove that lock file in the remote repository",
        ),
        Refusal.UNSTORED: (
            FailureClass.TRANSIENT,
            f"{where} could not store the commit ({words}); free space there",
        ),
        Refusal.REFUSED: (FailureClass.REQUEST, f"{where} refuses the commit: {words}"),
    }[refusal]
    return CallFailed(Failure(failure_class=failure_class, message=message, code=str(refusal)))


def _raced(change: Change) -> CallFailed:
    return CallFailed(
        Failure(
            failure_class=FailureClass.CONFLICT,
            message=f"{change.title}: another worker changes the same file at this moment; look at "
            "it again before replacing it",
        )
    )


def _undone() -> CallFailed:
    return CallFailed(
        Failure(
            failure_class=FailureClass.UNCERTAIN,
            message="the push ended without an outcome; the branch is asked what it holds",
        )
    )
