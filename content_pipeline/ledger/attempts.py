"""Attempts: one row for every try of a paid or outward call, failed and uncertain ones too.

What belongs here: opening an attempt (the intent), saving the raw answer, closing it with what it
came to. The id of an attempt is derived, so that a repeated intent is the same attempt.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Float, Row, Text, bindparam, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.generation_settings import GenerationAPI
from content_pipeline.core.identity import digest
from content_pipeline.core.ports import RawResponse, Reading
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import (
    AnswerSource,
    AttemptKind,
    AttemptState,
    attempt_responses,
    attempts,
    seconds_from_now,
    spend,
)

PUBLISH_STEP = "publish"
"""The step of a publish attempt; a paid attempt has the name of its step of the chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt as far as a step needs it."""

    attempt_id: str
    number: int
    step: str
    answer_by_s: float | None
    """Seconds from now until no answer can come any more; negative when that time has passed."""
    api: str = GenerationAPI.CHAT
    """Through which it was sent."""
    kept_as: str | None = None
    """The id by which its answer can be asked for, where the provider gave one."""
    raw: RawResponse | None = field(default=None, repr=False)


def attempt_id(page_job_id: str, kind: AttemptKind, number: int) -> str:
    """The id of the ``number``-th attempt of a kind on a page job."""
    return digest("attempt", page_job_id, kind, number)


def next_number(connection: Connection, page_job_id: str, kind: AttemptKind) -> int:
    """The number of the attempt that would be opened now; 1 for the first."""
    newest: int | None = connection.execute(
        _NEWEST_NUMBER, {"of_job": page_job_id, "of_kind": kind}
    ).scalar_one()
    return (newest or 0) + 1


_NEWEST_NUMBER = select(func.max(attempts.c.number)).where(
    attempts.c.page_job_id == bindparam("of_job"), attempts.c.kind == bindparam("of_kind")
)


def open_attempt(
    connection: Connection,
    job: PageJob,
    kind: AttemptKind,
    *,
    number: int,
    worker: str,
    run_id: str | None,
    step: str = PUBLISH_STEP,
    model: str | None = None,
    api: str | None = None,
    effect_key: str | None = None,
    answer_within_s: float | None = None,
    prompt_bytes: int | None = None,
) -> str:
    """Record the intent of a call; the id of the attempt is returned."""
    identifier = attempt_id(job.page_job_id, kind, number)
    connection.execute(
        _OPEN,
        {
            "attempt_id": identifier,
            "page_job_id": job.page_job_id,
            "kind": kind,
            "step": step,
            "number": number,
            "epoch": job.epoch,
            "state": AttemptState.OPEN,
            "worker": worker,
            "run_id": run_id,
            "effect_key": effect_key,
            "generation_version": job.generation_version,
            "input_hash": job.input_hash,
            "revision": job.revision,
            "model": model,
            "api": api,
            "answer_within_s": answer_within_s,
            "prompt_bytes": prompt_bytes,
        },
    )
    return identifier


_OPEN = insert(attempts).values(
    answer_by=seconds_from_now(bindparam("answer_within_s", type_=Float))
)


def accept(connection: Connection, identifier: str, kept_as: str) -> None:
    """Keep the id by which the provider will hand out the answer. Needs no lease, like an answer.

    An attempt that was settled meanwhile has it already or needs it no more.
    """
    connection.execute(_ACCEPT, {"accepted": identifier, "kept_as": kept_as})


_ACCEPT = (
    update(attempts)
    .where(attempts.c.attempt_id == bindparam("accepted"), attempts.c.response_id.is_(None))
    .values(response_id=bindparam("kept_as"))
)


def save_response(
    connection: Connection,
    identifier: str,
    raw: RawResponse,
    source: AnswerSource = AnswerSource.CALL,
) -> None:
    """Keep a paid answer as it came. Needs no lease: even a late answer is evidence."""
    connection.execute(
        _SAVE,
        {
            "attempt_id": identifier,
            "source": source,
            "http_status": raw.status,
            "headers": dict(raw.headers),
            "body": raw.body,
        },
    )


_SAVE = upsert(attempt_responses).on_conflict_do_nothing()


def newest(connection: Connection, page_job_id: str, kind: AttemptKind) -> Attempt | None:
    """The newest attempt of ``kind``, with its raw answer when one was saved."""
    row = connection.execute(
        select(
            attempts.c.attempt_id,
            attempts.c.number,
            attempts.c.step,
            attempts.c.api,
            attempts.c.response_id,
            func.extract("epoch", attempts.c.answer_by - func.clock_timestamp()).label("left_s"),
            attempt_responses.c.http_status,
            attempt_responses.c.headers,
            attempt_responses.c.body,
        )
        .outerjoin(attempt_responses, attempt_responses.c.attempt_id == attempts.c.attempt_id)
        .where(attempts.c.page_job_id == page_job_id, attempts.c.kind == kind)
        # "look_up" before "call": it was asked for because the other was lost or unreadable
        .order_by(attempts.c.number.desc(), attempt_responses.c.source.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    raw = None
    if row.body is not None:
        raw = RawResponse(status=row.http_status, headers=row.headers, body=bytes(row.body))
    return Attempt(
        attempt_id=row.attempt_id,
        number=row.number,
        step=row.step,
        answer_by_s=None if row.left_s is None else float(row.left_s),
        api=row.api or GenerationAPI.CHAT,
        kept_as=row.response_id if row.api == GenerationAPI.RESPONSES else None,
        raw=raw,
    )


def _finish(connection: Connection, identifier: str, values: dict[str, Any]) -> None:
    connection.execute(_FINISH, {"finishing": identifier, "answered_model": None, **values})


_FINISH = (
    update(attempts)
    .where(attempts.c.attempt_id == bindparam("finishing"))
    .values(
        model=func.coalesce(bindparam("answered_model", type_=Text), attempts.c.model),
        finished_at=func.clock_timestamp(),
        latency_s=func.coalesce(
            attempts.c.latency_s,
            func.extract("epoch", func.clock_timestamp() - attempts.c.started_at),
        ),
    )
)
"""Sets what it is executed with as well: SQLAlchemy compiles it once for each set of columns."""


def _failure_values(failure: Failure) -> dict[str, Any]:
    values = {
        "failure_class": failure.failure_class,
        "failure_message": failure.message,
        "failure_explanation": failure.explanation,
        "failure_code": failure.code,
        "failure_type": failure.type,
        "http_status": failure.http_status,
    }
    return values | ({"request_id": failure.request_id} if failure.request_id else {})


def succeed(
    connection: Connection,
    identifier: str,
    *,
    revision: int | None,
    output_hash: str,
    recovered: bool = False,
    reading: Reading | None = None,
) -> None:
    """The attempt brought an output (and ``revision``, if it completed one).

    ``recovered``: through asking afterwards.
    """
    _finish(
        connection,
        identifier,
        {
            "state": AttemptState.SUCCEEDED,
            "revision": revision,
            "output_hash": output_hash,
            "recovered": recovered,
            "failure_class": None,
            "failure_message": None,
            "failure_explanation": None,
            **_reading_values(reading),
        },
    )


def fail(
    connection: Connection, identifier: str, failure: Failure, *, reading: Reading | None = None
) -> None:
    """The attempt is known to have brought nothing usable; ``reading``: of a paid answer."""
    values = {"state": AttemptState.FAILED, **_reading_values(reading), **_failure_values(failure)}
    _finish(connection, identifier, values)


def leave_uncertain(connection: Connection, identifier: str, failure: Failure) -> None:
    """Nobody knows (yet) whether the attempt took effect."""
    _finish(connection, identifier, {"state": AttemptState.UNCERTAIN, **_failure_values(failure)})


def _reading_values(reading: Reading | None) -> dict[str, Any]:
    """What a paid answer says of itself: ids, model and tokens."""
    if reading is None:
        return {}
    values: dict[str, Any] = {
        "request_id": reading.request_id,
        "response_id": reading.response_id,
        "answered_model": reading.model,
    }
    usage = reading.usage
    if usage is not None:
        values |= {
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "output_tokens": usage.output_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "service_tier": usage.service_tier,
        }
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTries:
    """Failed and uncertain tries of one class."""

    count: int
    since_s: float
    """Seconds since the first of them failed; 0 without any."""


def failed_tries(
    connection: Connection, job: PageJob, kind: AttemptKind, failure_class: FailureClass
) -> FailedTries:
    """The tries of a class that failed in the job's epoch and its newest step."""
    newest_step = (
        select(attempts.c.step)
        .where(attempts.c.page_job_id == job.page_job_id, attempts.c.kind == kind)
        .order_by(attempts.c.number.desc())
        .limit(1)
    )
    since = func.clock_timestamp() - func.min(attempts.c.finished_at)
    row = connection.execute(
        select(func.count().label("tries"), func.extract("epoch", since).label("since_s"))
        .select_from(attempts)
        .where(attempts.c.page_job_id == job.page_job_id, attempts.c.kind == kind)
        .where(attempts.c.step == newest_step.scalar_subquery())
        .where(attempts.c.epoch == job.epoch, attempts.c.failure_class == failure_class)
        .where(attempts.c.state.in_((AttemptState.FAILED, AttemptState.UNCERTAIN)))
    ).one()
    return FailedTries(count=row.tries, since_s=float(row.since_s or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """The attempts of one kind since the job was last repaired or wanted."""

    count: int
    left_open: tuple[str, ...]
    """Ids of those whose worker is gone, when the caller holds the page."""


def of_epoch(connection: Connection, job: PageJob, kind: AttemptKind) -> Tries:
    """The attempts of ``kind`` in the job's epoch."""
    rows = connection.execute(
        select(attempts.c.attempt_id, attempts.c.state)
        .where(attempts.c.page_job_id == job.page_job_id, attempts.c.kind == kind)
        .where(attempts.c.epoch == job.epoch)
    ).all()
    left_open = tuple(row.attempt_id for row in rows if row.state == AttemptState.OPEN)
    return Tries(count=len(rows), left_open=left_open)


def of_jobs(connection: Connection, page_job_ids: Iterable[str]) -> list[Row[Any]]:
    """All attempts of some page jobs with what they cost, oldest first."""
    cost = func.coalesce(spend.c.settled_usd, spend.c.reserved_usd, 0).label("usd")
    return list(
        connection.execute(
            select(attempts, cost, spend.c.state.label("spend_state"))
            .outerjoin(spend, spend.c.attempt_id == attempts.c.attempt_id)
            .where(attempts.c.page_job_id.in_(list(page_job_ids)))
            .order_by(attempts.c.page_job_id, attempts.c.started_at, attempts.c.number)
        )
    )
