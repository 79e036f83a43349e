"""Rollback: take back what one way of making pages has published.

What belongs here: for every page that shows a revision of the version, wanting the last good
revision before it again. The old draft comes back under a new number, is checked and published by
the lane, and is not paid again. Nothing is made by the version until the rollback is lifted.
"""

from dataclasses import dataclass

from content_pipeline.ledger import intake, rollbacks
from content_pipeline.operations.runtime import SiteRuntime

AT_ONCE = 200
"""Pages per transaction: a crash in between leaves whole pages, and asking again does the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """What a rollback set in motion."""

    wanted_back: tuple[str, ...]
    """Topics whose earlier revision is published next."""
    nothing_before: tuple[str, ...]
    """Topics whose first page the version made: they stay as they are."""


def roll_back(runtime: SiteRuntime, generation_version: str, *, cause: str, by: str) -> Rollback:
    """Take ``generation_version`` back; a second call finds nothing left to do.

    Raises ConfigurationError for a version that the site never made a page with.
    """
    site = runtime.site.site
    with runtime.ledger.begin() as connection:
        intake.lock(connection, site)
        rollbacks.refuse(connection, site, generation_version, cause=cause, by=by)
    wanted: list[str] = []
    while True:
        with runtime.ledger.begin() as connection:
            intake.lock(connection, site)
            batch = rollbacks.want_earlier(
                connection, site, generation_version, most=AT_ONCE, worker=by, cause=cause
            )
        wanted += batch
        if not batch:
            break
    with runtime.ledger.begin() as connection:
        left = rollbacks.without_earlier(connection, site, generation_version)
    return Rollback(wanted_back=tuple(wanted), nothing_before=tuple(left))


def lift(runtime: SiteRuntime, generation_version: str) -> bool:
    """Let pages be made by the version again; False when it was not rolled back."""
    with runtime.ledger.begin() as connection:
        return rollbacks.lift(connection, runtime.site.site, generation_version)
