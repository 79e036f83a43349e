"""What the sandbox provider remembers: every request received and every generation billed.

What belongs here: what is written and the index over it; the file itself is ``journal_file``'s. The
index is small; stored texts stay in the file and are read back on demand.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from content_pipeline.sandbox.faults import PAID
from content_pipeline.sandbox.journal_file import JournalFile, Place

JOURNAL_FILE = "provider.jsonl"
RECEIVED = ("at", "operation", "attempt_id", "page_job_id", "fault", "wait_s", "at_once")
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

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self._clear_index()
        file.load(self._index)

    @classmethod
    def in_memory(cls) -> "Journal":
        """A journal that ends with the process."""
        return cls(JournalFile.in_memory())

    @classmethod
    def in_folder(cls, folder: Path) -> "Journal":
        """The journal in ``folder``, which must exist. Raises ConfigurationError if damaged."""
        return cls(JournalFile.at(folder / JOURNAL_FILE))

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
        at_once: int | None = None,
    ) -> None:
        """Remember that a request was received, before anything is done about it.

        ``wait_s``: the wait that its answer announces; ``at_once``: calls that are generated now,
        this one included.
        """
        noted = {"operation": operation, "attempt_id": attempt_id, "fault": fault, "wait_s": wait_s}
        line = {"record": "request", "at": now(), "page_job_id": page_job_id, **noted}
        line["at_once"] = at_once
        self._index(line, self._file.append(line))

    def note_generation(self, generation: Generation, stored: Stored) -> None:
        """Remember that a generation was made and billed."""
        line = {
            "record": "generation",
            "generation": shallow(generation),
            "completion": stored.completion,
            "messages": stored.messages,
        }
        self._index(line, self._file.append(line))

    def forget(self, completion_id: str) -> None:
        """Take a completion out of the look-ups; that it was billed stays true."""
        line = {"record": "deleted", "at": now(), "id": completion_id}
        self._index(line, self._file.append(line))

    def reset(self) -> None:
        """Forget everything."""
        self._file.clear()
        self._clear_index()

    # --- reading -------------------------------------------------------------------------------

    def stored(self, completion_id: str) -> Stored | None:
        """What was kept of a completion; None when unknown, deleted or never to be stored."""
        if completion_id not in self._places:
            return None
        line = self._file.read(self._places[completion_id])
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
        return [
            {name: line.get(name) for name in RECEIVED}
            for line in self._file.lines()
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
        self._places: dict[str, Place] = {}

    def _index(self, line: Mapping[str, Any], place: Place) -> None:
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
                self._places[generation.id] = place
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
