"""A run's sign of life in the ledger, from its begin to its end, also while it only waits.

What belongs here: showing it. Who judges a silent run is ``run_repair``; a worker that was given up
by it begins no page any more.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from content_pipeline.ledger import run_signs
from content_pipeline.operations.repeating import repeated
from content_pipeline.operations.runtime import SiteRuntime

log = logging.getLogger(__name__)

SIGN_INTERVAL_S = 5.0
"""A run is suspected after half a minute of silence at the earliest: six signs."""


@contextmanager
def showing_life(runtime: SiteRuntime, run_id: str) -> Iterator[None]:
    """Show in the ledger that the run has a worker. Raises SQLAlchemyError at the begin only.

    The sign of a run that ends with an error stays: what it left untold is told by the repair.
    """

    def show() -> None:
        with runtime.ledger.begin() as connection:
            lives = run_signs.show(
                connection, run_id=run_id, site=runtime.site.site, worker=runtime.worker
            )
        if not lives and not runtime.given_up.is_set():
            log.warning("the run was given up for dead: its worker begins no page any more")
            runtime.given_up.set()

    show()
    # Silence while the database is away is held against none.
    with repeated(show, every_s=SIGN_INTERVAL_S, name="sign-of-life"):
        yield
    with runtime.ledger.begin() as connection:
        run_signs.forget(connection, run_id)
