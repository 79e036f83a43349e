"""``content-pipeline plan``: what the next run would do and cost. Nothing is written or called."""

import json
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from content_pipeline.bootstrap import open_for_planning, topic_rows
from content_pipeline.cli.context import (
    choose_site,
    load_sites,
    opened_ledger,
    plain_console,
    site_option,
)
from content_pipeline.cli.tables import plain_table, when
from content_pipeline.config import find_project
from content_pipeline.core.durations import in_words
from content_pipeline.core.forecast import ASSUMED_OUTPUT_SHARE, Basis
from content_pipeline.core.money import round_usd
from content_pipeline.core.planning import Plan, Skipped, Verdict, counted
from content_pipeline.operations.plan import make_plan

SHOWN_PAGES = 5
"""Named per reason; all of them are in the JSON."""

BASES: dict[Basis, str] = {
    Basis.HISTORY: "what such calls came to on this site",
    Basis.OTHER_MODEL: "what such calls came to with another model",
    Basis.ASSUMPTION: (
        f"an assumption: {ASSUMED_OUTPUT_SHARE:.0%} of max_output_tokens a call, for the site "
        "has made no such call yet"
    ),
}


@click.command()
@site_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON; dollars are strings.")
def plan(site_name: str | None, *, as_json: bool) -> None:
    """Show what the next run would do: pages and why, skips and why, tokens, dollars, duration.

    The topic table is read and what an intake of it would want is found out in a transaction that
    is rolled back. Neither the provider nor the CMS is asked.
    """
    project = find_project()
    sites = load_sites(project) if site_name is None else [choose_site(project, site_name)]
    with opened_ledger(project) as ledger:
        plans = [make_plan(open_for_planning(site, ledger), topic_rows(site)) for site in sites]
    if as_json:
        click.echo(json.dumps([document_of(each) for each in plans], indent=2, ensure_ascii=False))
        return
    console = plain_console()
    for each in plans:
        console.print(table_of(each))


def document_of(plan: Plan) -> dict[str, Any]:
    """The plan for programs: every page by name."""
    return {
        "site": plan.site,
        "at": plan.at.isoformat(),
        "pages": [
            {
                "topic": page.topic_key,
                "reason": page.reason,
                "calls": [call.step for call in page.calls],
                "expected_usd": f"{round_usd(page.expected_usd):f}",
                "worst_usd": f"{page.worst_usd:f}",
            }
            for page in plan.today
        ],
        "skipped": [{"topic": page.topic_key, "reason": page.reason} for page in plan.skipped],
        "calls": len(plan.calls),
        "input_tokens": plan.expected_input_tokens,
        "output_tokens": plan.expected_output_tokens,
        "expected_usd": f"{round_usd(plan.expected_usd):f}",
        "worst_usd": f"{plan.worst_usd:f}",
        "rests_on": plan.basis,
        "duration_s": round(plan.duration_s, 1),
        "room_usd": f"{plan.purse.room_usd:f}",
        "verdict": plan.verdict,
        "due": len(plan.today) + len(plan.later),
    }


def table_of(plan: Plan) -> Table:
    """The plan for people."""
    table = plain_table(f"Plan of {plan.site}, {when(plan.at)} UTC", None, None, None)
    table.add_row("pages", f"{len(plan.today):,}", _of_due(plan))
    for reason, count in counted([page.reason for page in plan.today]).items():
        named = [page.topic_key for page in plan.today if page.reason == reason]
        table.add_row(f"  {reason}", f"{count:,}", _named(named))
    table.add_section()
    table.add_row("skipped", f"{len(plan.skipped):,}", "")
    for reason, count in counted([page.reason for page in plan.skipped]).items():
        named = [page.topic_key for page in plan.skipped if page.reason == reason]
        shown = "" if reason == Skipped.UNCHANGED else _named(named)
        table.add_row(f"  {reason}", f"{count:,}", shown)
    table.add_section()
    tokens_in, tokens_out = plan.expected_input_tokens, plan.expected_output_tokens
    table.add_row("paid calls", f"{len(plan.calls):,}", f"{plan.calls_at_once:,} at once")
    table.add_row("tokens", f"{tokens_in + tokens_out:,}", f"{tokens_in:,} in, {tokens_out:,} out")
    expected = BASES[plan.basis] if plan.calls else "nothing is to be paid"
    table.add_row("expected", f"${plan.expected_usd:,.4f}", expected)
    table.add_row("at worst", f"${plan.worst_usd:,.4f}", "each call as dear as it can be")
    table.add_row(
        "takes", in_words(plan.duration_s), "calls at their usual length, publishing aside"
    )
    table.add_row("budget", str(plan.verdict), _verdict(plan))
    return table


def _of_due(plan: Plan) -> str:
    due = len(plan.today) + len(plan.later)
    return f"of {due:,} that are due" if plan.later else "all that are due"


def _named(keys: list[str]) -> str:
    more = f" and {len(keys) - SHOWN_PAGES:,} more" if len(keys) > SHOWN_PAGES else ""
    return escape(", ".join(keys[:SHOWN_PAGES]) + more)


def _verdict(plan: Plan) -> str:
    left = f"${plan.purse.room_usd:,.2f} may still be spent today"
    due = len(plan.today) + len(plan.later)
    match plan.verdict:
        case Verdict.FITS:
            return left
        case Verdict.PARTLY:
            return f"{left}: {len(plan.today):,} of {due:,} pages"
        case Verdict.NEVER:
            return "one call could cost more than a whole day or page may; raise budgets"
