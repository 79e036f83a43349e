"""Regenerate: a person wants a page made anew although nothing that it is made from has changed.

What belongs here: one deliberate new page job. It has an identity of its own, answers nothing that
was answered before, and is paid for again; the live page stays until the new one is proved.
"""

from content_pipeline.core.site import SiteSettings
from content_pipeline.core.states import FINAL
from content_pipeline.ledger import intake, regenerations, reports
from content_pipeline.ledger.database import Ledger


def regenerate(
    ledger: Ledger, site: SiteSettings, generation_version: str, page: str, *, cause: str, by: str
) -> str:
    """Want ``page`` anew; what happens next and what it may cost, in a sentence.

    ``generation_version``: how the site makes its pages now. Raises UnknownPage.
    """
    with ledger.begin() as connection:
        intake.lock(connection, site.site)
        report = reports.page_of_site(connection, site.site, page)
        name = report.topic_key
        if report.page_id is None:
            return f"{name} has no usable row: correct the table and run again"
        if report.state not in FINAL:
            return f"{name} is {report.state}, so it is still at work: wait for it, or cancel it"
        if report.generation_version != generation_version:
            return (
                f"the site makes its pages in another way since {name} was made: the next run "
                "makes it anew by itself"
            )
        regenerations.begin_anew(
            connection, report.page_job_id, why=f"made anew: {cause}", requested_by=by
        )
    return (
        f"{name} is queued to be made anew. This pays for it again, at most "
        f"${site.budgets.page_usd:f}; the next run begins with it"
    )
