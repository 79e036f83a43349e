"""Cancel: a person wants a page job to end without being published.

What belongs here: the durable wish, and ending at once what nobody works on. A page at work is
ended by its worker at the next safe point (``steps``). Nothing here stops a provider: a call that
is out may complete and be billed, and its answer is kept. (A background response is asked to stop
by whoever waits for it, in ``kept_answers`` and ``recover``.)
"""

from dataclasses import dataclass
from enum import StrEnum

from content_pipeline.core.states import CANCELLABLE, MOVES, PageJobState
from content_pipeline.ledger import cancellations, jobs, leases, reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.reports import PageReport

WORKER = "cancel"
"""Names the command in leases and transitions; who gave it stands with the reason."""

LEASE_S = 10.0
"""Ending a page takes milliseconds; should the command die meanwhile, a worker ends it."""


class CancelOutcome(StrEnum):
    """What came of a wish to cancel."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    """On record; whoever has the page in hand ends it."""
    TOO_LATE = "too_late"
    """A publish has begun: success may win."""
    NOTHING_TO_CANCEL = "nothing_to_cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """The outcome, and a sentence for people."""

    outcome: CancelOutcome
    message: str


def cancel(ledger: Ledger, site: str, page: str, *, reason: str, by: str) -> Cancellation:
    """Cancel ``page``'s current page job, for ``reason``, on behalf of ``by``.

    ``page``: a topic id, path, URL, page id or page job id. Raises UnknownPage.
    """
    with ledger.begin() as connection:
        asked = reports.page_of_site(connection, site, page)
        cancellations.request(connection, asked.page_job_id, by=by, reason=reason)
    if asked.page_id is None:
        return _nothing_to_cancel(asked.topic_key, asked.state)
    _end_if_it_rests(ledger, site, asked)
    with ledger.begin() as connection:
        return _told(jobs.load(connection, asked.page_job_id))


def _end_if_it_rests(ledger: Ledger, site: str, page: PageReport) -> None:
    """Take the page's lease as a worker would, if nobody has it, and end the job."""
    with ledger.begin() as connection:
        # Any job of the topic will do: what is needed is the lease of the page they share.
        claims = leases.claim_due(
            connection,
            Selection(site=site, topics=(page.topic_key,)),
            most=1,
            worker=WORKER,
            lease_s=LEASE_S,
        )
    for claim in claims:
        with ledger.fenced(claim.lease) as connection:
            job = jobs.load(connection, page.page_job_id)
            if job.cancel_requested and (job.state, PageJobState.CANCELLED) in MOVES:
                jobs.move(connection, job, PageJobState.CANCELLED, lease=claim.lease)
        with ledger.begin() as connection:
            leases.release(connection, claim.lease)


def _told(job: PageJob) -> Cancellation:
    name, state = job.topic_key, job.state
    if state is PageJobState.CANCELLED:
        kept = "; its paid draft is kept" if job.revision else ""
        live = "; the page that is live stays as it is" if job.baseline else ""
        return Cancellation(
            outcome=CancelOutcome.CANCELLED,
            message=f"{name} is cancelled and will not be published{kept}{live}",
        )
    if state in CANCELLABLE:
        return Cancellation(
            outcome=CancelOutcome.REQUESTED,
            message=(
                f"the wish to cancel {name} is on record: it is {state} and ends at its next safe "
                "point, unpublished. This does not stop the provider: a call that is out may still "
                "complete and be billed; its answer is then recorded and not published"
            ),
        )
    if state in (PageJobState.PUBLISHING, PageJobState.PUBLISH_UNCERTAIN):
        return Cancellation(
            outcome=CancelOutcome.TOO_LATE,
            message=f"{name} is {state}: its publish has begun and cannot be called back",
        )
    return _nothing_to_cancel(name, state)


def _nothing_to_cancel(name: str, state: PageJobState) -> Cancellation:
    return Cancellation(
        outcome=CancelOutcome.NOTHING_TO_CANCEL,
        message=f"{name} is {state}: there is nothing to cancel",
    )
