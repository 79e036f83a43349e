"""What the sandbox provider remembers: every request received and every generation billed.

What belongs here: an append-only file of JSON lines and the index over it. A line is with the
operating system before the answer leaves, so truth and stored completions survive a ``kill -9`` of
the provider. The index is small; stored texts stay in the file and are read back on demand.
"""

import io
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.sandbox.faults import PAID

JOURNAL_FILE = "provider.jsonl"
RECEIVED = ("at", "operation", "attempt_id", "page_job_id", "fault", "wait_s")
"""What is told of one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One billed generation, delivered or not; tokens as billed."""

    id: str
    at: str
    """When it was complete: ISO 8601 in UTC."""
    attempt_id: str | None
    page_job_id: str | None
    model: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    latency_s: float
    finish_reason: str
    fault: str | None
    """Kind of the fault that befell it, None for an undisturbed one."""
    stored: bool
    """Whether the caller asked for it to be kept for look-ups."""
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A generation with the text that was kept of it."""

    completion: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]]


class Journal:
    """The file and its index. Not thread-safe: it belongs to the server's event loop."""

    def __init__(self, file: BinaryIO, origin: str = "memory") -> None:
        self._file = file
        self._origin = origin
        self._clear_index()
        try:
            self._load()
        except ConfigurationError:
            file.close()
            raise

    @classmethod
    def in_memory(cls) -> "Journal":
        """A journal that ends with the process."""
        return cls(io.BytesIO())

    @classmethod
    def in_folder(cls, folder: Path) -> "Journal":
        """The journal in ``folder``, which must exist. Raises ConfigurationError if damaged."""
        path = folder / JOURNAL_FILE
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        return cls(os.fdopen(descriptor, "r+b", buffering=0), str(path))

    def close(self) -> None:
        """Close the file; the journal is of no use afterwards."""
        self._file.close()

    # --- writing -------------------------------------------------------------------------------

    def note_request(
        self,
        operation: str,
        *,
        attempt_id: str | None = None,
        page_job_id: str | None = None,
        fault: str | None = None,
        wait_s: float | None = None,
    ) -> None:
        """Remember that a request was received, before anything is done about it.

        ``wait_s``: the wait that its answer announces.
        """
        noted = {"operation": operation, "attempt_id": attempt_id, "fault": fault, "wait_s": wait_s}
        line = {"record": "request", "at": now(), "page_job_id": page_job_id, **noted}
        self._index(line, *self._append(line))

    def note_generation(self, generation: Generation, stored: Stored) -> None:
        """Remember that a generation was made and billed."""
        line = {
            "record": "generation",
            "generation": shallow(generation),
            "completion": stored.completion,
            "messages": stored.messages,
        }
        self._index(line, *self._append(line))

    def forget(self, completion_id: str) -> None:
        """Take a completion out of the look-ups; that it was billed stays true."""
        line = {"record": "deleted", "at": now(), "id": completion_id}
        self._index(line, *self._append(line))

    def reset(self) -> None:
        """Forget everything."""
        self._file.truncate(0)
        self._end = 0
        self._clear_index()

    def _append(self, line: Mapping[str, Any]) -> tuple[int, int]:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        start = self._end
        self._file.seek(start)
        try:
            if self._file.write(data) != len(data):
                raise OSError(f"{self._origin}: the line was only written in part; disk full?")
        except OSError:
            self._file.truncate(start)
            raise
        self._end = start + len(data)
        return start, len(data)

    # --- reading -------------------------------------------------------------------------------

    def stored(self, completion_id: str) -> Stored | None:
        """What was kept of a completion; None when unknown, deleted or never to be stored."""
        if completion_id not in self._places:
            return None
        start, length = self._places[completion_id]
        self._file.seek(start)
        line = json.loads(self._file.read(length))
        return Stored(completion=line["completion"], messages=line["messages"])

    def find(self, metadata: Mapping[str, str], model: str | None) -> list[Generation]:
        """Stored generations, oldest first, that carry all of ``metadata`` and the model."""
        wanted = set(metadata.items())
        # Indexed by one pair: an attempt id names one generation among hundred thousand.
        pool = self._by_metadata.get(min(wanted), []) if wanted else self._generations
        return [
            generation
            for generation in pool
            if generation.id in self._places
            and wanted <= generation.metadata.items()
            and model in (None, generation.model)
        ]

    def counts(self) -> dict[str, int]:
        """A few numbers for a health check."""
        return {"requests": self._operations.total(), "generations": len(self._generations)}

    def received(self) -> list[dict[str, Any]]:
        """Every request in order of arrival, with its time, ids, fault and announced wait.

        Read from the file: a long-lived provider keeps only counts of them in memory.
        """
        self._file.seek(0)
        lines = map(json.loads, io.BytesIO(self._file.read(self._end)))
        return [
            {name: line.get(name) for name in RECEIVED}
            for line in lines
            if line["record"] == "request"
        ]

    def truth(self) -> dict[str, Any]:
        """Everything a test or a bench may hold against the ledger."""
        billed = self._generations
        return {
            "requests": self._operations.total(),
            "requests_by_operation": dict(self._operations),
            "creates_by_attempt_id": dict(self._creates),
            "faults": dict(self._faults),
            "generations": [shallow(generation) for generation in billed],
            "generations_by_attempt_id": _count(g.attempt_id for g in billed),
            "generations_by_page_job_id": _count(g.page_job_id for g in billed),
            "prompt_tokens": sum(g.prompt_tokens for g in billed),
            "completion_tokens": sum(g.completion_tokens for g in billed),
        }

    def _clear_index(self) -> None:
        self._operations: Counter[str] = Counter()
        self._creates: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._generations: list[Generation] = []
        self._by_metadata: dict[tuple[str, str], list[Generation]] = defaultdict(list)
        self._places: dict[str, tuple[int, int]] = {}

    def _load(self) -> None:
        self._end = 0
        self._file.seek(0)
        # Not ``for data in file``: an unbuffered file would be read byte by byte.
        for number, data in enumerate(io.BytesIO(self._file.read()), start=1):
            if not data.endswith(b"\n"):
                break
            try:
                self._index(json.loads(data), self._end, len(data))
            except (ValueError, KeyError, TypeError):
                raise ConfigurationError(
                    f"{self._origin}, line {number}: not a line of the sandbox provider's journal; "
                    "move the file away to start without history"
                ) from None
            self._end += len(data)
        # A torn last line was never answered for; the next line must not continue it.
        self._file.truncate(self._end)

    def _index(self, line: Mapping[str, Any], start: int, length: int) -> None:
        if line["record"] == "request":
            self._operations[line["operation"]] += 1
            if line["operation"] in PAID and line["attempt_id"]:
                self._creates[line["attempt_id"]] += 1
            if line["fault"]:
                self._faults[line["fault"]] += 1
        elif line["record"] == "generation":
            generation = Generation(**line["generation"])
            self._generations.append(generation)
            if generation.stored:
                self._places[generation.id] = (start, length)
                for pair in generation.metadata.items():
                    self._by_metadata[pair].append(generation)
        else:
            self._places.pop(line["id"], None)


def now() -> str:
    """The time in UTC as ISO 8601."""
    return datetime.fromtimestamp(time.time(), UTC).isoformat()


def shallow(record: Any) -> dict[str, Any]:
    """A dataclass as a dict, without the deep copies of ``asdict``."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _count(names: Iterator[str | None]) -> dict[str, int]:
    return dict(Counter(name for name in names if name is not None))
