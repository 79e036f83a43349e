"""``content-pipeline status``, ``show`` and ``uncertain``: reading the ledger, changing nothing."""

from decimal import Decimal

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sqlalchemy import Connection

from content_pipeline.bootstrap import model_route
from content_pipeline.cli.context import (
    choose_site,
    load_sites,
    opened_ledger,
    plain_console,
    site_option,
)
from content_pipeline.cli.story import print_story
from content_pipeline.cli.tables import plain_table, when
from content_pipeline.config import find_project
from content_pipeline.core.errors import UnknownPage
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import (
    announcements,
    call_limits,
    draft_line,
    overview,
    publish_rate,
    reports,
    rollbacks,
    routes,
    spend,
    write_offs,
)
from content_pipeline.ledger.announcements import HookStanding
from content_pipeline.ledger.overview import SiteStatus
from content_pipeline.site_cms import cms_route
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
    table = plain_table(f"{settings.title} ({settings.site})", None, None)
    table.add_row("topics", f"{found.topics:,}")
    table.add_row("live pages", f"{found.live_pages:,}")
    _add_what_people_did(table, connection, found, settings.site)
    for state in PageJobState:
        if found.states.get(state):
            table.add_row(state.value.replace("_", " "), f"{found.states[state]:,}")
    for name, count in sorted(found.failures.items()):
        table.add_row(f"of class {name}", f"{count:,}")
    rate = settings.schedule.rate
    waiting = publish_rate.outgoing(connection, settings.site).waiting
    unpaid = draft_line.waiting(connection, settings.site)
    if rate is not None or waiting or unpaid:
        told = f"{waiting:,} drafts, {unpaid:,} to be paid for"
        table.add_row("wait for their turn", f"{told} ({rate or 'no publish rate any more'})")
    if found.next_attempt_at:
        table.add_row("next try", when(found.next_attempt_at))
    _add_routes(table, connection, site)
    table.add_row("announcements waiting", f"{found.pending_announcements:,}")
    if found.failed_announcements:
        table.add_row("announcements failed", f"{found.failed_announcements:,}")
    for hook in announcements.standings(connection, settings.site):
        table.add_row(f"hook {hook.kind.replace('_', ' ')}", escape(_hook_told(hook)))
    table.add_row("spent", f"${money.settled_usd:,.4f}")
    table.add_row("reserved by calls that are out", f"${money.reserved_usd:,.4f}")
    table.add_row(
        "possible double spend", f"${money.uncertain_usd:,.4f} in {money.uncertain_calls} calls"
    )
    over = write_offs.of_site(connection, settings.site)
    if over.calls:
        told = f"${over.usd:,.4f} in {over.calls:,} calls, part of what is spent"
        table.add_row("written off", told)
    console.print(table)
    _print_failures(connection, found, settings.site, console)


def _print_failures(connection: Connection, found: SiteStatus, site: str, console: Console) -> None:
    pages = reports.page_reports(connection, site)
    failed = [page for page in pages if page.needs_person]
    for page in failed[:SHOWN]:
        reason = escape(page.failure_message or "")
        console.print(
            f"[red]{escape(page.topic_key)}[/red] {page.failure_class}: {reason}", soft_wrap=True
        )
    for message in found.rejected_rows[:SHOWN]:
        console.print(f"[red]{escape(message)}[/red]", soft_wrap=True)
    if found.site_changes:
        told = f"pages changed on the site: content-pipeline conflicts --site {site}"
        console.print(told, style="yellow")
    if len(failed) > SHOWN:
        console.print(f"and {len(failed) - SHOWN} more that need a person")


def _add_what_people_did(
    table: Table, connection: Connection, found: SiteStatus, site: str
) -> None:
    """Topics taken out of the table, pages changed on the site, ways of making taken back."""
    if found.retired_topics:
        table.add_row("topics that left the table", f"{found.retired_topics:,}")
    for change, count in found.site_changes.items():
        table.add_row(f"{change.value} on the site", f"{count:,}")
    for taken_back in rollbacks.of_site(connection, site):
        why = f"{taken_back.generation_version}: {taken_back.cause} ({taken_back.by})"
        table.add_row("rolled back", escape(why))


def _hook_told(hook: HookStanding) -> str:
    """How a hook stands, in words."""
    last = f"last call {when(hook.called_at)}" if hook.called_at else "never called"
    if hook.gathers:
        assert hook.next_attempt_at is not None
        return f"gathers until {when(hook.next_attempt_at)}; {last}"
    if hook.failure_class is not None:
        again = f", again {when(hook.next_attempt_at)}" if hook.next_attempt_at else ", given up"
        return f"failed{again}: {hook.failure_class}: {hook.failure_message}"
    if hook.next_attempt_at is not None or hook.outcome is None:
        return f"is to be told; {last}"
    pages = "" if hook.pages_told is None else f" of {hook.pages_told:,} pages"
    return f"{hook.outcome.replace('_', ' ')}{pages}; {last}; {hook.result_reference}"


def _add_routes(table: Table, connection: Connection, site: Site) -> None:
    """What keeps the site from calling a service, or makes it call less."""
    for route in (model_route(site), cms_route(site)):
        stand = routes.report(connection, route)
        if stand is not None and stand.is_closed:
            until = when(stand.paused_until) if stand.paused_until else "a person resumes it"
            table.add_row(f"{route} closed until", f"{until}: {escape(stand.reason or '')}")
        calls = call_limits.read(connection, route)
        most = site.settings.generation.in_flight_everywhere
        if calls is not None and calls.rejected_share and calls.limit < most:
            table.add_row(f"{route} calls at once", f"{calls.limit} of {most}")


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
        print_story(connection, site, report, plain_console())


@click.command()
@site_option
def uncertain(site_name: str | None) -> None:
    """List paid calls that may have been billed without a usable answer."""
    project = find_project()
    site = choose_site(project, site_name).settings.site
    table = plain_table(
        f"Uncertain calls of {site}", "topic", "attempt", "at", "model", "at most", "page", "why"
    )
    with opened_ledger(project) as ledger, ledger.begin() as connection:
        calls = overview.uncertain_calls(connection, site)
        over = write_offs.of_site(connection, site)
    for row in calls:
        table.add_row(
            row["topic_key"],
            f"{row['number']} ({row['attempt_id'][:8]})",
            when(row["started_at"]),
            row["model"] or "",
            f"${row['reserved_usd']:.6f}",
            row["job_state"],
            escape(row["failure_message"] or ""),
        )
    console = plain_console()
    console.print(table)
    total = sum((row["reserved_usd"] for row in calls), Decimal(0))
    console.print(f"{len(calls)} calls, at most ${total:.6f} paid for nothing")
    if over.calls:
        console.print(
            f"{over.calls:,} older calls were written off: ${over.usd:.6f} are counted as spent"
        )
