"""Step outputs: what each paid step of a page's chain came to, kept for good.

What belongs here: storing and finding them. An output is found by its key (the question that it
answers), so that another page job of the page takes it over instead of paying for it again.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Text, any_, bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.core.identity import digest
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import step_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutput:
    """One stored output."""

    page_job_id: str
    step: str
    step_key: str
    attempt_id: str
    output: Any
    vector: bytes | None = field(default=None, repr=False)
    """Of an embedding, whose ``output`` only describes it."""


def of_page(connection: Connection, page_id: str) -> list[StepOutput]:
    """All outputs of a page's jobs, newest first."""
    rows = connection.execute(_OF_PAGE, {"of_page": page_id})
    return [
        StepOutput(
            page_job_id=row.page_job_id,
            step=row.step,
            step_key=row.step_key,
            attempt_id=row.attempt_id,
            output=row.output,
            vector=row.vector,
        )
        for row in rows
    ]


def of_pages(connection: Connection, page_ids: Sequence[str]) -> dict[str, list[StepOutput]]:
    """Page id → all outputs of its jobs, newest first; without the numbers of vectors."""
    found: defaultdict[str, list[StepOutput]] = defaultdict(list)
    for row in connection.execute(_OF_PAGES, {"of_pages": list(page_ids)}):
        found[row.page_id].append(
            StepOutput(
                page_job_id=row.page_job_id,
                step=row.step,
                step_key=row.step_key,
                attempt_id=row.attempt_id,
                output=row.output,
            )
        )
    return found


def store(
    connection: Connection,
    job: PageJob,
    *,
    step: str,
    step_key: str,
    attempt_id: str,
    output: Any,
    vector: bytes | None = None,
) -> None:
    """Keep the output of ``step``; a second one with the same key changes nothing."""
    take_over(
        connection,
        job,
        [
            StepOutput(
                page_job_id=job.page_job_id,
                step=step,
                step_key=step_key,
                attempt_id=attempt_id,
                output=output,
                vector=vector,
            )
        ],
    )


def take_over(connection: Connection, job: PageJob, outputs: Iterable[StepOutput]) -> None:
    """Make ``outputs``, of whichever page job, those of ``job``."""
    for found in outputs:
        connection.execute(
            _TAKE_OVER,
            {
                "page_job_id": job.page_job_id,
                "step": found.step,
                "page_id": job.page_id,
                "step_key": found.step_key,
                "attempt_id": found.attempt_id,
                "output": found.output,
                "output_hash": digest("output", found.output),
                "vector": found.vector,
            },
        )


_OF_PAGE = (
    select(step_outputs)
    .where(step_outputs.c.page_id == bindparam("of_page"))
    .order_by(step_outputs.c.created_at.desc())
)
_OF_PAGES = (
    select(
        step_outputs.c.page_id,
        step_outputs.c.page_job_id,
        step_outputs.c.step,
        step_outputs.c.step_key,
        step_outputs.c.attempt_id,
        step_outputs.c.output,
    )
    .where(step_outputs.c.page_id == any_(bindparam("of_pages", type_=ARRAY(Text))))
    .order_by(step_outputs.c.created_at.desc())
)
_TAKE_OVER = upsert(step_outputs).on_conflict_do_nothing()
