"""``content-pipeline db`` and ``sandbox``: the two background services of a project."""

import click

from content_pipeline.bootstrap import open_ledger
from content_pipeline.config import environment, find_project
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.postgres.urls import VARIABLE, external_database_url
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
        click.echo(f"{VARIABLE}: {external.shown}")
        return
    found = _embedded().status()
    click.echo(f"{found.state.value}: {found.explanation}")
    click.echo(f"data: {found.data_dir}")
    click.echo(f"logs: {found.log_dir}")


@click.group()
def sandbox() -> None:
    """The offline provider: status, stop."""


@sandbox.command("status")
def sandbox_status() -> None:
    """Say whether the sandbox provider runs, and what it has generated."""
    running = provider_status(find_project().data_home)
    if running is None:
        click.echo("not running; it starts with the first run of a site that uses it")
        return
    click.echo(
        f"{running.address.base_url}: {running.generations:,} generations, "
        f"{running.requests:,} requests since it was set up"
    )


@sandbox.command("stop")
def sandbox_stop() -> None:
    """Stop the sandbox provider; what it generated stays on record."""
    click.echo("stopped" if stop_provider(find_project().data_home) else "it was not running")
