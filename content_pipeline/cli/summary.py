"""The table that ends a run: what became of every page, what it cost, where to look."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from content_pipeline.core.durations import in_words
from content_pipeline.core.failures import EXPLANATIONS, Failure
from content_pipeline.core.ports import Announcement
from content_pipeline.core.site import SiteSettings, WhenGone
from content_pipeline.core.states import NEEDS_PERSON, PageJobState
from content_pipeline.ledger.announcements import HookStanding
from content_pipeline.ledger.overview import Work
from content_pipeline.ledger.reports import PageReport
from content_pipeline.ledger.routes import RouteReport

SHOWN_FAILURES = 10
"""Enough to see the kinds; the rest is a command away."""

_UNCERTAIN = (PageJobState.GENERATION_UNCERTAIN, PageJobState.PUBLISH_UNCERTAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What one run leaves to tell."""

    site: SiteSettings
    pages: tuple[PageReport, ...]
    reused: frozenset[str]
    """Topics whose page was already published as wanted."""
    rejected_rows: tuple[str, ...]
    work: Work
    announced: Mapping[str, Announcement | Failure]
    """By kind of hook what this run's telling came to."""
    untold: int
    """Announcements that failed and still wait, also of earlier runs."""
    gathering: tuple[HookStanding, ...]
    """Hooks that wait for more to tell, longer than a run does."""
    closed_routes: tuple[RouteReport, ...]
    """Services that keep pages waiting: an announced pause, or a circuit for a person to close."""
    look_at: str
    interrupted: bool
    retired_topics: int = 0
    """No longer in the table, since whenever."""
    newly_retired: tuple[str, ...] = ()
    """Topics that this run found to have left the table."""
    rolled_back: str | None = None
    """Why nothing new was wanted: the way of making pages was rolled back, and who said so."""

    @property
    def changed_on_site(self) -> list[PageReport]:
        """Pages that somebody changed on the site and that wait for a decision."""
        return [page for page in self.pages if page.awaits_decision]

    @property
    def published(self) -> list[PageReport]:
        """Pages that this run published and proved."""
        return [
            page
            for page in self.pages
            if page.state is PageJobState.PUBLISHED
            and page.topic_key not in self.reused
            and not page.topic_is_retired
        ]

    @property
    def failed(self) -> list[PageReport]:
        """Pages that need a person."""
        return [page for page in self.pages if page.needs_person]

    @property
    def uncertain(self) -> list[PageReport]:
        """Pages with a call whose outcome nobody knows yet."""
        return [page for page in self.pages if page.state in _UNCERTAIN]

    @property
    def cancelled(self) -> list[PageReport]:
        """Pages that a person stopped."""
        return [
            page
            for page in self.pages
            if page.state is PageJobState.CANCELLED and not page.topic_is_retired
        ]

    @property
    def waiting(self) -> list[PageReport]:
        """Pages that a later run goes on with."""
        settled = {PageJobState.PUBLISHED, PageJobState.CANCELLED, *NEEDS_PERSON, *_UNCERTAIN}
        return [
            page
            for page in self.pages
            if page.state not in settled
            and (not page.topic_is_retired or page.state is PageJobState.WITHDRAWING)
        ]

    @property
    def all_settled(self) -> bool:
        """Whether every row of the table is a published page and everybody was told."""
        told = not any(isinstance(outcome, Failure) for outcome in self.announced.values())
        open_pages = self.failed or self.uncertain or self.waiting or self.rejected_rows
        return told and not self.untold and not open_pages and self.rolled_back is None


def print_summary(summary: RunSummary, console: Console) -> None:
    """Print the table of a run, and what a person should do next."""
    table = Table(title=escape(summary.site.title), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for name, count, note in _page_rows(summary):
        table.add_row(name, f"{count:,}", escape(note))
    table.add_section()
    work = summary.work
    table.add_row(
        "attempts", f"{work.generate_attempts + work.publish_attempts:,}", _attempts(work)
    )
    table.add_row(
        "tokens",
        f"{work.input_tokens + work.output_tokens:,}",
        f"{work.input_tokens:,} in, {work.output_tokens:,} out",
    )
    table.add_row("dollars", f"${work.usd:,.4f}", _dollars(summary))
    table.add_section()
    for kind, outcome in summary.announced.items():
        told = f"failed: {outcome.message}" if isinstance(outcome, Failure) else outcome.location
        table.add_row(kind.replace("_", " "), "", escape(told))
    for hook in summary.gathering:
        note = f"waits {in_words(hook.wait_s or 0)} for more; a later run or the sensor tells it"
        table.add_row(hook.kind.replace("_", " "), "", note)
    if summary.untold:
        table.add_row(
            "untold", f"{summary.untold:,}", "announcements that a later run goes on with"
        )
    table.add_row("look at", "", escape(summary.look_at))
    console.print(table)
    _print_news(summary, console)
    _print_failures(summary, console)


def _page_rows(summary: RunSummary) -> list[tuple[str, int, str]]:
    rejected = len(summary.rejected_rows)
    classes = Counter(str(page.failure_class) for page in summary.failed)
    if rejected:
        classes["invalid_input"] += rejected
    rows = [
        ("published", len(summary.published), "generated, published and read back by this run"),
        ("reused", len(summary.reused), "already published as wanted"),
        ("waiting", len(summary.waiting), _waiting_note(summary)),
        ("uncertain", len(summary.uncertain), "an outcome is not known yet; asked again next run")
        if summary.uncertain
        else ("uncertain", 0, ""),
        (
            "failed",
            len(summary.failed) + rejected,
            ", ".join(f"{name} {count}" for name, count in sorted(classes.items())),
        ),
    ]
    if summary.cancelled:
        rows.append(("cancelled", len(summary.cancelled), "stopped by a person"))
    if summary.retired_topics:
        rows.append(("retired", summary.retired_topics, _retired_note(summary)))
    if summary.changed_on_site:
        count = len(summary.changed_on_site)
        rows.append(("changed on the site", count, "left as they are until somebody decides"))
    return rows


def _retired_note(summary: RunSummary) -> str:
    live = sum(
        page.topic_is_retired and page.published_revision is not None for page in summary.pages
    )
    return f"topics that are no longer in the table; {live:,} of their pages are on the site"


def _waiting_note(summary: RunSummary) -> str:
    if not summary.waiting:
        return ""
    if summary.interrupted:
        return "the run was stopped; the same command goes on"
    first = min(page.next_attempt_at for page in summary.waiting)
    classes = Counter(str(page.failure_class) for page in summary.waiting if page.failure_class)
    turns = sum(
        page.failure_class is None and bool(page.failure_message) for page in summary.waiting
    )
    rate = summary.site.schedule.rate
    of_rate = f"for their turn ({rate})" if rate else "for their turn"
    classes |= Counter({of_rate: turns}) if turns else Counter()
    reasons = ", ".join(f"{name} {count}" for name, count in sorted(classes.items()))
    return f"next try {first:%Y-%m-%d %H:%M:%S} UTC {reasons}".rstrip()


def _attempts(work: Work) -> str:
    return f"{work.generate_attempts:,} generate, {work.publish_attempts:,} publish"


def _dollars(summary: RunSummary) -> str:
    everything = sum((page.usd for page in summary.pages), Decimal(0))
    notes = [f"${everything:,.4f} for these pages in all"]
    if summary.site.generation.provider == "sandbox":
        notes.append(f"sandbox: list price of {summary.site.generation.model}, nothing was charged")
    if summary.work.uncertain_usd:
        notes.append(f"${summary.work.uncertain_usd:,.4f} of it may not have been billed")
    return "; ".join(notes)


def _print_news(summary: RunSummary, console: Console) -> None:
    """What a person should know although nothing failed."""
    if summary.rolled_back is not None:
        told = (
            f"nothing new is made: this way of making pages was rolled back: {summary.rolled_back};"
            " change the prompt or the model, or lift it with `content-pipeline rollback --lift`"
        )
        console.print(f"[yellow]{escape(told)}[/yellow]", soft_wrap=True)
    if summary.newly_retired:
        named = ", ".join(summary.newly_retired[:SHOWN_FAILURES])
        more = ", …" if len(summary.newly_retired) > SHOWN_FAILURES else ""
        goes = summary.site.topics.when_gone is not WhenGone.KEEP
        fate = "their pages are taken off the site" if goes else "their pages stay on the site"
        told = f"left the table: {named}{more}; {fate} (topics.when_gone)"
        console.print(f"[yellow]{escape(told)}[/yellow]", soft_wrap=True)
    for page in summary.changed_on_site[:SHOWN_FAILURES]:
        reason = escape(page.site_change_reason or "")
        console.print(f"[yellow]{escape(page.topic_key)}[/yellow]: {reason}", soft_wrap=True)
    if summary.changed_on_site:
        console.print(
            f"  decide about them: content-pipeline conflicts --site {summary.site.site}",
            style="dim",
        )


def _print_failures(summary: RunSummary, console: Console) -> None:
    failed = summary.failed
    for route in summary.closed_routes:
        console.print(f"[red]{escape(route.route)} is closed: {escape(route.reason or '')}[/red]")
        if route.circuit_opened_at is not None:
            hint = f"put it in order, then: content-pipeline resume --site {summary.site.site}"
            console.print(f"  {hint}", style="dim")
    for page in failed[:SHOWN_FAILURES]:
        assert page.failure_class is not None
        reason = escape(page.failure_message or "")
        console.print(f"[red]{escape(page.topic_key)}[/red]: {reason}", soft_wrap=True)
        console.print(f"  {EXPLANATIONS[page.failure_class]}", style="dim")
    for message in summary.rejected_rows[:SHOWN_FAILURES]:
        console.print(f"[red]{escape(message)}[/red]", soft_wrap=True)
    more = max(0, len(failed) - SHOWN_FAILURES)
    more += max(0, len(summary.rejected_rows) - SHOWN_FAILURES)
    if more:
        console.print(f"and {more} more: content-pipeline status --site {summary.site.site}")
