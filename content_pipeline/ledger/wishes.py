"""Wishes: topics, their pages and page jobs, as rows of a topic table want them.

What belongs here: writing what is not wanted yet. Which rows may want a page is decided before, by
``intake``; of what stands already nothing is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, func

from content_pipeline.core import identity
from content_pipeline.core.site import SiteSettings
from content_pipeline.core.states import PageJobState
from content_pipeline.core.topics import Topic
from content_pipeline.ledger import deadlines, regenerations
from content_pipeline.ledger.many_rows import Row, batches, inserting
from content_pipeline.ledger.refused import Refused
from content_pipeline.ledger.resting import WANTED_AGAIN, move_resting
from content_pipeline.ledger.schema import (
    TopicStatus,
    page_jobs,
    pages,
    seconds_from_now,
    topics,
    transitions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Who asks, and for which way of making pages."""

    site: SiteSettings
    generation_version: str
    model_route: str
    requested_by: str


def want(
    connection: Connection,
    request: Request,
    accepted: Sequence[tuple[int, Topic]],
    known: Mapping[str, RowMapping],
) -> int:
    """Want the accepted topics; how many of their page jobs were not wanted before."""
    site = request.site
    changed: list[tuple[int, Topic, str]] = []
    keys = [topic.key for _, topic in accepted]
    made_anew = regenerations.newest(connection, site.site, request.generation_version, keys)
    for number, topic in accepted:
        job_id = made_anew.get((topic.key, topic.input_hash)) or identity.page_job_id(
            site.site, topic.key, topic.input_hash, request.generation_version, nonce=""
        )
        before = known.get(topic.key)
        # A wanted job can have been superseded: newer input was published while it was taken back,
        # or its topic left the table for a while.
        if (
            before is None
            or before["current_job_id"] != job_id
            or before["state"] in WANTED_AGAIN
            or before["status"] == TopicStatus.RETIRED
        ):
            changed.append((number, topic, job_id))
    page_ids = {topic.key: identity.page_id(site.site, topic.path) for _, topic, _ in changed}
    page_rows = [
        {
            "page_id": page_ids[topic.key],
            "site": site.site,
            "path": topic.path,
            "topic_key": topic.key,
        }
        for _, topic, _ in changed
    ]
    for batch in batches(page_rows):
        connection.execute(inserting(pages, batch).on_conflict_do_nothing())
    _point_topics(
        connection,
        [
            {
                "site": site.site,
                "topic_key": topic.key,
                "name": topic.name,
                "row_number": number,
                "status": TopicStatus.ACTIVE,
                "message": None,
                "page_id": page_ids[topic.key],
                "input_hash": topic.input_hash,
                "current_job_id": job_id,
            }
            for number, topic, job_id in changed
        ],
    )
    created = _create_jobs(
        connection,
        request,
        [
            _job_values(request, topic.key, job_id, topic.input_hash)
            | {
                "page_id": page_ids[topic.key],
                "state": PageJobState.QUEUED,
                "input_columns": dict(topic.columns),
            }
            for _, topic, job_id in changed
        ],
    )
    again = [job_id for _, _, job_id in changed if job_id not in created]
    deadlines.renew(connection, again)
    for job_id in again:
        move_resting(connection, job_id, sources=WANTED_AGAIN, worker=request.requested_by)
    return len(changed)


def refuse(
    connection: Connection,
    request: Request,
    refused: Sequence[Refused],
    known: Mapping[str, RowMapping],
) -> int:
    """Keep each refused topic as a failed page job that says why; how many are new."""
    site = request.site.site
    new: list[tuple[Refused, str, str]] = []
    for item in refused:
        refusal_hash = identity.digest("refused", item.failure.message)
        job_id = identity.page_job_id(
            site, item.key, refusal_hash, request.generation_version, nonce=""
        )
        before = known.get(item.key)
        if before is None or before["current_job_id"] != job_id:
            new.append((item, refusal_hash, job_id))
    _point_topics(
        connection,
        [
            {
                "site": site,
                "topic_key": item.key,
                "name": item.name,
                "row_number": item.row_number,
                "status": TopicStatus.REJECTED,
                "message": item.failure.message,
                "input_hash": refusal_hash,
                "current_job_id": job_id,
            }
            for item, refusal_hash, job_id in new
        ],
    )
    _create_jobs(
        connection,
        request,
        [
            _job_values(request, item.key, job_id, refusal_hash)
            | {
                "page_id": None,
                "state": PageJobState.FAILED_TERMINAL,
                "input_columns": {},
                "failure_class": item.failure.failure_class,
                "failure_message": item.failure.message,
            }
            for item, refusal_hash, job_id in new
        ],
        finished=True,
    )
    return len(new)


def _job_values(request: Request, topic_key: str, job_id: str, input_hash: str) -> dict[str, Any]:
    return {
        "page_job_id": job_id,
        "site": request.site.site,
        "topic_key": topic_key,
        "input_hash": input_hash,
        "generation_version": request.generation_version,
        "owner": request.site.owner,
        "requested_by": request.requested_by,
    }


def _point_topics(connection: Connection, rows: Sequence[Row]) -> None:
    """Insert or update topics; a column that ``rows`` leave out keeps what it holds."""
    for batch in batches(rows):
        statement = inserting(topics, batch)
        changed = [name for name in batch[0] if name not in ("site", "topic_key")]
        statement = statement.on_conflict_do_update(
            index_elements=[topics.c.site, topics.c.topic_key],
            set_={name: statement.excluded[name] for name in (*changed, "noted")}
            | {"updated_at": func.now()},
        )
        connection.execute(statement)


def _create_jobs(
    connection: Connection, request: Request, rows: Sequence[Row], *, finished: bool = False
) -> frozenset[str]:
    """Insert the page jobs that do not exist, each with its first transition; their ids."""
    alike = {"deadline_at": seconds_from_now(request.site.lane.page_deadline_s)}
    if finished:
        alike["finished_at"] = func.now()
    created: set[str] = set()
    for batch in batches(rows):
        statement = inserting(page_jobs, batch, **alike).on_conflict_do_nothing()
        made = connection.execute(statement.returning(page_jobs.c.page_job_id, page_jobs.c.state))
        first = [
            {
                "page_job_id": row.page_job_id,
                "sequence": 1,
                "to_state": row.state,
                "why": "asked for",
                "worker": request.requested_by,
            }
            for row in made
        ]
        if first:
            connection.execute(inserting(transitions, first))
        created |= {row["page_job_id"] for row in first}
    return frozenset(created)
