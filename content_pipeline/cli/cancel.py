"""``content-pipeline cancel``: a page job ends without being published."""

import sys

import click

from content_pipeline.cli.context import choose_site, opened_ledger, person, site_option, stated
from content_pipeline.config import find_project
from content_pipeline.operations import cancel as operation
from content_pipeline.operations.cancel import CancelOutcome

_ENDS = frozenset({CancelOutcome.CANCELLED, CancelOutcome.REQUESTED})


@click.command()
@click.argument("page")
@click.option("--reason", required=True, help="Why; it is kept with the page.")
@site_option
def cancel(page: str, reason: str, site_name: str | None) -> None:
    """End the work on PAGE (topic id, path, URL, page id or page job id), unpublished.

    Exit status 0: it is cancelled, or will be; 1: it is too late, or there is nothing to cancel. A
    paid call that is out cannot be stopped: it may be billed, and its answer is kept.
    """
    reason = stated("--reason", reason)
    project = find_project()
    site = choose_site(project, site_name).settings.site
    with opened_ledger(project) as ledger:
        came = operation.cancel(ledger, site, page, reason=reason, by=person())
    click.echo(came.message)
    sys.exit(0 if came.outcome in _ENDS else 1)
