"""Lines of page jobs that wait for a turn, and how those in front are let go on.

What belongs here: the statement. Who stands in a line and how many may go is for the module of that
line to say: ``draft_line``, ``publish_rate``.
"""

from sqlalchemy import TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from content_pipeline.ledger.schema import SCHEMA


def waking(waits: str) -> TextClause:
    """Make due, in the order of the line, what ``waits``: SQL about the job ``j``, from constants.

    Parameters: ``site``, ``topics`` (None: all), ``most`` (None: all). A job that another
    transaction holds is moving anyway.
    """
    return text(
        f"""
        WITH line AS (
            SELECT page_job_id FROM {SCHEMA}.page_jobs j
            WHERE j.site = :site AND {waits} AND j.next_attempt_at > clock_timestamp()
              AND (CAST(:topics AS text[]) IS NULL OR j.topic_key = ANY(CAST(:topics AS text[])))
            ORDER BY j.priority DESC, j.next_attempt_at, j.page_job_id
            LIMIT :most FOR UPDATE SKIP LOCKED
        )
        UPDATE {SCHEMA}.page_jobs j SET next_attempt_at = clock_timestamp() FROM line l
        WHERE j.page_job_id = l.page_job_id
        """  # noqa: S608 - only our own constants are put in
    ).bindparams(bindparam("topics", type_=ARRAY(Text)))
