"""An append-only file of JSON lines that survives a ``kill -9`` of the process that writes it.

What belongs here: writing, reading and mending such a file; what the lines mean is the journals'.
A line is with the operating system before ``append`` returns, so an answer that is sent afterwards
never tells more than the file.
"""

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from content_pipeline.core.errors import ConfigurationError

Place = tuple[int, int]
"""Start and length of a line in bytes."""


class JournalFile:
    """The file. Not thread-safe: it belongs to the server's event loop."""

    def __init__(self, file: BinaryIO, origin: str) -> None:
        self._file = file
        self._origin = origin
        self._end = 0

    @classmethod
    def in_memory(cls) -> "JournalFile":
        """A journal that ends with the process."""
        return cls(io.BytesIO(), "memory")

    @classmethod
    def at(cls, path: Path) -> "JournalFile":
        """The file at ``path``, made if there is none; its folder must exist. Raises OSError."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        return cls(os.fdopen(descriptor, "r+b", buffering=0), str(path))

    def close(self) -> None:
        """Close the file; it is of no use afterwards."""
        self._file.close()

    def load(self, index: Callable[[Mapping[str, Any], Place], None]) -> None:
        """Show every line to ``index``, and forget a torn last one.

        Raises ConfigurationError, with the file closed, for a line that ``index`` cannot read.
        """
        self._end = 0
        self._file.seek(0)
        # Not ``for data in file``: an unbuffered file would be read byte by byte.
        for number, data in enumerate(io.BytesIO(self._file.read()), start=1):
            if not data.endswith(b"\n"):
                break
            try:
                index(json.loads(data), (self._end, len(data)))
            except (ValueError, KeyError, TypeError):
                self._file.close()
                raise ConfigurationError(
                    f"{self._origin}, line {number}: not a line of this sandbox's journal; "
                    "move the file away to start without history"
                ) from None
            self._end += len(data)
        # A torn last line was never answered for; the next line must not continue it.
        self._file.truncate(self._end)

    def append(self, line: Mapping[str, Any]) -> Place:
        """Write ``line``. Raises OSError when it cannot be written whole; then nothing is."""
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

    def read(self, place: Place) -> dict[str, Any]:
        """The line at ``place``."""
        start, length = place
        self._file.seek(start)
        line: dict[str, Any] = json.loads(self._file.read(length))
        return line

    def lines(self) -> Iterator[dict[str, Any]]:
        """All lines, the oldest first."""
        self._file.seek(0)
        yield from map(json.loads, io.BytesIO(self._file.read(self._end)))

    def clear(self) -> None:
        """Forget everything."""
        self._file.truncate(0)
        self._end = 0
