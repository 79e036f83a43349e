"""``content-pipeline survey``: look now for what was changed on a site."""

import sys

import click
from rich.console import Console
from rich.markup import escape

from content_pipeline.cli.context import opened_site, plain_console, site_option
from content_pipeline.cli.tables import counted
from content_pipeline.ledger import site_changes
from content_pipeline.operations import survey as operation
from content_pipeline.operations.survey import SurveyReport


@click.command()
@click.option("--full", is_flag=True, help="Look at everything the CMS holds, to the end.")
@site_option
def survey(site_name: str | None, *, full: bool) -> None:
    """Look for pages that were changed on the site, moved, hidden or lost.

    Without --full: at recent changes and at the next slice of everything. Nothing is written but
    that twins, second pages with our mark, are taken away; what the site's policy puts back is
    published by the next run. Exit status 1: a page waits for a person, or the CMS could not be
    asked.
    """
    console = plain_console()
    with opened_site(site_name) as runtime:
        report = operation.survey(runtime, slices=None if full else 1)
        with runtime.ledger.begin() as connection:
            waiting = site_changes.waiting(connection, runtime.site.site)
    _print(report, console)
    if waiting:
        console.print(
            f"[yellow]{counted(len(waiting))} to decide about: content-pipeline conflicts --site "
            f"{runtime.site.site}[/yellow]"
        )
    sys.exit(1 if waiting or report.failure is not None else 0)


def _print(report: SurveyReport, console: Console) -> None:
    console.print(
        f"{report.listed:,} pages listed, {report.looked_at:,} looked at closely; "
        + ("everything was seen" if report.is_complete else "the next survey goes on there")
    )
    for change, count in sorted(report.found.items()):
        console.print(f"[yellow]{count:,} {change.value}[/yellow]")
    if not report.found:
        console.print("nothing new was found")
    if report.restored:
        console.print(f"{report.restored:,} are published again by the next run")
    if report.twins_removed:
        console.print(f"{report.twins_removed:,} twins were taken away")
    if report.failure is not None:
        told = f"stopped early: {report.failure.message}"
        console.print(f"[red]{escape(told)}[/red]", soft_wrap=True)
