"""Paid calls for tests of money: made through the ledger's own functions, whatever became of them.

What belongs here: short ways to attempts and spend of a page job, and to a past for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection, NullPool, create_engine, make_url, text

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.money import Usage
from content_pipeline.core.ports import Reading
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, jobs, leases, spend
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline_tests.ledger.wanting import AMPLE, job_in, move_once, reserved

USD = Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One paid call as it may have gone."""

    end: str
    """``ok``, ``open``, ``uncalled``, ``uncertain``, ``maybe`` (perhaps billed) or a class."""
    step: str = "article"
    model: str = "gpt-5-mini"
    worst_usd: str = "0.5"
    cost_usd: str = "0.2"
    tokens: int = 100


def make(ledger: Ledger, site: str, topic: str, calls: Sequence[Call]) -> None:
    """A page job with ``calls``, one after the other; the last one may stay open."""
    selection = Selection(site=site, topics=(topic,))
    with ledger.begin() as connection:
        (claim,) = leases.claim_due(connection, selection, most=1, worker="w", lease_s=60)
        job = jobs.load(connection, claim.page_job_id)
        for number, call in enumerate(calls, start=1):
            identifier = attempts.attempt_id(job.page_job_id, AttemptKind.GENERATE, number)
            spend.reserve(
                connection,
                attempt_id=identifier,
                page_job_id=job.page_job_id,
                site=site,
                worst_case_usd=USD(call.worst_usd),
                caps=AMPLE,
            )
            if call.end == "uncalled":
                continue
            attempts.open_attempt(
                connection,
                job,
                AttemptKind.GENERATE,
                number=number,
                worker="w",
                run_id=None,
                step=call.step,
                model=call.model,
            )
            finish(connection, identifier, call)


def lose_call(ledger: Ledger, site: str, topic: str, usd: str) -> None:
    """A page job whose paid call was sent, and whose answer nobody got."""
    job, lease = job_in(ledger, site, PageJobState.GENERATING, topic)
    identifier = reserved(ledger, job, 1, usd)
    failure = Failure(failure_class=FailureClass.UNCERTAIN, message="lost")
    with ledger.fenced(lease) as connection:
        attempts.open_attempt(
            connection, job, AttemptKind.GENERATE, number=1, worker="w", run_id=None
        )
        attempts.leave_uncertain(connection, identifier, failure)
        spend.keep_as_uncertain(connection, identifier)
        move_once(connection, job, lease, PageJobState.GENERATION_UNCERTAIN, failure=failure)


def finish(connection: Connection, identifier: str, call: Call) -> None:
    usage = Usage(input_tokens=call.tokens, output_tokens=2 * call.tokens)
    reading = Reading(
        text=None,
        usage=usage,
        model=call.model,
        response_id=None,
        request_id=None,
        finish_reason=None,
        failure=None,
    )
    match call.end:
        case "open":
            return
        case "ok":
            attempts.succeed(
                connection, identifier, revision=None, output_hash="h", reading=reading
            )
            spend.settle(connection, identifier, USD(call.cost_usd))
        case "uncertain":
            failure = Failure(failure_class=FailureClass.UNCERTAIN, message="lost")
            attempts.leave_uncertain(connection, identifier, failure)
            spend.keep_as_uncertain(connection, identifier)
        case "maybe":
            failure = Failure(failure_class=FailureClass.TRANSIENT, message="500")
            attempts.fail(connection, identifier, failure)
            spend.keep_as_uncertain(connection, identifier)
        case "bad_output":
            failure = Failure(failure_class=FailureClass.BAD_OUTPUT, message="cut")
            attempts.fail(connection, identifier, failure, reading=reading)
            spend.settle(connection, identifier, USD(call.cost_usd))
        case name:
            failure = Failure(failure_class=FailureClass(name), message="refused")
            attempts.fail(connection, identifier, failure)
            spend.release(connection, identifier)


_OF_SITE = "page_job_id IN (SELECT page_job_id FROM content_pipeline.page_jobs WHERE site = :site)"

_AGING = (
    "UPDATE content_pipeline.spend SET day = day - CAST(:days AS integer),"
    " created_at = created_at - make_interval(days => :days) WHERE site = :site",
    "UPDATE content_pipeline.transitions SET at = at - make_interval(days => :days)"
    f" WHERE {_OF_SITE}",
    "UPDATE content_pipeline.attempts SET"
    " started_at = started_at - make_interval(days => :days),"
    f" finished_at = finished_at - make_interval(days => :days) WHERE {_OF_SITE}",
    "UPDATE content_pipeline.page_jobs SET"
    " next_attempt_at = next_attempt_at - make_interval(days => :days),"
    " finished_at = finished_at - make_interval(days => :days) WHERE site = :site",
)


def age(ledger_url: str, site: str, days: int) -> None:
    """Let everything of ``site`` have happened ``days`` days earlier, the append-only log too."""
    server = create_engine(make_url(ledger_url).set(username="postgres"), poolclass=NullPool)
    with server.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))  # no triggers
        for statement in _AGING:
            connection.execute(text(statement), {"site": site, "days": days})
    server.dispose()
