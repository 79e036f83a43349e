"""A site's topic table as a real file, which tells how many of its rows were read.

What belongs here: the file, edits of it, and what a test lets happen in the middle of a reading.
"""

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from content_pipeline.core.buckets import TopicsOf
from content_pipeline.ledger import taken_tables
from content_pipeline.ledger.intake import Intake
from content_pipeline.operations.submit import submit
from content_pipeline.site_table import SiteTable
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.small_site import Row


@dataclass(slots=True, kw_only=True)
class WatchedTable:
    """The table of a bench's site in ``folder``, as the bench's rows are when it is written."""

    bench: Bench
    folder: Path
    read: int = 0
    """Rows that were read since a test last looked."""
    in_the_middle: Callable[[], None] | None = None
    """Called once, after the first row of a reading."""

    @property
    def file(self) -> Path:
        return self.folder / "towns.csv"

    @property
    def _source(self) -> SiteTable:
        """The table as the bench's site, which a test may have changed, understands it."""
        return SiteTable(site=replace(self.bench.site, file=self.folder / "towns.yaml"))

    def __iter__(self) -> Iterator[dict[str, str]]:
        for number, row in enumerate(self._source):
            if number == 1 and self.in_the_middle is not None:
                happens, self.in_the_middle = self.in_the_middle, None
                happens()
            self.read += 1
            yield row

    def identity(self) -> str | None:
        return self._source.identity()

    def write(self, rows: Sequence[Row] | None = None) -> None:
        """Write ``rows``, those of the bench by default."""
        rows = self.bench.rows if rows is None else rows
        with self.file.open("w", newline="") as output:
            writer = csv.DictWriter(output, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    def edit(self, topic: str, **values: str) -> None:
        """Edit one row so that the file's time, and mostly its size, tell nothing."""
        before = self.file.stat()
        for row in self.bench.rows:
            row |= values if row["id"] == topic else {}
        self.write()
        os.utime(self.file, ns=(before.st_atime_ns, before.st_mtime_ns))

    def take_in(self) -> Intake:
        """Ask for all of it."""
        return submit(self.bench.worker(), self, requested_by="test")

    def want(self, *topics: str) -> Intake:
        """Ask for some of its topics, as a run of pages does."""
        return submit(self.bench.worker(), self, requested_by="test", only=topics)

    def want_bucket(self, only: TopicsOf) -> Intake:
        """Ask for the topics of some buckets, as their runs do."""
        return submit(self.bench.worker(), self, requested_by="test", only=only, alone=True)

    def rows_read(self) -> int:
        """How many rows were read since this was last asked."""
        read, self.read = self.read, 0
        return read

    def is_remembered(self) -> bool:
        """Whether the ledger knows of one table that all topics are of."""
        with self.bench.ledger.begin() as connection:
            return taken_tables.last(connection, self.bench.name) is not None
