"""Vectors of pages: those of accepted drafts, to which another page is compared.

What belongs here: finding and reading them. They are stored with the other outputs of steps. A
vector counts for as long as its page job may be or become what visitors see; there is no second
record of that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Text, and_, any_, bindparam, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on

from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import page_jobs, pages, step_outputs

_ACCEPTED = (
    PageJobState.READY_TO_PUBLISH,
    PageJobState.PUBLISHING,
    PageJobState.PUBLISH_UNCERTAIN,
    PageJobState.PUBLISHED,
    PageJobState.WITHDRAWING,
)


Key = tuple[str, str]
"""Page job and step key: what is stored under it never changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A page's accepted draft, and where its vector is."""

    path: str
    key: Key


@dataclass(slots=True)
class KnownVectors:
    """Vectors that this process has read, so that each is read once.

    Reading 10,000 of 1,536 numbers takes 0.5 s, which every page would wait for; listing those that
    count takes 0.07 s. They are 61 MB. Used by one thread at a time, see ``one_at_a_time``.
    """

    held: dict[Key, bytes] = field(default_factory=dict, repr=False)

    def of(self, connection: Connection, accepted: Sequence[Accepted]) -> list[bytes]:
        """The vectors of ``accepted``, in this order; all others are forgotten."""
        missing = [each.key[0] for each in accepted if each.key not in self.held]
        if missing:
            rows = connection.execute(_READ, {"of_jobs": missing})
            self.held |= {(row.page_job_id, row.step_key): row.vector for row in rows}
        self.held = {each.key: self.held[each.key] for each in accepted}
        return list(self.held.values())


_READ = select(step_outputs.c.page_job_id, step_outputs.c.step_key, step_outputs.c.vector).where(
    step_outputs.c.page_job_id == any_(bindparam("of_jobs", type_=ARRAY(Text))),
    step_outputs.c.vector.is_not(None),
)


def one_at_a_time(connection: Connection, site: str) -> None:
    """Until the transaction ends, nobody else accepts a draft of the site by its vector.

    So of two pages that are validated at the same instant, one sees the other.
    """
    connection.execute(_LOCK, {"locked": f"similarity:{site}"})


_LOCK = select(func.pg_advisory_xact_lock(func.hashtextextended(bindparam("locked"), 0)))


def of_job(connection: Connection, page_job_id: str) -> bytes | None:
    """The vector of the job's newest draft."""
    vector: bytes | None = connection.execute(_OF_JOB, {"of_job": page_job_id}).scalar_one_or_none()
    return vector


_OF_JOB = (
    select(step_outputs.c.vector)
    .where(step_outputs.c.page_job_id == bindparam("of_job"))
    .where(step_outputs.c.vector.is_not(None))
    .order_by(step_outputs.c.created_at.desc())
    .limit(1)
)


def accepted_elsewhere(
    connection: Connection, job: PageJob, *, model_identity: str, size: int
) -> list[Accepted]:
    """The site's other pages that have an accepted vector by the same model, of ``size`` bytes.

    A page whose newer draft is accepted and not live yet has two. Those of another length are made
    another way: their pages are compared once they have a vector of this length.
    """
    rows = connection.execute(
        _ELSEWHERE,
        {"of_site": job.site, "but": job.page_id, "of_model": model_identity, "of_size": size},
    )
    return [Accepted(path=row.path, key=(row.page_job_id, row.step_key)) for row in rows]


_ELSEWHERE = (
    select(pages.c.path, step_outputs.c.page_job_id, step_outputs.c.step_key)
    .ext(distinct_on(page_jobs.c.page_job_id))
    .select_from(
        page_jobs.join(pages, pages.c.page_id == page_jobs.c.page_id).join(
            step_outputs, step_outputs.c.page_job_id == page_jobs.c.page_job_id
        )
    )
    .where(page_jobs.c.site == bindparam("of_site"), page_jobs.c.page_id != bindparam("but"))
    .where(
        or_(
            page_jobs.c.state.in_(_ACCEPTED),
            # waits for its CMS: one without an accepted draft has no revision
            and_(
                page_jobs.c.state == PageJobState.FAILED_RETRYABLE,
                page_jobs.c.revision.is_not(None),
            ),
        )
    )
    .where(func.octet_length(step_outputs.c.vector) == bindparam("of_size"))
    .where(step_outputs.c.output["model"].astext == bindparam("of_model"))
    .order_by(page_jobs.c.page_job_id, step_outputs.c.created_at.desc())
)
