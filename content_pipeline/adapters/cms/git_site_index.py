"""Which files of a commit are pages, whose they are, and at which address each of them stands.

What belongs here: the map from addresses and our keys to files, kept up to date from commit to
commit, and how a generator derives an address from a file's name. What a file says in full is
``git_page_file``'s.
"""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from content_pipeline.adapters.cms.folder_paths import PAGE_FILE, page_file
from content_pipeline.adapters.cms.git_clone import Blob
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

PAGE_SUFFIX = ".html"
"""Of our own pages: HTML content is shown as it is, where Markdown would be interpreted."""

PAGE_SUFFIXES = frozenset({".html", ".htm", ".md", ".markdown", ".mdown", ".adoc", ".org", ".rst"})
"""Files that a generator makes a page of."""

STEP = "+"
"""Stands for a slash of the address in a file's name; no address that a site declares has one."""

MAX_NAME_BYTES = 255
"""The longest file name of every common file system."""

INDEX, SECTION = "index", "_index"
"""File names, without suffix, that stand for their folder."""

SHA1_DIGITS = 40
"""Of an id in most repositories; the newer kind has SHA-256."""

READ_AT_ONCE = 500
"""Files whose text is held in memory together while a site is read."""

_FRONT = re.compile(
    rb"\A(?:\xef\xbb\xbf)?(---|\+\+\+)[ \t]*\r?\n(.{0,65536}?)^\1", re.DOTALL | re.M
)
_LINE = re.compile(rb"^(cp_key|url|slug)[ \t]*[:=][ \t]*(.*?)[ \t\r]*$", re.M | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One file that is a page."""

    name: str
    """In the repository."""
    blob_id: str
    key: str | None
    """The id of the page that it is marked as, if any."""
    path: str
    """Its address, like ``Document.path``."""


Texts = Callable[[Sequence[str]], dict[str, bytes]]
"""Gives the contents of blobs by their ids."""


class SiteIndex:
    """The pages below the content folder at one commit; safe for threads."""

    def __init__(self, content_folder: str) -> None:
        self.content_folder = content_folder
        self._lock = threading.RLock()
        self._commit: str | None = None
        self._entries: dict[str, PageEntry] = {}
        self._by_key: dict[str, set[str]] = {}
        self._by_path: dict[str, set[str]] = {}

    @property
    def commit(self) -> str | None:
        """The commit that is described; None before the first."""
        with self._lock:
            return self._commit

    def advance(self, commit: str, changed: Iterable[Blob], texts: Texts) -> None:
        """Describe ``commit``, which differs from the one before in the files ``changed``."""
        pages = [blob for blob in changed if is_page(blob.name)]
        entries: list[PageEntry] = []
        there = [blob for blob in pages if blob.blob_id]
        for start in range(0, len(there), READ_AT_ONCE):
            part = there[start : start + READ_AT_ONCE]
            found = texts([blob.blob_id for blob in part])
            entries += [self.entry_of(blob, found[blob.blob_id]) for blob in part]
        with self._lock:
            for blob in pages:
                self._drop(blob.name)
            for entry in entries:
                self._entries[entry.name] = entry
                self._by_path.setdefault(entry.path, set()).add(entry.name)
                if entry.key is not None:
                    self._by_key.setdefault(entry.key, set()).add(entry.name)
            self._commit = commit

    def write(self, commit: str, files: Mapping[str, bytes | None]) -> None:
        """Describe ``commit``, which we made on top of the one before by writing ``files``."""
        texts = {blob_id_of(text, like=commit): text for text in files.values() if text is not None}
        blobs = [
            Blob(name, "" if text is None else blob_id_of(text, like=commit))
            for name, text in files.items()
        ]
        self.advance(commit, blobs, lambda _: texts)

    def entry_of(self, blob: Blob, text: bytes) -> PageEntry:
        """What the index says of a file with this text."""
        front = _FRONT.match(text)
        lines = _LINE.findall(front[2]) if front else []
        said = {key.decode().lower(): _plain(value) for key, value in lines}
        path = path_of(blob.name.removeprefix(f"{self.content_folder}/"), said)
        return PageEntry(blob.name, blob.blob_id, said.get("cp_key"), path)

    def named(self, name: str) -> PageEntry | None:
        """The page in the file ``name``."""
        with self._lock:
            return self._entries.get(name)

    def marked(self, page_id: str) -> list[PageEntry]:
        """Pages that are marked as ``page_id``, by name."""
        with self._lock:
            return [self._entries[name] for name in sorted(self._by_key.get(page_id, ()))]

    def standing_at(self, path: str) -> list[PageEntry]:
        """Pages whose address is ``path``, by name."""
        with self._lock:
            return [self._entries[name] for name in sorted(self._by_path.get(path, ()))]

    def names(self) -> list[str]:
        """The files of all pages, sorted; the site's own first page is none of them."""
        with self._lock:
            return sorted(name for name, entry in self._entries.items() if entry.path != "/")

    def bundle_above(self, name: str) -> str | None:
        """A page above ``name`` that takes all files below it for its own attachments."""
        with self._lock:
            for folder in PurePosixPath(name).parents:
                for suffix in PAGE_SUFFIXES:
                    above = f"{folder}/{INDEX}{suffix}"
                    if above in self._entries and above != name:
                        return above
        return None

    def _drop(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._by_path[entry.path].discard(name)
            if entry.key is not None:
                self._by_key[entry.key].discard(name)


def blob_id_of(text: bytes, *, like: str) -> str:
    """Git's id of a file's content, in a repository with commit ids ``like`` this."""
    data = b"blob %d\0%s" % (len(text), text)
    if len(like) == SHA1_DIGITS:
        return hashlib.sha1(data, usedforsecurity=False).hexdigest()
    return hashlib.sha256(data).hexdigest()


def is_page(name: str) -> bool:
    """Whether a generator makes a page of the file."""
    return PurePosixPath(name).suffix.lower() in PAGE_SUFFIXES


def own_file(content_folder: str, path: str) -> str:
    """The file in the repository that our page at ``path`` is written to.

    All lie side by side, `/a/b/` in ``a+b.html``: a generator takes what lies below a file called
    index for its attachments, and makes a list of every folder, in the place of a page of ours
    (Hugo 0.111). Raises CallFailed (invalid_input) for a path that can be no file.
    """
    stem = page_file(path).removesuffix(f"/{PAGE_FILE}").replace("/", STEP)
    if stem.lower() in (INDEX, SECTION) or len(stem.encode()) + len(PAGE_SUFFIX) > MAX_NAME_BYTES:
        raise CallFailed(
            Failure(
                failure_class=FailureClass.INVALID_INPUT,
                message=f"{path[:80]} cannot be published to a repository: a content file may not "
                f"be called index and has a name of at most {MAX_NAME_BYTES} bytes; give the page "
                "another path",
            )
        )
    return f"{content_folder}/{stem}{PAGE_SUFFIX}"


def path_of(name: str, said: dict[str, str]) -> str:
    """The address of the content file ``name``, which may say ``url`` or ``slug`` of its own."""
    url = said.get("url", "").strip("/")
    if url:
        return f"/{url}/"
    parts = PurePosixPath(name).with_suffix("").parts
    if parts[-1] in (INDEX, SECTION):
        parts = parts[:-1]
    slug = said.get("slug", "").strip("/")
    if slug and parts:
        parts = (*parts[:-1], slug)
    path = "/".join(parts).lower().replace(" ", "-")
    return f"/{path}/" if path else "/"


def _plain(value: bytes) -> str:
    """A scalar of front matter without its quotes."""
    text = value.decode(errors="replace")
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text
