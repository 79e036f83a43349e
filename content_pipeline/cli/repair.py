"""``content-pipeline repair``: a person takes a failed page up again, and says why."""

import click

from content_pipeline.cli.context import choose_site, opened_ledger, site_option
from content_pipeline.config import find_project
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.operations.repair import retry


@click.group()
def repair() -> None:
    """Pages that need a person."""


@repair.command("retry")
@click.argument("page")
@click.option("--cause", required=True, help="What was wrong and is corrected now.")
@site_option
def repair_retry(page: str, cause: str, site_name: str | None) -> None:
    """Take PAGE (topic id, path or URL) up again with fresh tries; a stored draft is kept."""
    project = find_project()
    site = choose_site(project, site_name)
    if not cause.strip():
        raise ConfigurationError("--cause must say what was wrong; it is kept with the page")
    with opened_ledger(project) as ledger:
        click.echo(retry(ledger, site.settings.site, page, cause=cause.strip()))
