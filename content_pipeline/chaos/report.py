"""The table and the document that end a chaos run."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from rich.console import Console
from rich.table import Table

from content_pipeline.chaos.truth import Numbers
from content_pipeline.chaos.workers import Campaign


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosReport:
    """One run and its verdict."""

    pages: int
    seed: int
    campaign: Campaign
    numbers: Numbers
    bound_s: float
    """Seconds that no client could do without under this plan."""
    kept_at: str | None = None
    """The project's folder, when it was not taken away."""

    @property
    def wall_by_bound(self) -> float:
        """How many times the bound the run took."""
        return self.campaign.wall_s / self.bound_s if self.bound_s else 0.0

    def document(self) -> dict[str, Any]:
        """Everything as JSON knows it; dollars as text, so that no digit is lost."""
        numbers = self.numbers
        counted = {each.name: getattr(numbers, each.name) for each in fields(numbers)}
        return {
            "pages": self.pages,
            "seed": self.seed,
            "workers_started": self.campaign.started,
            "workers_killed": self.campaign.killed,
            "kills": [kill.isoformat() for kill in self.campaign.kills],
            "wall_s": round(self.campaign.wall_s, 3),
            "bound_s": round(self.bound_s, 3),
            "wall_by_bound": round(self.wall_by_bound, 2),
            "billed_per_live_page": round(numbers.billed_per_live_page, 4),
            "forced_per_live_page": round(numbers.forced_per_live_page, 4),
            **{
                name: f"{value:f}" if name.endswith(("_usd", "_off")) else value
                for name, value in counted.items()
            },
            "broken_promises": numbers.broken_promises(),
        }


def print_report(report: ChaosReport, console: Console) -> None:
    """Print the table and, in words, what was broken."""
    table = Table(
        title=f"chaos: {report.pages:,} pages, seed {report.seed}",
        title_justify="left",
        show_header=False,
    )
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    for name, value, note in _rows(report):
        table.add_row(name, value, note)
    console.print(table)
    broken = report.numbers.broken_promises()
    for sentence in broken:
        console.print(f"[red]broken:[/red] {sentence}")
    if not broken:
        console.print("[green]every promise was kept[/green]")
    if report.kept_at is not None:
        console.print(f"the project is kept at {report.kept_at}", markup=False)


def _rows(report: ChaosReport) -> Iterator[tuple[str, str, str]]:
    numbers, campaign = report.numbers, report.campaign
    faulty = numbers.faults / numbers.attempts if numbers.attempts else 0.0
    yield "attempts", f"{numbers.attempts:,}", f"{numbers.faults:,} with a fault ({faulty:.0%})"
    yield (
        "workers",
        f"{campaign.started:,}",
        f"{campaign.killed:,} killed at {len(campaign.kills):,} moments",
    )
    yield "pages live", f"{numbers.pages_live:,}", f"{numbers.missing:,} missing"
    yield (
        "billed",
        f"{numbers.billed:,}",
        f"{numbers.billed_per_live_page:.3f} per live page; the plan forces {numbers.forced:,} "
        f"({numbers.forced_per_live_page:.3f})",
    )
    yield "sent twice", f"{numbers.sent_twice:,}", "attempts that reached the provider again"
    yield "poison", f"{numbers.most_calls_per_poison_page:,}", "most calls about one refused page"
    yield "duplicates", f"{numbers.written_twice:,}", f"writes; {numbers.unwanted:,} unwanted pages"
    yield "stale", f"{numbers.stale_overwrites:,}", "older revisions written over newer ones"
    yield "sitemap", f"{numbers.sitemap_wrong:,}", "entries missing, wrong or repeated"
    yield (
        "early",
        f"{numbers.early_for_page + numbers.early_for_account:,}",
        f"calls before an announced wait was over: {numbers.early_for_page:,} of the page's, "
        f"{numbers.early_for_account:,} of the account's",
    )
    yield (
        "dollars",
        f"${numbers.billed_usd:,.4f}",
        f"billed; the ledger says ${numbers.settled_usd:,.4f} settled and at most "
        f"${numbers.uncertain_usd:,.4f} uncertain; off by ${numbers.dollars_off:f}",
    )
    yield (
        "seconds",
        f"{campaign.wall_s:,.1f}",
        f"{report.wall_by_bound:.1f} times the bound of {report.bound_s:,.1f}",
    )
