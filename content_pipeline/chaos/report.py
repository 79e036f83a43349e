"""The table and the document that end a chaos run."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from rich.console import Console
from rich.table import Table

from content_pipeline.chaos.project import ArenaPlan, Target
from content_pipeline.chaos.site_truth import SiteNumbers
from content_pipeline.chaos.truth import Numbers
from content_pipeline.chaos.workers import Campaign


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosReport:
    """One run and its verdict."""

    where: ArenaPlan
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
        counted = _fields_of(numbers) | _fields_of(numbers.site)
        del counted["site"]
        return {
            "pages": self.where.pages,
            "seed": self.where.seed,
            "cms": self.where.target.value,
            "late": self.where.late,
            "workers_started": self.campaign.started,
            "workers_killed": self.campaign.killed,
            "kills": [kill.isoformat() for kill in self.campaign.kills],
            "wall_s": round(self.campaign.wall_s, 3),
            "bound_s": round(self.bound_s, 3),
            "wall_by_bound": round(self.wall_by_bound, 2),
            "billed_per_live_page": round(numbers.billed_per_live_page, 4),
            "forced_per_live_page": round(numbers.forced_per_live_page, 4),
            "cms_requests_per_page": round(numbers.site.requests_per_page, 2),
            **{
                name: f"{value:f}" if name.endswith(("_usd", "_off")) else value
                for name, value in counted.items()
            },
            "broken_promises": numbers.broken_promises(),
        }


def _fields_of(numbers: Numbers | SiteNumbers) -> dict[str, Any]:
    return {each.name: getattr(numbers, each.name) for each in fields(numbers)}


def print_report(report: ChaosReport, console: Console) -> None:
    """Print the table and, in words, what was broken."""
    table = Table(
        title=f"chaos: {report.where.pages:,} pages, seed {report.where.seed}, "
        f"{report.where.target}{', late writes' if report.where.late else ''}",
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
    yield from _site_rows(report)
    yield (
        "billed",
        f"{numbers.billed:,}",
        f"{numbers.billed_per_live_page:.3f} per live page; the plan forces {numbers.forced:,} "
        f"({numbers.forced_per_live_page:.3f})",
    )
    yield "sent twice", f"{numbers.sent_twice:,}", "attempts that reached the provider again"
    yield "poison", f"{numbers.most_calls_per_poison_page:,}", "most calls about one refused page"
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


def _site_rows(report: ChaosReport) -> Iterator[tuple[str, str, str]]:
    site = report.numbers.site
    yield (
        "pages live",
        f"{site.pages_live:,}",
        f"{site.missing:,} missing, {site.unwanted:,} unwanted, {site.outdated:,} out of date",
    )
    if report.where.target is Target.FOLDER:
        yield "duplicates", f"{site.written_twice:,}", "revisions written more than once"
        yield "sitemap", f"{site.sitemap_wrong:,}", "entries missing, wrong or repeated"
    else:
        yield from _cms_rows(site)
    yield "stale", f"{site.stale_overwrites:,}", "older revisions written over newer ones"


def _cms_rows(site: SiteNumbers) -> Iterator[tuple[str, str, str]]:
    faulty = site.cms_faults / site.cms_writes if site.cms_writes else 0.0
    yield (
        "CMS writes",
        f"{site.cms_writes:,}",
        f"{site.cms_faults:,} with a fault ({faulty:.0%}); "
        f"{site.requests_per_page:.1f} requests of all kinds per live page",
    )
    yield (
        "duplicates",
        f"{site.public_doubles + site.doubles_left:,}",
        f"{site.public_doubles:,} pages doubled before visitors at any instant, "
        f"{site.doubles_left:,} of any kind left in the end",
    )
    yield "edits", f"{site.edits_overwritten:,}", f"overwritten of {site.edited:,} by hand"
    yield (
        "CMS early",
        f"{site.cms_early_for_page + site.cms_early_for_site:,}",
        f"calls before an announced wait was over: {site.cms_early_for_page:,} of the page's, "
        f"{site.cms_early_for_site:,} of the site's",
    )
    yield "deploy hook", f"{site.deploy_calls:,}", "calls, one for many pages"
