"""``content-pipeline resume``: an account is in order again, or a cap was raised."""

import click

from content_pipeline.bootstrap import caps_of, model_route
from content_pipeline.cli.context import choose_site, opened_ledger, site_option
from content_pipeline.config import find_project
from content_pipeline.ledger import budget_waits, draft_line, publish_rate, routes
from content_pipeline.ledger.leases import Selection
from content_pipeline.site_cms import cms_route


@click.command()
@site_option
def resume(site_name: str | None) -> None:
    """Say that the provider's account and the CMS of a site are in order again.

    Closes what a used-up quota or refused credentials opened, and ends the wait of as many pages as
    the budgets have room for today, and of as many new ones as the publish rate lets out now. They
    go on with the next run; nothing else about them changes.
    """
    project = find_project()
    site = choose_site(project, site_name)
    with opened_ledger(project) as ledger, ledger.begin() as connection:
        for route in (model_route(site), cms_route(site)):
            closed = routes.close_circuit(connection, route)
            click.echo(f"{route}: {'open again' if closed else 'nothing was wrong'}")
        everything = Selection(site=site.settings.site)
        woken = budget_waits.wake(connection, everything, caps_of(site))
        if woken:
            click.echo(f"{woken} pages that waited for a budget are due now")
        woken = publish_rate.wake(connection, everything, site.settings.schedule.rate)
        if woken:
            click.echo(f"{woken} new pages that waited for their turn are due now")
        woken = draft_line.wake(connection, everything, site.settings.schedule.rate)
        if woken:
            click.echo(f"{woken} new pages whose draft waited for its turn are due now")
