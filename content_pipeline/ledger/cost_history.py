"""Cost history: what the last days of a site cost, and how many pages came of it.

What belongs here: reading a bounded number of UTC days. The dollars are those of ``costs``, summed
by the same query. What is uncertain now is ``health``'s, what failed and was tried again
``failure_history``'s.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import Connection, func, select, text

from content_pipeline.ledger.costs import Cost, Dimension, costs
from content_pipeline.ledger.schema import SCHEMA

HISTORY = (Dimension.DAY, Dimension.CLASS, Dimension.TEMPLATE, Dimension.MODEL)
"""The keys of each group of ``cost_history``, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The UTC days that a report is about, by the database's clock."""

    first_day: date
    now: datetime

    @property
    def today(self) -> date:
        """The last day, which is not over."""
        return self.now.date()

    @property
    def begins_at(self) -> datetime:
        """The first instant."""
        return datetime.combine(self.first_day, time(), tzinfo=UTC)

    @property
    def days(self) -> tuple[date, ...]:
        """Each day, the oldest first."""
        count = (self.today - self.first_day).days + 1
        return tuple(self.first_day + timedelta(days=number) for number in range(count))


def window(connection: Connection, days: int) -> Window:
    """Today and the ``days`` - 1 days before it."""
    now = connection.execute(select(func.now())).scalar_one().astimezone(UTC)
    return Window(first_day=now.date() - timedelta(days=days - 1), now=now)


def cost_history(connection: Connection, site: str, seen: Window) -> list[Cost]:
    """The site's dollars of each day by class, template and model: keys as in ``HISTORY``."""
    return costs(connection, HISTORY, site=site, since=seen.first_day)


def published_by_day(connection: Connection, site: str, seen: Window) -> dict[date, int]:
    """Day → page jobs whose page was proved on the site; days without any are left out.

    A page that was put back on the site counts once, on the first such day of the window.
    """
    rows = connection.execute(_PUBLISHED, {"site": site, "begins_at": seen.begins_at})
    return {row.day: row.pages for row in rows}


# The states stand in the text: behind a parameter the planner may not use a partial index.
_PUBLISHED = text(
    f"""
    SELECT day, count(*) AS pages
    FROM (SELECT (min(t.at) AT TIME ZONE 'utc')::date AS day
          FROM {SCHEMA}.transitions t
          JOIN {SCHEMA}.page_jobs j ON j.page_job_id = t.page_job_id
          WHERE t.to_state = 'published' AND t.at >= :begins_at AND j.site = :site
          GROUP BY t.page_job_id) first
    GROUP BY day
    """  # noqa: S608 - only our own constants are put in
)


def calls_per_page(connection: Connection, site: str, seen: Window) -> dict[int, int]:
    """Number of paid calls → page jobs that took so many, of those paid for in the window.

    All calls of such a page job count, earlier ones too; a reservation without a call does not.
    """
    rows = connection.execute(_CALLS_PER_PAGE, {"site": site, "first_day": seen.first_day})
    return {row.calls: row.pages for row in rows}


_CALLS_PER_PAGE = text(
    f"""
    SELECT calls, count(*) AS pages
    FROM (SELECT count(*) AS calls
          FROM (SELECT DISTINCT page_job_id FROM {SCHEMA}.spend
                WHERE site = :site AND day >= :first_day) paid
          JOIN {SCHEMA}.attempts a USING (page_job_id)
          WHERE a.kind = 'generate'
          GROUP BY page_job_id) page
    GROUP BY calls
    ORDER BY calls
    """  # noqa: S608 - only our own constants are put in
)
