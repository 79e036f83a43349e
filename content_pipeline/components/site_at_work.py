"""A site opened for the work of one run, and closed afterwards.

What belongs here: the way from Dagster to ``bootstrap``, and what an error means to a run: only a
database that does not answer at its begin is worth a retry by Dagster.
"""

import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager

import dagster as dg
from sqlalchemy.exc import OperationalError

from content_pipeline.bootstrap import open_ledger, open_site
from content_pipeline.components.project import this_project
from content_pipeline.components.sign_of_life import showing_life
from content_pipeline.core.errors import ContentPipelineError, DatabaseUnavailable
from content_pipeline.garbage import sought_among_new
from content_pipeline.ledger.database import Ledger
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.site_files import Site

OUR_PACKAGE = "content_pipeline"

INFRASTRUCTURE_RETRIES = dg.RetryPolicy(max_retries=2, delay=5)
"""For a database that does not answer when a run begins, before anything was paid or written.
Every later error ends the run: the ledger knows which pages go on, and when."""


@contextmanager
def opened_ledger() -> Iterator[Ledger]:
    """The project's ledger, closed afterwards. Raises DatabaseUnavailable, ConfigurationError."""
    ledger = open_ledger(this_project())
    try:
        yield ledger
    finally:
        ledger.dispose()


@contextmanager
def site_ledger() -> Iterator[Ledger]:
    """The ledger for a run that only reads it. Errors leave as they do from ``site_at_work``."""
    with _final_but_for(DatabaseUnavailable), opened_ledger() as ledger, _final_but_for():
        yield ledger


@contextmanager
def site_at_work(site: Site, run_id: str) -> Iterator[SiteRuntime]:
    """Everything that a run's work on ``site`` needs, closed afterwards.

    Raises DatabaseUnavailable when the ledger cannot be opened; every other error, of the caller's
    work too, comes out as a Failure that no retry policy touches.
    """
    with _final_but_for(DatabaseUnavailable), opened_ledger() as ledger:
        runtime = open_site(site, this_project(), ledger, purpose="dagster", run_id=run_id)
        with _final_but_for(), closing(runtime), showing_life(runtime, run_id), sought_among_new():
            yield runtime


@contextmanager
def _final_but_for(*retried: type[Exception]) -> Iterator[None]:
    passing: tuple[type[Exception], ...] = (dg.Failure, *retried)
    try:
        yield
    except passing:
        raise
    except ContentPipelineError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from None
    except OperationalError as error:
        reason = str(error.orig).strip().splitlines()[0]
        message = (
            f"the database failed in the middle of the work: {reason}. Nothing is lost; the pages "
            "go on with the next run"
        )
        raise dg.Failure(description=message, allow_retries=False) from None
    except Exception as error:  # noqa: BLE001  # boundary: a retry policy must not see this
        # The exception's own text may hold model output, so only its type and place are kept.
        frames = traceback.extract_tb(error.__traceback__)
        place = [frame for frame in frames if OUR_PACKAGE in frame.filename][-1]
        message = (
            f"{type(error).__name__} at {place.filename}:{place.lineno}: a fault of the pipeline, "
            "please report it. Nothing is lost; the pages go on with the next run"
        )
        raise dg.Failure(description=message, allow_retries=False) from None
