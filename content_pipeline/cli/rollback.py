"""``content-pipeline rollback``: what one way of making pages has published is taken back."""

import click

from content_pipeline.cli.context import opened_site, person, site_option, stated
from content_pipeline.cli.tables import counted
from content_pipeline.operations import rollback as rollbacks

NAMED_TOPICS = 10
"""Enough to know which; `status` and the table tell the rest."""


@click.command()
@click.option(
    "--generation-version", "version", required=True, help="As `show` names it for a page."
)
@click.option("--lift", is_flag=True, help="Let pages be made by the version again.")
@click.option("--cause", help="Why; it is kept with the pages.")
@site_option
def rollback(version: str, cause: str | None, site_name: str | None, *, lift: bool) -> None:
    """Take back what one way of making pages has published.

    Every page that shows a revision of it shows its last good one before again, which is not paid
    again; nothing more is made by it until --lift. The next run publishes. Repeating is harmless.
    """
    cause = "" if lift else stated("--cause", cause or "")
    with opened_site(site_name) as runtime:
        if lift:
            lifted = rollbacks.lift(runtime, version)
            click.echo(
                f"{version} may be used again; the next run makes what is missing"
                if lifted
                else f"{version} was not rolled back"
            )
            return
        done = rollbacks.roll_back(runtime, version, cause=cause, by=person())
    click.echo(f"nothing is made by {version} any more")
    click.echo(f"{counted(len(done.wanted_back))} go back; the next run publishes them")
    if done.nothing_before:
        named = ", ".join(done.nothing_before[:NAMED_TOPICS])
        more = ", …" if len(done.nothing_before) > NAMED_TOPICS else ""
        count = counted(len(done.nothing_before))
        click.echo(f"{count} never showed anything else and stay as they are: {named}{more}")
