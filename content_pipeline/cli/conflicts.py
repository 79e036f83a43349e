"""``content-pipeline conflicts``: pages that were changed on the site, and which text stands."""

from collections.abc import Sequence

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from content_pipeline.cli.context import (
    choose_site,
    load_sites,
    opened_ledger,
    opened_site,
    person,
    plain_console,
    site_option,
    stated,
)
from content_pipeline.cli.story import site_history
from content_pipeline.cli.tables import counted, plain_table, when
from content_pipeline.config import find_project
from content_pipeline.ledger import reports, site_changes
from content_pipeline.ledger.site_changes import ChangedPage
from content_pipeline.operations import conflicts as operation

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}

cause_option = click.option("--cause", required=True, help="Why; it is kept with the page.")


@click.group(invoke_without_command=True)
@site_option
@click.pass_context
def conflicts(context: click.Context, site_name: str | None) -> None:
    """List the pages that were changed on the site and wait for a decision.

    What is listed was seen by a survey or by a publish; `content-pipeline survey` looks now.
    """
    if context.invoked_subcommand is not None:
        return
    project = find_project()
    sites = load_sites(project) if site_name is None else [choose_site(project, site_name)]
    console = plain_console()
    with opened_ledger(project) as ledger, ledger.begin() as connection:
        for site in sites:
            name = site.settings.site
            found = site_changes.waiting(connection, name)
            console.print(f"{name}: {counted(len(found))} to decide about", style="bold")
            if found:
                console.print(_listed(found))
                console.print(f"  next: content-pipeline conflicts show PAGE --site {name}")


def _listed(found: Sequence[ChangedPage]) -> Table:
    table = plain_table("", "topic", "path", "change", "since", "what was seen")
    for page in found:
        table.add_row(
            escape(page.topic_key),
            page.path,
            page.change,
            when(page.found_at),
            escape(page.reason),
        )
    return table


@conflicts.command("show")
@click.argument("page")
@site_option
def show_conflict(page: str, site_name: str | None) -> None:
    """Show how PAGE on the site differs from our newest text, why, and what was done before."""
    console = plain_console()
    with opened_site(site_name) as runtime:
        found = operation.difference(runtime, page)
        with runtime.ledger.begin() as connection:
            report = reports.page_of_site(connection, runtime.site.site, page)
            assert report.page_id is not None
            events = site_changes.history(connection, report.page_id)
    console.print(f"{found.path}: {found.reason or 'as we left it'}", style="bold", markup=False)
    _print_lines(found.lines, console)
    if events:
        console.print(site_history(events))
    if found.change is not None:
        asked = f"{report.topic_key} --site {runtime.site.site} --cause TEXT"
        console.print(f"  theirs stands: content-pipeline conflicts keep-theirs {asked}")
        console.print(f"  ours stands:   content-pipeline conflicts publish-ours {asked}")


def _print_lines(lines: Sequence[str], console: Console) -> None:
    for line in lines:
        console.print(Text(line, style=_COLOURS.get(line[:1], "")), soft_wrap=True)
    if not lines:
        console.print("the texts are the same")


@conflicts.command("keep-theirs")
@click.argument("page")
@cause_option
@site_option
def keep_theirs(page: str, cause: str, site_name: str | None) -> None:
    """Let PAGE stand as it is on the site; nobody is asked again until it changes."""
    cause = stated("--cause", cause)
    with opened_site(site_name) as runtime:
        click.echo(operation.keep_theirs(runtime, page, cause=cause, by=person()))


@conflicts.command("publish-ours")
@click.argument("page")
@cause_option
@site_option
def publish_ours(page: str, cause: str, site_name: str | None) -> None:
    """Have our text of PAGE written over exactly what is on the site now, by the next run."""
    cause = stated("--cause", cause)
    with opened_site(site_name) as runtime:
        click.echo(operation.publish_ours(runtime, page, cause=cause, by=person()))
