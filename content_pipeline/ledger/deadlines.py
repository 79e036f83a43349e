"""Deadlines: until when a page job is tried again by itself.

What belongs here: giving page jobs their time, anew whenever they are wanted anew, and saying how
much of it is left. How long that is, is the site's to say, and kept with the site: whoever repairs
a page has no site file at hand. Nothing is dropped because its time is over; a call or a publish
that is out is settled first, whenever that is.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, any_, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from content_pipeline.ledger.schema import page_jobs, seconds_from_now, sites


def renew(connection: Connection, page_job_ids: Sequence[str]) -> None:
    """Give page jobs all the time that their site gives a page, from now."""
    connection.execute(_RENEW, {"renewed": list(page_job_ids)})


def from_now(site: ColumnElement[str]) -> ColumnElement[Any]:
    """The deadline of a page job of ``site`` that begins now."""
    seconds = select(sites.c.page_deadline_s).where(sites.c.site == site).scalar_subquery()
    return seconds_from_now(seconds)


_RENEW = (
    update(page_jobs)
    .where(page_jobs.c.page_job_id == any_(bindparam("renewed", type_=ARRAY(Text))))
    .values(deadline_at=from_now(page_jobs.c.site))
)


def left_s(connection: Connection, page_job_id: str) -> float:
    """Seconds until the page job's deadline; negative once it has passed."""
    left: float = connection.execute(
        select(func.extract("epoch", page_jobs.c.deadline_at - func.clock_timestamp())).where(
            page_jobs.c.page_job_id == page_job_id
        )
    ).scalar_one()
    return float(left)
