"""``content-pipeline status``, ``show`` and ``uncertain``: reading the ledger, changing nothing."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sqlalchemy import Connection

from content_pipeline.bootstrap import cms_route, model_route
from content_pipeline.cli.context import (
    choose_site,
    load_sites,
    opened_ledger,
    plain_console,
    site_option,
)
from content_pipeline.config import find_project
from content_pipeline.core.errors import UnknownPage
from content_pipeline.core.failures import EXPLANATIONS
from content_pipeline.core.states import NEEDS_PERSON, NEXT, PageJobState, public_status
from content_pipeline.ledger import overview, reports, routes, spend
from content_pipeline.ledger.reports import PageReport
from content_pipeline.site_files import Site

SHOWN = 20
"""Failed pages that ``status`` lists; a long list hides its own head."""


@click.command()
@site_option
def status(site_name: str | None) -> None:
    """Show each site at a glance: pages by state, money, what needs a person."""
    project = find_project()
    sites = load_sites(project) if site_name is None else [choose_site(project, site_name)]
    console = plain_console()
    with opened_ledger(project) as ledger, ledger.begin() as connection:
        for site in sites:
            _print_site(connection, site, console)


def _print_site(connection: Connection, site: Site, console: Console) -> None:
    settings = site.settings
    found = overview.site_status(connection, settings.site)
    money = spend.totals(connection, settings.site)
    table = _table(f"{settings.title} ({settings.site})", None, None)
    table.add_row("topics", f"{found.topics:,}")
    table.add_row("live pages", f"{found.live_pages:,}")
    for state in PageJobState:
        if found.states.get(state):
            table.add_row(state.value.replace("_", " "), f"{found.states[state]:,}")
    for name, count in sorted(found.failures.items()):
        table.add_row(f"of class {name}", f"{count:,}")
    if found.next_attempt_at:
        table.add_row("next try", _when(found.next_attempt_at))
    _add_routes(table, connection, site)
    table.add_row("announcements waiting", f"{found.pending_announcements:,}")
    if found.failed_announcements:
        table.add_row("announcements failed", f"{found.failed_announcements:,}")
    table.add_row("spent", f"${money.settled_usd:,.4f}")
    table.add_row("reserved by calls that are out", f"${money.reserved_usd:,.4f}")
    table.add_row(
        "possible double spend", f"${money.uncertain_usd:,.4f} in {money.uncertain_calls} calls"
    )
    console.print(table)
    pages = reports.page_reports(connection, settings.site)
    failed = [page for page in pages if page.state in NEEDS_PERSON]
    for page in failed[:SHOWN]:
        reason = escape(page.failure_message or "")
        console.print(
            f"[red]{escape(page.topic_key)}[/red] {page.failure_class}: {reason}", soft_wrap=True
        )
    for message in found.rejected_rows[:SHOWN]:
        console.print(f"[red]{escape(message)}[/red]", soft_wrap=True)
    if len(failed) > SHOWN:
        console.print(f"and {len(failed) - SHOWN} more that need a person")


def _add_routes(table: Table, connection: Connection, site: Site) -> None:
    """What keeps the site from calling a service, or makes it call less."""
    for route in (model_route(site), cms_route(site)):
        stand = routes.report(connection, route)
        if stand is not None and stand.is_closed:
            until = _when(stand.paused_until) if stand.paused_until else "a person resumes it"
            table.add_row(f"{route} closed until", f"{until}: {escape(stand.reason or '')}")
        elif stand is not None and stand.call_limit < stand.most_calls:
            table.add_row(f"{route} calls at once", f"{stand.call_limit} of {stand.most_calls}")


@click.command()
@click.argument("page")
@site_option
def show(page: str, site_name: str | None) -> None:
    """Show all that is known of PAGE (topic id, path, URL, page id or page job id)."""
    with opened_ledger() as ledger, ledger.begin() as connection:
        found = reports.find_topic(connection, page, site_name)
        if found is None:
            raise UnknownPage(f"the ledger has no page {page!r}; try `content-pipeline status`")
        site, topic_key = found
        (report,) = reports.page_reports(connection, site, [topic_key])
        console = plain_console()
        console.print(_facts(site, report))
        console.print(_attempts(report))
        console.print(_transitions(connection, report))
        if report.page_id:
            console.print(_effects(connection, report.page_id))
        earlier = reports.earlier_jobs(connection, site, topic_key)[1:]
        if earlier:
            console.print(_earlier(earlier))


def _facts(site: str, page: PageReport) -> Table:
    table = _table(f"{page.name} ({site}/{page.topic_key})", None, None)
    status = public_status(page.state, cancel_requested=page.cancel_requested)
    table.add_row("state", f"{page.state} ({status})")
    table.add_row("next", NEXT[page.state])
    if page.failure_class:
        table.add_row("failure", escape(f"{page.failure_class}: {page.failure_message}"))
        table.add_row("", EXPLANATIONS[page.failure_class])
    if page.state is PageJobState.FAILED_RETRYABLE or "uncertain" in page.state:
        table.add_row("not before", _when(page.next_attempt_at))
    table.add_row("path", page.path or "none: the row cannot become a page")
    table.add_row("url", page.remote_url or "not published")
    table.add_row("live revision", str(page.published_revision or "none"))
    table.add_row("draft revision", str(page.revision or "none"))
    table.add_row("last proved", _when(page.verified_at) if page.verified_at else "never")
    table.add_row("cost", f"${page.usd:.6f}" + _uncertain_part(page.uncertain_usd))
    table.add_row("owner", escape(page.owner) or "nobody named")
    table.add_row("page job", page.page_job_id)
    table.add_row("page", page.page_id or "none")
    table.add_row("generation version", page.generation_version)
    table.add_row("input", page.input_hash)
    return table


def _uncertain_part(usd: Decimal) -> str:
    return f", of which ${usd:.6f} may not have been billed" if usd else ""


def _attempts(page: PageReport) -> Table:
    table = _table(
        "Attempts", "kind", "no", "state", "class", "tokens", "dollars", "s", "at", "note"
    )
    for item in page.attempts:
        note = item.failure_message or ("recovered by asking" if item.recovered else "")
        table.add_row(
            item.kind,
            str(item.number),
            item.state,
            item.failure_class or "",
            f"{item.input_tokens}/{item.output_tokens}" if item.output_tokens else "",
            f"{item.usd:.6f}" if item.usd else "",
            "" if item.latency_s is None else f"{item.latency_s:.2f}",
            _when(item.started_at),
            escape(note),
        )
    return table


def _transitions(connection: Connection, page: PageReport) -> Table:
    table = _table("Transitions", "no", "from", "to", "why", "worker", "at")
    for row in reports.history(connection, page.page_job_id):
        table.add_row(
            str(row["sequence"]),
            row["from_state"] or "",
            row["to_state"],
            escape(row["why"]),
            row["worker"],
            _when(row["at"]),
        )
    return table


def _effects(connection: Connection, page_id: str) -> Table:
    table = _table("Effects", "key", "state", "tries", "outcome", "result", "note")
    for row in reports.page_effects(connection, page_id):
        table.add_row(
            row["effect_key"],
            row["state"],
            str(row["attempts"]),
            row["outcome"] or "",
            escape(row["result_reference"] or ""),
            escape(row["failure_message"] or ""),
        )
    return table


def _earlier(rows: Iterable[object]) -> Table:
    table = _table("Earlier page jobs", "page job", "state", "revision", "since")
    for row in rows:
        values = dict(row)  # type: ignore[call-overload]
        table.add_row(
            values["page_job_id"],
            values["state"],
            str(values["revision"] or ""),
            _when(values["created_at"]),
        )
    return table


@click.command()
@site_option
def uncertain(site_name: str | None) -> None:
    """List paid calls that may have been billed without a usable answer."""
    project = find_project()
    site = choose_site(project, site_name).settings.site
    table = _table(
        f"Uncertain calls of {site}", "topic", "attempt", "at", "model", "at most", "page", "why"
    )
    with opened_ledger(project) as ledger, ledger.begin() as connection:
        calls = overview.uncertain_calls(connection, site)
    for row in calls:
        table.add_row(
            row["topic_key"],
            f"{row['number']} ({row['attempt_id'][:8]})",
            _when(row["started_at"]),
            row["model"] or "",
            f"${row['reserved_usd']:.6f}",
            row["job_state"],
            escape(row["failure_message"] or ""),
        )
    console = plain_console()
    console.print(table)
    total = sum((row["reserved_usd"] for row in calls), Decimal(0))
    console.print(f"{len(calls)} calls, at most ${total:.6f} paid for nothing")


def _table(title: str, *columns: str | None) -> Table:
    """A table with a header, or without one when the columns have no names."""
    table = Table(title=escape(title), title_justify="left", show_header=any(columns))
    for name in columns:
        table.add_column(name or "", overflow="fold")
    return table


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"
