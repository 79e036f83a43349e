"""``content-pipeline db`` and ``sandbox``: the two background services of a project."""

import click
from sqlalchemy.exc import OperationalError

from content_pipeline.bootstrap import open_ledger
from content_pipeline.config import environment, find_project
from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.ledger.database import create_ledger_engine
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.postgres.urls import VARIABLE, DatabaseUrl, external_database_url
from content_pipeline.sandbox.cms.supervisor import cms_statuses, stop_cms
from content_pipeline.sandbox.supervisor import provider_status, stop_provider


@click.group()
def db() -> None:
    """The project's database: start, stop, status."""


def _embedded() -> EmbeddedServer:
    return EmbeddedServer(find_project().data_home)


@db.command()
def start() -> None:
    """Start the embedded database, create or upgrade the ledger."""
    open_ledger(find_project()).dispose()
    click.echo("the database answers and the ledger is up to date")


@db.command()
def stop() -> None:
    """Stop the embedded database; the next command starts it again."""
    click.echo("stopped" if _embedded().stop() else "it was not running")


@db.command()
def status() -> None:
    """Say which database is used and whether it answers."""
    external = external_database_url(environment())
    if external is not None:
        _ask(external)
        click.echo(f"{external.shown} ({VARIABLE}) answers")
        return
    found = _embedded().status()
    click.echo(f"{found.state.value}: {found.explanation}")
    click.echo(f"data: {found.data_dir}")
    click.echo(f"logs: {found.log_dir}")


def _ask(external: DatabaseUrl) -> None:
    engine = create_ledger_engine(external.ledger_url)
    try:
        engine.connect().close()
    except OperationalError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise DatabaseUnavailable(
            f"{external.shown} ({VARIABLE}) does not answer: {reason}"
        ) from None
    finally:
        engine.dispose()


@click.group()
def sandbox() -> None:
    """The offline services, a provider and a CMS per site: status, stop."""


@sandbox.command("status")
def sandbox_status() -> None:
    """Say which of the sandbox's services run, and what they have done."""
    home = find_project().data_home
    provider, running = provider_status(home), cms_statuses(home)
    if provider is None and not running:
        click.echo("not running; it starts with the first run of a site that uses it")
    if provider is not None:
        click.echo(
            f"provider {provider.address.base_url}: {provider.generations:,} generations, "
            f"{provider.requests:,} requests since it was set up"
        )
    for site, cms in running.items():
        click.echo(
            f"CMS of {site} {cms.base_url}: {cms.live:,} pages live, "
            f"{cms.requests:,} requests since it was set up"
        )


@sandbox.command("stop")
def sandbox_stop() -> None:
    """Stop the sandbox's services; what they did stays on record."""
    home = find_project().data_home
    stopped = [stop_provider(home), stop_cms(home)]
    click.echo("stopped" if any(stopped) else "it was not running")
