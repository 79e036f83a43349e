"""The command group, and how an error of ours leaves the process."""

import sys
from typing import NoReturn

import click
from sqlalchemy.exc import OperationalError

from content_pipeline import __version__
from content_pipeline.chaos.command import chaos
from content_pipeline.cli.cancel import cancel
from content_pipeline.cli.conflicts import conflicts
from content_pipeline.cli.costs import show_costs
from content_pipeline.cli.doctor import doctor
from content_pipeline.cli.inspect import show, status, uncertain
from content_pipeline.cli.plan import plan
from content_pipeline.cli.repair import repair
from content_pipeline.cli.report import report
from content_pipeline.cli.republish import republish
from content_pipeline.cli.resume import resume
from content_pipeline.cli.rollback import rollback
from content_pipeline.cli.run import run
from content_pipeline.cli.services import db, sandbox
from content_pipeline.cli.survey import survey
from content_pipeline.core.errors import ContentPipelineError


class _Group(click.Group):
    """Turns an expected error into its message and exit status 2, without a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except ContentPipelineError as error:
            _leave(str(error))
        except OperationalError as error:
            reason = str(error.orig).strip().splitlines()[0]
            _leave(
                f"the database failed in the middle of the work: {reason}. Nothing is lost: when "
                "it is well again, the same command goes on; see `content-pipeline db status`"
            )


def _leave(message: str) -> NoReturn:
    click.secho(f"Error: {message}", fg="red", err=True)
    sys.exit(2)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Generate, validate and publish pages from a table of topics, each paid and published once."""


for command in (
    run,
    plan,
    status,
    show,
    show_costs,
    report,
    uncertain,
    cancel,
    resume,
    repair,
    survey,
    conflicts,
    republish,
    rollback,
    doctor,
    db,
    sandbox,
    chaos,
):
    main.add_command(command)
