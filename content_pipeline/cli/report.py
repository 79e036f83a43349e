"""``content-pipeline report``: the costs and the health of a site as one HTML file."""

from pathlib import Path

import click

from content_pipeline.cli.context import choose_site, load_sites, opened_ledger, site_option
from content_pipeline.config import find_project
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.ledger import write_offs
from content_pipeline.reporting import files, html
from content_pipeline.reporting.site_report import gather


@click.command()
@site_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write there instead of reports/SITE.html; needs a single site.",
)
def report(site_name: str | None, out: Path | None) -> None:
    """Write each site's report of costs and health, and say what should be looked at."""
    project = find_project()
    sites = load_sites(project) if site_name is None else [choose_site(project, site_name)]
    if out is not None and len(sites) > 1:
        raise ConfigurationError("--out names one file; choose one site with --site")
    with opened_ledger(project) as ledger:
        for site in sites:
            with ledger.begin() as connection:
                days = site.settings.budgets.write_off_after_days
                write_offs.write_off(connection, site.settings.site, after_days=days)
                found = gather(connection, site.settings)
            file = out or files.report_file(project, found.site)
            files.write(file, html.render(found))
            click.echo(str(file))
            for verdict in found.verdicts.values():
                if not verdict.passed:
                    click.echo(f"{found.site}: {verdict.sentence}")
