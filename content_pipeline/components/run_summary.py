"""What a run leaves to tell: its counts, its dollars, and whether it ends green or red.

What belongs here: the summary as a log line, as tags of the run, and as the failure that ends it.
A run is red when a person must act; pages that merely wait leave it green.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
class RunSummary:
    """The pages that a run was about, as they stand at its end."""

    stages: frozenset[Stage]
    pages: Sequence[PageReport]
    unknown: Sequence[str]
    """Partitions that are no topic of the site's table."""
    made: frozenset[str]
    """Topics that the run itself brought to its last stage."""
    work: Work
    complaint: str
    """What went wrong besides pages; empty when nothing did."""
    closed_routes: Sequence[RouteReport]
    """Services that keep pages waiting: an announced pause, or a circuit for a person to close."""
    interrupted: bool

    @property
    def _last(self) -> Stage:
        return [stage for stage in Stage if stage in self.stages][-1]

    def _that_are(self, wanted: Standing) -> list[PageReport]:
        return [page for page in self.pages if standing(page, self._last) is wanted]

    @property
    def failed(self) -> list[PageReport]:
        """Pages that need a person."""
        return self._that_are(Standing.FAILED)

    def counts(self) -> dict[str, int]:
        """How many pages came to what end; each page is counted once."""
        done = self._that_are(Standing.DONE)
        made = sum(page.topic_key in self.made for page in done)
        return {
            _DONE[self._last]: made,
            "reused": len(done) - made,
            "waiting": len(self._that_are(Standing.WAITING)),
            "failed": len(self.failed) + len(self.unknown),
            "stopped": len(self._that_are(Standing.STOPPED)),
        }

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
        more = ", …" if len(self.failed) > NAMED_PAGES else ""
        need = "needs" if len(self.failed) == 1 else "need"
        count = f"{len(self.failed)} of {len(self.pages)} pages {need} a person"
        return f"{count}: {', '.join(named)}{more}"

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
