"""What a run leaves to tell: its counts, its dollars, and whether it ends green or red.

What belongs here: the summary as a log line, as tags of the run, and as the failure that ends it.
A run is red when a person must act; pages that merely wait leave it green.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg

from content_pipeline.components.page_metadata import table
from content_pipeline.components.standing import Standing, standing
from content_pipeline.core.states import NEXT, Stage
from content_pipeline.ledger.overview import Work
from content_pipeline.ledger.reports import PageReport
from content_pipeline.ledger.routes import RouteReport

NAMED_PAGES = 5
"""In the one line that ends a run; the table below it has all."""

_DONE: dict[Stage, str] = {
    Stage.DRAFT: "drafted",
    Stage.PAGE: "validated",
    Stage.ARTIFACT: "published",
}
"""What a run whose last asset this is did to its pages."""

_COLUMNS = (
    ("page", "string"),
    ("error_class", "string"),
    ("error", "string"),
    ("attempts", "int"),
    ("usd", "float"),
    ("next_action", "string"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The pages that a run was about, as they are found at its end."""

    pages: Sequence[PageReport]
    unknown: Sequence[str] = ()
    """Partitions that are no topic of the site's table."""
    besides: Mapping[str, int] = field(default_factory=dict)
    """Pages beside ``pages`` that are only counted, as ``RunSummary.counts`` does: a run on buckets
    may be about more than fit into memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The pages that a run was about, as they stand at its end."""

    stages: frozenset[Stage]
    pages: Sequence[PageReport]
    unknown: Sequence[str]
    """As in ``Seen``."""
    besides: Mapping[str, int] = field(default_factory=dict)
    """As in ``Seen``."""
    made: frozenset[str]
    """Topics that the run itself brought to its last stage."""
    work: Work
    complaint: str
    """What went wrong besides pages; empty when nothing did."""
    closed_routes: Sequence[RouteReport]
    """Services that keep pages waiting: an announced pause, or a circuit for a person to close."""
    interrupted: bool

    @property
    def failed(self) -> list[PageReport]:
        """Pages that need a person; of those of ``besides`` nothing but the number is known."""
        last = last_of(self.stages)
        return [page for page in self.pages if standing(page, last) is Standing.FAILED]

    def counts(self) -> dict[str, int]:
        """How many pages came to what end; each page is counted once."""
        found = count(self.pages, last_of(self.stages), self.made)
        found["failed"] += len(self.unknown)
        return {name: number + self.besides.get(name, 0) for name, number in found.items()}

    def line(self) -> str:
        """One line for the log."""
        counted = ", ".join(f"{count} {name}" for name, count in self.counts().items() if count)
        work = self.work
        calls = f"{work.generate_attempts} paid calls, {work.publish_attempts} publishes"
        tokens = f"{work.input_tokens:,} tokens in, {work.output_tokens:,} out"
        uncertain = f", ${work.uncertain_usd:.4f} of it uncertain" if work.uncertain_usd else ""
        closed = "".join(
            f"; {route.route} is closed: {route.reason}" for route in self.closed_routes
        )
        return f"{counted or 'no pages'}; {calls}; {tokens}; ${work.usd:.4f}{uncertain}{closed}"

    def tags(self) -> dict[str, str]:
        """Tags of the run, which the lists of runs show and filter by."""
        counted = {f"pages/{name}": str(count) for name, count in self.counts().items() if count}
        tokens = self.work.input_tokens + self.work.output_tokens
        return counted | {"cost_usd": f"{self.work.usd:.4f}", "tokens": str(tokens)}

    def failure(self) -> dg.Failure | None:
        """The failure that ends the run, None when nobody needs to act."""
        causes = [
            self._failed_pages(),
            self._unknown_pages(),
            *map(_circuit, self.closed_routes),
            self.complaint,
            self._interruption(),
        ]
        told = [cause for cause in causes if cause]
        if not told:
            return None
        metadata: dict[str, dg.MetadataValue] = {}
        if self.failed:
            metadata["pages"] = table(_COLUMNS, [_row(page) for page in self.failed])
        metadata["run"] = dg.MetadataValue.text(self.line())
        return dg.Failure(description=". ".join(told), metadata=metadata, allow_retries=False)

    def _failed_pages(self) -> str:
        if not self.failed:
            return ""
        named = [f"{page.topic_key} ({page.failure_class})" for page in self.failed[:NAMED_PAGES]]
        failed = len(self.failed) + self.besides.get("failed", 0)
        more = ", …" if failed > NAMED_PAGES else ""
        need = "needs" if failed == 1 else "need"
        pages = len(self.pages) + sum(self.besides.values())
        return f"{failed} of {pages} pages {need} a person: {', '.join(named)}{more}"

    def _unknown_pages(self) -> str:
        if not self.unknown:
            return ""
        named = ", ".join(self.unknown[:NAMED_PAGES])
        return f"{len(self.unknown)} partitions are no topics of the table: {named}"

    def _interruption(self) -> str:
        if not self.interrupted:
            return ""
        waiting = self.counts()["waiting"]
        return f"the run was stopped; {waiting} pages go on with the next one"


def last_of(stages: frozenset[Stage]) -> Stage:
    """The last of ``stages``, by which the pages of a run are counted."""
    return [stage for stage in Stage if stage in stages][-1]


def count(pages: Iterable[PageReport], last: Stage, made: Container[str]) -> dict[str, int]:
    """How many of ``pages`` came to what end at stage ``last``; ``made``: topics brought there."""
    found = dict.fromkeys((_DONE[last], "reused", "waiting", "failed", "stopped"), 0)
    for page in pages:
        stands = standing(page, last)
        if stands is Standing.DONE:
            found[_DONE[last] if page.topic_key in made else "reused"] += 1
        else:
            found[stands.value] += 1
    return found


def _circuit(route: RouteReport) -> str:
    """What a person must do about a closed service; empty when it opens by itself."""
    if route.circuit_opened_at is None:
        return ""
    return (
        f"{route.route} is closed: {route.reason}; put it in order, then `content-pipeline resume`"
    )


def _row(page: PageReport) -> dict[str, str | int | float]:
    return {
        "page": page.topic_key,
        "error_class": page.failure_class.value if page.failure_class else "",
        "error": page.failure_message or "",
        "attempts": len(page.attempts),
        "usd": float(page.usd),
        "next_action": NEXT[page.state],
    }
