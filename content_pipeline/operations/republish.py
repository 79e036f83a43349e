"""Republish: have stored revisions looked at on the site, and put back where they are not in place.

What belongs here: a person's wish for some or all published pages. Nothing is generated and nothing
is paid; a page that is in place is confirmed without a write, one that somebody changed follows the
site's policy.
"""

from collections.abc import Collection

from content_pipeline.ledger import reports, resting
from content_pipeline.operations.runtime import SiteRuntime

AT_ONCE = 500
"""Pages per transaction: a crash in between leaves whole pages, and asking again does the rest."""


def republish(
    runtime: SiteRuntime, topics: Collection[str] | None, *, cause: str, by: str
) -> tuple[str, ...]:
    """Hand the published pages of ``topics`` (None: of all) to the lane; those it takes up."""
    with runtime.ledger.begin() as connection:
        keys = None if topics is None else sorted(topics)
        found = reports.published_jobs(connection, runtime.site.site, keys)
    taken: list[str] = []
    for start in range(0, len(found), AT_ONCE):
        with runtime.ledger.begin() as connection:
            taken += [
                topic
                for topic, page_job_id in found[start : start + AT_ONCE]
                if resting.want_back(
                    connection, page_job_id, worker=by, cause=f"published again: {cause}"
                )
            ]
    return tuple(taken)
