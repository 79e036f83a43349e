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

PAUSE_S = 60.0
"""Nobody pushes for so long to a remote repository that is locked or full. Every page would be
refused alike, and a thousand pages would use up their tries on one stale lock file."""

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
    """A change on its way, or without one the wish to see the branch as it is now."""

    change: Change | None = None
    is_settled: bool = False
    failure: CallFailed | None = None

    def settle(self, failure: CallFailed | None = None) -> None:
        # A new exception for each: threads that raise one and the same would share its traceback.
        self.failure = None if failure is None else CallFailed(failure.failure)
        self.is_settled = True


@dataclass(slots=True, kw_only=True)
class GitWriter:
    """Writes to the branch of ``clone`` and keeps ``index`` at its newest commit."""

    clone: GitClone
    index: SiteIndex
    clock: Callable[[], datetime]
    _queue: list[_Order] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _is_busy: bool = False

    def write(self, change: Change) -> None:
        """Make the change public on the branch, or find it made.

        Raises CallFailed: conflict, what the change itself is refused for, transient or storage
        (nothing was pushed), request (the remote's rules), auth, not_sent, or uncertain.
        """
        self._see_to(_Order(change=change))

    def refresh(self) -> None:
        """Bring the index to the newest commit there is now. Raises CallFailed."""
        self._see_to(_Order())

    def _see_to(self, order: _Order) -> None:
        """Wait until ``order`` is settled; whoever finds nobody at work does the work of all."""
        with self._changed:
            self._queue.append(order)
        while not order.is_settled:
            with self._changed:
                while self._is_busy and not order.is_settled:
                    self._changed.wait()
                if order.is_settled:
                    break
                self._is_busy = True
                orders = self._next_orders()
            try:
                self._work(orders)
            finally:
                with self._changed:
                    self._is_busy = False
                    self._changed.notify_all()
        if order.failure is not None:
            raise order.failure

    def _next_orders(self) -> list[_Order]:
        taken, self._queue = self._queue[:MOST_AT_ONCE], self._queue[MOST_AT_ONCE:]
        return taken

    def _work(self, orders: Sequence[_Order]) -> None:
        """Settle all ``orders``, whatever happens."""
        try:
            with self.clone.locked() as locked:
                head = self._advance(locked)
                self._settle_looks(orders)
                if any(_open(orders)):
                    self._push_together(locked, orders, head=head)
        except CallFailed as failed:
            for order in _open(orders):
                order.settle(failed)
        finally:
            for order in _open(orders):  # only a defect of ours leaves one: nobody waits for ever
                order.settle(_undone())

    def _settle_looks(self, orders: Sequence[_Order]) -> None:
        """Those who only want to see need not wait for the push."""
        with self._changed:
            for order in orders:
                if order.change is None:
                    order.settle()
            self._changed.notify_all()

    def _push_together(self, locked: LockedClone, orders: Sequence[_Order], *, head: str) -> None:
        refusal, words = Refusal.MOVED, ""
        for _ in range(TRIES):
            now = self.clock()
            files = self._files_of(orders, now)
            if not files:
                break
            message = _message(_open(orders))
            commit = locked.commit(head, files, message=message, at=now)
            answer = self._sent(locked, commit, over=head)
            if answer is None:
                self.index.write(commit, files)
                break
            refusal, words = answer
            if refusal is Refusal.REFUSED and len(list(_open(orders))) > 1:
                self._push_each(locked, orders, head=head)
                return
            if refusal not in (Refusal.MOVED, Refusal.LOCKED):
                raise _refused(refusal, words, self.clone)
            head = self._advance(locked)
        else:
            raise _refused(refusal, words, self.clone)
        for order in _open(orders):
            order.settle()

    def _push_each(self, locked: LockedClone, orders: Sequence[_Order], *, head: str) -> None:
        """One by one: a page that the remote declines must not stand in the way of others."""
        for order in list(_open(orders)):
            try:
                self._push_together(locked, [order], head=head)
            except CallFailed as failed:
                order.settle(failed)
            head = self.index.commit or head

    def _files_of(self, orders: Sequence[_Order], now: datetime) -> dict[str, bytes | None]:
        """The files of all changes that may be made; the others are settled here."""
        files: dict[str, bytes | None] = {}
        for order in _open(orders):
            assert order.change is not None
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

    def _advance(self, locked: LockedClone) -> str:
        """Bring the index to the newest commit; its id."""
        head = locked.fetch(known=self.index.commit)
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
    titles = [order.change.title for order in orders if order.change is not None]
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
            FailureClass.THROTTLED,
            f"{where} is locked by a git process, perhaps one that crashed ({words}); when none "
            "runs there, remove that lock file in the remote repository",
        ),
        Refusal.UNSTORED: (
            FailureClass.THROTTLED,
            f"{where} could not store the commit ({words}); free space there",
        ),
        Refusal.FORBIDDEN: (
            FailureClass.AUTH,
            f"{where} may not be pushed to by us ({words}); give our account the right to",
        ),
        Refusal.REFUSED: (FailureClass.REQUEST, f"{where} refuses the commit: {words}"),
    }[refusal]
    return CallFailed(
        Failure(
            failure_class=failure_class,
            message=message,
            code=str(refusal),
            retry_after_s=PAUSE_S if failure_class is FailureClass.THROTTLED else None,
        )
    )


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
