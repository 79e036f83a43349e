"""``content-pipeline repair``: pages that need a person: which, why, and what ends it."""

import click
from rich.console import Console
from rich.markup import escape

from content_pipeline.bootstrap import topic_rows
from content_pipeline.cli.context import (
    choose_site,
    load_sites,
    opened_ledger,
    person,
    plain_console,
    site_option,
    stated,
)
from content_pipeline.cli.story import print_story
from content_pipeline.cli.tables import counted, plain_table, when
from content_pipeline.config import find_project
from content_pipeline.core.causes import PREFIX, WHAT_TO_DO
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.failures import EXPLANATIONS
from content_pipeline.ledger import failed_pages, reports
from content_pipeline.ledger.failed_pages import FailedGroup
from content_pipeline.operations import repair as operation
from content_pipeline.operations.corrections import fix_input
from content_pipeline.operations.regenerate import regenerate

SHOWN_PAGES = 50
"""Pages of one cause that are listed; they fail alike."""

cause_option = click.option(
    "--cause", required=True, help="What was wrong and is corrected now; kept with the page."
)


@click.group()
def repair() -> None:
    """Pages that need a person."""


@repair.command("list")
@site_option
def repair_list(site_name: str | None) -> None:
    """List the pages that need a person, grouped by what they have in common."""
    project = find_project()
    sites = load_sites(project) if site_name is None else [choose_site(project, site_name)]
    console = plain_console()
    with opened_ledger(project) as ledger:
        for site in sites:
            name = site.settings.site
            with ledger.begin() as connection:
                groups = failed_pages.by_cause(connection, name)
            count = sum(len(group.pages) for group in groups)
            console.print(f"{name}: {counted(count)} need a person", style="bold")
            for group in groups:
                _print_group(group, console)


def _print_group(group: FailedGroup, console: Console) -> None:
    cause, example = group.cause, group.pages[0]
    heading = f"{counted(len(group.pages))}: {cause.text}"
    lines = (
        f"  {cause.fingerprint}, {cause.failure_class}: {EXPLANATIONS[cause.failure_class]}",
        f"  e.g. {example.topic_key}: {example.message}",
        f"  to do: {WHAT_TO_DO[cause.failure_class]}",
    )
    console.print(f"[red]{escape(heading)}[/red]", soft_wrap=True)
    for line in lines:
        console.print(escape(line), soft_wrap=True)


@repair.command("show")
@click.argument("page")
@site_option
def repair_show(page: str, site_name: str | None) -> None:
    """Show the whole history of PAGE, or of the pages of a cause by its fingerprint."""
    project = find_project()
    site = choose_site(project, site_name).settings.site
    console = plain_console()
    with opened_ledger(project) as ledger:
        if page.startswith(PREFIX):
            group = operation.group_of(ledger, site, page)
            _print_group(group, console)
            console.print(_members(group))
            page = group.pages[0].topic_key
        with ledger.begin() as connection:
            report = reports.page_of_site(connection, site, page)
            print_story(connection, site, report, console)


def _members(group: FailedGroup) -> object:
    table = plain_table(f"Pages of {group.cause.fingerprint}", "topic", "since", "message")
    for member in group.pages[:SHOWN_PAGES]:
        table.add_row(member.topic_key, when(member.failed_at), escape(member.message))
    if len(group.pages) > SHOWN_PAGES:
        table.add_row(f"and {len(group.pages) - SHOWN_PAGES:,} more", "", "")
    return table


@repair.command("retry")
@click.argument("page")
@cause_option
@site_option
def repair_retry(page: str, cause: str, site_name: str | None) -> None:
    """Take PAGE, or all pages of a cause, up again with fresh tries; stored drafts are kept.

    PAGE is a topic id, path, URL or the fingerprint that `repair list` shows.
    """
    cause = stated("--cause", cause)
    project = find_project()
    site = choose_site(project, site_name).settings.site
    with opened_ledger(project) as ledger:
        click.echo(operation.retry(ledger, site, page, cause=f"{cause} ({person()})"))


@repair.command("fix-input")
@click.argument("page")
@click.option("--set", "settings", multiple=True, required=True, help="column=value; repeatable.")
@cause_option
@site_option
def repair_fix_input(
    page: str, settings: tuple[str, ...], cause: str, site_name: str | None
) -> None:
    """Correct columns of PAGE's row beside the table, until the table itself changes there."""
    cause = stated("--cause", cause)
    values = dict(_assignment(setting) for setting in settings)
    project = find_project()
    site = choose_site(project, site_name)
    with opened_ledger(project) as ledger:
        told = fix_input(
            ledger,
            site.settings,
            site.columns,
            topic_rows(site),
            page,
            values,
            cause=cause,
            by=person(),
        )
    click.echo(told)


def _assignment(setting: str) -> tuple[str, str]:
    column, equals, value = setting.partition("=")
    if not equals or not column.strip():
        raise ConfigurationError(
            f"--set takes column=value, e.g. --set population=10037: {setting}"
        )
    return column.strip(), value


@repair.command("regenerate")
@click.argument("page")
@cause_option
@site_option
def repair_regenerate(page: str, cause: str, site_name: str | None) -> None:
    """Have PAGE made anew from the same input. This pays for it again."""
    cause = stated("--cause", cause)
    project = find_project()
    site = choose_site(project, site_name)
    with opened_ledger(project) as ledger:
        told = regenerate(
            ledger, site.settings, site.generation_version, page, cause=cause, by=person()
        )
    click.echo(told)
