"""What the CMS holds and remembers: pages, their revisions, and every change ever made.

What belongs here: the journal's lines and the index over them. A change is in the journal before
anybody is told of it, so all of it survives a ``kill -9``. Superseded texts stay in the file.
"""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from content_pipeline.sandbox.cms.pages import Mark, Page, Status, mark_of
from content_pipeline.sandbox.cms.settings import LONGEST_LAG_S
from content_pipeline.sandbox.cms.words import WordIndex
from content_pipeline.sandbox.journal import now, shallow
from content_pipeline.sandbox.journal_file import JournalFile, Place

JOURNAL_FILE = "cms.jsonl"
FIRST_ID = 1
_KEY_WORD = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A kept version of a page's text."""

    id: int
    author: int
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one page, as truth remembers it."""

    at: str
    """ISO 8601 in UTC, by the machine's clock."""
    page_id: int
    by: int
    """The account's id."""
    cause: str
    """Operation, or what a person did."""
    path: str
    """Where a visitor would find it, in this status or another."""
    status: Status | None
    """None: deleted for good."""
    mark: Mark | None
    digest: str

    @property
    def is_public(self) -> bool:
        """Whether a visitor sees the page from now on."""
        return self.status is Status.PUBLISH


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What is kept in memory of one request."""

    at: str
    key: str
    """Of the page it was about, as far as that could be told."""
    wait_s: float | None
    """The wait that its answer announced."""


class Store:
    """The file and its index. Not thread-safe: it belongs to the server's event loop."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self._clear_index()
        file.load(self._index)

    @classmethod
    def in_memory(cls) -> "Store":
        """A store that ends with the process."""
        return cls(JournalFile.in_memory())

    @classmethod
    def in_folder(cls, folder: Path) -> "Store":
        """The store in ``folder``, which must exist. Raises ConfigurationError if damaged."""
        return cls(JournalFile.at(folder / JOURNAL_FILE))

    def close(self) -> None:
        """Close the file; the store is of no use afterwards."""
        self._file.close()

    # --- writing -------------------------------------------------------------------------------

    def new_id(self) -> int:
        """An id that nothing else has; pages and revisions share one sequence."""
        self._last_id += 1
        return self._last_id

    def write(self, page: Page, *, by: int, cause: str, pattern: re.Pattern[str]) -> None:
        """Make ``page`` the row of its id; an update keeps a revision when the text changed.

        The first update of a page always keeps one, as measured.
        """
        revision = None
        if page.id in self.pages and self._kept_digest.get(page.id) != page.digest:
            revision = self.new_id()
        mark = mark_of(page, pattern)
        self._note(
            {
                "record": "write",
                "at": now(),
                "by": by,
                "cause": cause,
                "page": shallow(page),
                "mark": shallow(mark) if mark else None,
                "revision": revision,
            }
        )

    def delete(self, page_id: int, *, by: int, cause: str) -> None:
        """Remove a page for good; its children move to the top."""
        self._note({"record": "delete", "at": now(), "by": by, "cause": cause, "id": page_id})

    def note_request(self, operation: str, key: str, particulars: Mapping[str, Any]) -> None:
        """Remember that a request was received, before anything is done about it."""
        noted = {"record": "request", "at": now(), "operation": operation, "key": key}
        self._note({**noted, **particulars})

    def note_delivery(self, kind: str, name: str, particulars: Mapping[str, Any]) -> None:
        """Remember what one of the services was told, and what it answered."""
        noted = {"record": "delivery", "at": now(), "kind": kind, "name": name}
        self._note({**noted, **particulars})

    def reset(self) -> None:
        """Forget everything."""
        self._file.clear()
        self._clear_index()

    def _note(self, line: Mapping[str, Any]) -> None:
        self._index(line, self._file.append(line))

    # --- reading -------------------------------------------------------------------------------

    def slugged(self, slug: str) -> list[Page]:
        """All pages with ``slug``, the oldest first."""
        return [self.pages[page_id] for page_id in sorted(self._by_slug.get(slug, ()))]

    def children(self, page_id: int) -> list[Page]:
        """Pages whose parent is ``page_id``."""
        return [page for page in self.pages.values() if page.parent == page_id]

    def revisions(self, page_id: int) -> list[Revision]:
        """The kept versions of a page, the newest first."""
        return self._revisions.get(page_id, [])[::-1]

    def text_of(self, revision: Revision) -> Page:
        """The page as a revision kept it."""
        return _page(self._file.read(revision.place)["page"])

    def listed(self, lag_s: float, terms: Iterable[str] = ()) -> Iterable[Page]:
        """All pages as they were ``lag_s`` ago; those without ``terms`` may be left out."""
        if not lag_s:
            return self._that_may_hold(terms)
        then = time.time() - lag_s
        lagging = {page_id: _as_of(seen, then) for page_id, seen in self._recent.items()}
        held = {**self.pages, **lagging}
        return [page for page in held.values() if page is not None]

    def _that_may_hold(self, terms: Iterable[str]) -> Iterable[Page]:
        for term in terms:
            candidates = self._words.candidates(term)
            if candidates is not None:
                return [self.pages[page_id] for page_id in candidates]
        return self.pages.values()

    def key_of(self, page_id: int) -> str | None:
        """The key of our mark on a page, also of one that is gone."""
        return self._keys.get(page_id)

    def known_key(self, text: str) -> str | None:
        """The known key in ``text``, which may carry a word such as ``key=`` before it."""
        words = _KEY_WORD.findall(text)
        return next((word for word in words if word in self._known_keys), None)

    def requests(self) -> list[dict[str, Any]]:
        """Every request in order of arrival; read from the file."""
        return list(self._records("request"))

    def deliveries(self) -> list[dict[str, Any]]:
        """Everything the services were told, in order; read from the file."""
        return list(self._records("delivery"))

    def _records(self, kind: str) -> Iterator[dict[str, Any]]:
        for line in self._file.lines():
            if line.pop("record") == kind:
                yield line

    # --- the index -----------------------------------------------------------------------------

    def _clear_index(self) -> None:
        self.pages: dict[int, Page] = {}
        self.changes: list[Change] = []
        self.received: list[Received] = []
        self.operations: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.delivered: Counter[tuple[str, str, int]] = Counter()
        """By kind, name and the status of the answer."""
        self._last_id = FIRST_ID - 1
        self._by_slug: defaultdict[str, set[int]] = defaultdict(set)
        self._revisions: defaultdict[int, list[Revision]] = defaultdict(list)
        self._kept_digest: dict[int, str] = {}
        self._recent: dict[int, list[tuple[float, Page | None]]] = {}
        self._words = WordIndex()
        self._keys: dict[int, str] = {}
        self._known_keys: set[str] = set()

    def _index(self, line: Mapping[str, Any], place: Place) -> None:
        match line["record"]:
            case "write":
                self._index_write(line, place)
            case "delete":
                self._index_delete(line)
            case "request":
                self.operations[line["operation"]] += 1
                self.received.append(
                    Received(at=line["at"], key=line["key"], wait_s=line["wait_s"])
                )
                if line["fault"]:
                    self.faults[line["fault"]] += 1
            case "delivery":
                self.delivered[line["kind"], line["name"], line["status"]] += 1
            case other:
                raise ValueError(other)

    def _index_write(self, line: Mapping[str, Any], place: Place) -> None:
        page = _page(line["page"])
        mark = Mark(**line["mark"]) if line["mark"] else None
        if line["revision"] is not None:
            kept = Revision(id=line["revision"], author=line["by"], place=place)
            self._revisions[page.id].append(kept)
            self._kept_digest[page.id] = page.digest
        self._last_id = max(self._last_id, page.id, line["revision"] or 0)
        self._place(page.id, page, line["at"])
        if mark:
            self._keys[page.id] = mark.key
            self._known_keys.add(mark.key)
        self._changed(line, page, mark, page.status)

    def _index_delete(self, line: Mapping[str, Any]) -> None:
        gone = self.pages[line["id"]]
        for child in self.children(gone.id):
            self._place(child.id, replace(child, parent=gone.parent), line["at"])
        self._changed(line, gone, None, None)
        self._place(gone.id, None, line["at"])
        self._revisions.pop(gone.id, None)
        self._kept_digest.pop(gone.id, None)

    def _changed(
        self, line: Mapping[str, Any], page: Page, mark: Mark | None, status: Status | None
    ) -> None:
        self.changes.append(
            Change(
                at=line["at"],
                page_id=page.id,
                by=line["by"],
                cause=line["cause"],
                path=self.path_of(page),
                status=status,
                mark=mark,
                digest=page.digest,
            )
        )

    def path_of(self, page: Page) -> str:
        """The page's path by its own slug and those of its ancestors, whatever their status."""
        names = [page.slug]
        seen = {page.id}
        while page.parent and page.parent not in seen and page.parent in self.pages:
            page = self.pages[page.parent]
            seen.add(page.id)
            names.append(page.slug)
        return "/" + "".join(f"{name}/" for name in reversed(names))

    def _place(self, page_id: int, page: Page | None, at: str) -> None:
        """Make ``page`` what is held under its id."""
        before = self.pages.get(page_id)
        self._remember(page_id, before, page, datetime.fromisoformat(at).timestamp())
        if before is not None:
            self._by_slug[before.slug].discard(page_id)
            if not self._by_slug[before.slug]:
                del self._by_slug[before.slug]
        if page is None:
            self.pages.pop(page_id, None)
            self._words.remove(page_id)
        else:
            self.pages[page_id] = page
            self._by_slug[page.slug].add(page_id)
            self._words.put(page_id, page.searchable)

    def _remember(self, page_id: int, before: Page | None, after: Page | None, at_s: float) -> None:
        """Keep what listings may still have to show; forget what none can."""
        oldest = at_s - LONGEST_LAG_S
        while self._recent:
            first = next(iter(self._recent))
            if self._recent[first][-1][0] > oldest:
                break
            del self._recent[first]
        # Taken out and put back, so that the longest unchanged page comes first.
        seen = self._recent.pop(page_id, None) or [(0.0, before)]
        self._recent[page_id] = [*seen, (at_s, after)]


def _as_of(seen: list[tuple[float, Page | None]], then: float) -> Page | None:
    return [page for at_s, page in seen if at_s <= then][-1]


def _page(fields: Mapping[str, Any]) -> Page:
    return Page(**{**fields, "status": Status(fields["status"])})
