"""The lane: many pages at once, each on its own through generate, validate and publish.

What belongs here: claiming what is due, a pool of threads that walk one page each, the heartbeat
that keeps their leases, and short waits. No page waits for another: 99 pages proceed while the
slowest call is out. Long waits hold no process; the lane ends and a later one goes on.
"""

import logging
import threading
import time
import traceback
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, SQLAlchemyError

from content_pipeline.core.errors import ContentPipelineError, LeaseLost
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import MOVES, PageJobState, states_of
from content_pipeline.core.throttling import Outcome
from content_pipeline.ledger import (
    budget_waits,
    call_limits,
    draft_line,
    jobs,
    leases,
    publish_rate,
    routes,
    write_offs,
)
from content_pipeline.ledger.database import Lease
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Claim, Selection, Service
from content_pipeline.operations.news import meet_hooks
from content_pipeline.operations.repeating import repeated
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.steps import walk

log = logging.getLogger(__name__)

PUBLISHING_THREADS = 4
"""Beside one thread per call in flight: pages whose answer has come are validated and published
by these, so that a finished call is at once followed by the next. A site that says how many
requests its CMS is sent at once has that many instead."""

POLL_S = 0.25
"""How often a lane looks for due pages while it waits for its own or another worker's."""

BREATH_S = 0.02
"""Between two looks at pages that are due and that another worker is just claiming."""

ASIDE_S = 30.0
"""Before a page that our own code failed on with a call unsettled is looked at again."""

_UNSETTLED = frozenset(
    {PageJobState.GENERATING, PageJobState.GENERATION_UNCERTAIN, PageJobState.PUBLISHING}
)
"""A call may have been paid or a page written: a person's retry would not ask about it first. One
in ``publish_uncertain`` would, since every publish begins with a look."""

HEARTBEATS_PER_LEASE = 3
"""Two beats may fail before the lease runs out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """One page job that came to rest in this lane."""

    page_job_id: str
    topic_key: str
    state: PageJobState


@dataclass(slots=True)
class _Held:
    """The leases of this lane, shared with its heartbeat and its threads."""

    leases: dict[int, Lease] = field(default_factory=dict)
    walked: list[Lease] = field(default_factory=list)
    """Of pages whose walk is over: to be let go, many at once."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, lease: Lease) -> None:
        with self.lock:
            self.leases[lease.token] = lease

    def drop(self, lease: Lease) -> bool:
        """Forget ``lease``; False when it was forgotten already."""
        with self.lock:
            return self.leases.pop(lease.token, None) is not None

    def end_walk(self, lease: Lease) -> None:
        """Keep ``lease`` alive no longer."""
        with self.lock:
            self.leases.pop(lease.token, None)
            self.walked.append(lease)

    def take_walked(self) -> list[Lease]:
        """Those to let go now."""
        with self.lock:
            walked, self.walked = self.walked, []
            return walked

    def snapshot(self) -> list[Lease]:
        with self.lock:
            return list(self.leases.values())


def advance(
    runtime: SiteRuntime, selection: Selection, *, stop: threading.Event | None = None
) -> Iterator[Settled]:
    """Work on ``selection`` until nothing of it is due soon; each page as it comes to rest.

    A page may come to rest more than once (it waits, then goes on). Set ``stop`` to begin no new
    page; those at work are finished. Pages behind a closed circuit wait without a call.
    """
    stop = stop or threading.Event()
    meet_hooks(runtime)
    with runtime.ledger.begin() as connection:
        budget_waits.wake(connection, selection, runtime.caps)
        publish_rate.wake(connection, selection, runtime.site.schedule.rate)
        draft_line.wake(connection, selection, runtime.site.schedule.rate)
        days = runtime.site.budgets.write_off_after_days
        write_offs.write_off(connection, selection.site, after_days=days)
    held = _Held()
    at_work: dict[Future[PageJob | None], Claim] = {}
    with (
        _letting_go(runtime, held),
        _heartbeat(runtime, held),
        ThreadPoolExecutor(_threads(runtime), thread_name_prefix="page") as pool,
    ):
        try:
            yield from _work(runtime, selection, pool, held, at_work, stop)
        finally:
            # An exception above must not leave pages to be walked with nobody to report them.
            for future in at_work:
                future.cancel()
    _hand_over(runtime)


def _threads(runtime: SiteRuntime) -> int:
    publishing = runtime.site.lane.cms_requests_at_once or PUBLISHING_THREADS
    return runtime.site.generation.in_flight + publishing


def _work(
    runtime: SiteRuntime,
    selection: Selection,
    pool: ThreadPoolExecutor,
    held: _Held,
    at_work: dict[Future[PageJob | None], Claim],
    stop: threading.Event,
) -> Iterator[Settled]:
    threads = _threads(runtime)
    patient_until = time.monotonic() + runtime.site.lane.patience_s
    last_move: dict[str, int] = {}
    while True:
        ends = stop.is_set() or runtime.given_up.is_set()
        if not ends and len(at_work) < threads:
            for claim, claimed in _claim(runtime, selection, threads - len(at_work)):
                held.add(claim.lease)
                at_work[pool.submit(_walk, runtime, selection, claim, claimed, held)] = claim
        if not at_work:
            if ends or not _wait_for_due(runtime, selection, patient_until):
                return
            continue
        done, _ = wait(at_work, timeout=POLL_S, return_when=FIRST_COMPLETED)
        _let_go(runtime, held.take_walked())
        for future in done:
            claim = at_work.pop(future)
            job = future.result()
            if job is None:
                continue
            if job.sequence > last_move.get(job.page_job_id, 0):
                # A page that is only looked at again and again must not keep a run alive.
                last_move[job.page_job_id] = job.sequence
                patient_until = time.monotonic() + runtime.site.lane.patience_s
            yield Settled(page_job_id=job.page_job_id, topic_key=claim.topic_key, state=job.state)


def _claim(runtime: SiteRuntime, selection: Selection, most: int) -> list[tuple[Claim, PageJob]]:
    """What may be worked on now, with each page job as it stands."""
    outcomes = runtime.calls.outcomes()
    with runtime.ledger.begin() as connection:
        claims, out = _claim_due(connection, runtime, selection, most, outcomes)
        found = jobs.load_all(connection, [claim.page_job_id for claim in claims]) if claims else {}
    if out is not None:
        runtime.calls.hand_over(outcomes)
        runtime.calls.count(out)
    return [(claim, found[claim.page_job_id]) for claim in claims]


def _claim_due(
    connection: Connection,
    runtime: SiteRuntime,
    selection: Selection,
    most: int,
    outcomes: Sequence[Outcome],
) -> tuple[list[Claim], int | None]:
    """Pages on their way out first, then new calls while some are free; and how many are out then.

    The routes are asked in the claiming transaction, so pauses, circuits and the number of calls at
    once hold over all processes. None: no calls were asked for, so nothing of ``outcomes`` was
    learned.
    """

    def claim(services: Collection[Service], at_most: int) -> list[Claim]:
        return leases.claim_due(
            connection,
            selection,
            services=services,
            most=at_most,
            worker=runtime.worker,
            lease_s=runtime.site.lane.lease_s,
        )

    services = {Service.NONE, Service.CMS, Service.ASK}
    closed = routes.closed(connection, (runtime.cms_route, runtime.model_route))
    if runtime.cms_route in closed:
        services.remove(Service.CMS)
    if runtime.model_route in closed:
        services.remove(Service.ASK)
    claims = claim(services, most)
    if Service.ASK not in services or len(claims) == most:
        return claims, None
    found = call_limits.capacity(
        connection,
        runtime.model_route,
        most_calls=runtime.site.generation.in_flight_everywhere,
        outcomes=outcomes,
    )
    calls = claim((Service.CALL,), min(found.free, most - len(claims))) if found.free else []
    return claims + calls, found.out + len(calls)


def _hand_over(runtime: SiteRuntime) -> None:
    """What became of the last calls, after which nothing is claimed any more."""
    outcomes = runtime.calls.outcomes()
    if outcomes:
        with runtime.ledger.begin() as connection:
            call_limits.learn(connection, runtime.model_route, outcomes)
        runtime.calls.hand_over(outcomes)


def _wait_for_due(runtime: SiteRuntime, selection: Selection, patient_until: float) -> bool:
    """Sleep a moment when something becomes due soon enough; False when nothing does."""
    with runtime.ledger.begin() as connection:
        outlook = leases.outlook(
            connection,
            selection,
            model_wait_s=routes.wait_s(connection, runtime.model_route),
            cms_wait_s=routes.wait_s(connection, runtime.cms_route),
        )
    if outlook.wait_s is None or time.monotonic() + outlook.wait_s > patient_until:
        return False
    time.sleep(min(max(outlook.wait_s, BREATH_S), POLL_S))
    return True


def _walk(
    runtime: SiteRuntime, selection: Selection, claim: Claim, job: PageJob, held: _Held
) -> PageJob | None:
    """Walk one claimed page; None when another worker took it over."""
    try:
        return walk(runtime, job, claim.lease, through=states_of(selection.stages))
    except LeaseLost:
        return None
    except DataError as error:
        return _set_aside(runtime, claim, error)  # the database refuses what this page holds
    except (ContentPipelineError, SQLAlchemyError):
        raise  # nothing works without the configuration or the database
    except Exception as error:  # noqa: BLE001  # boundary: one page's fault must not stop others
        return _set_aside(runtime, claim, error)
    finally:
        held.end_walk(claim.lease)


def _set_aside(runtime: SiteRuntime, claim: Claim, error: Exception) -> PageJob | None:
    """Keep a page that our own code failed on out of the way, with the place in the log.

    Nothing paid or written is repeated: while a call is unsettled its state stands and it is looked
    at again later; otherwise a person can report and retry it.
    """
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
    # The exception's own text may hold model output, so only its type and place are kept.
    message = f"{type(error).__name__} at {place}"
    log.error("page job %s: %s", claim.page_job_id, message)
    failure = Failure(failure_class=FailureClass.INTERNAL, message=message)
    try:
        with runtime.ledger.fenced(claim.lease) as connection:
            job = jobs.load(connection, claim.page_job_id)
            if job.state is PageJobState.GENERATED:
                job = jobs.move(connection, job, PageJobState.VALIDATING, lease=claim.lease)
            to = PageJobState.FAILED_TERMINAL
            if job.state in _UNSETTLED or (job.state, to) not in MOVES:
                return jobs.postpone(connection, job, ASIDE_S, failure)
            return jobs.move(connection, job, to, lease=claim.lease, failure=failure)
    except LeaseLost:
        return None


@contextmanager
def _letting_go(runtime: SiteRuntime, held: _Held) -> Iterator[None]:
    """At the end let every lease go, those too of pages whose walk never began."""
    try:
        yield
    finally:
        _let_go(runtime, [*held.take_walked(), *held.snapshot()])


def _let_go(runtime: SiteRuntime, over: Sequence[Lease]) -> None:
    if over:
        with runtime.ledger.single() as connection:
            leases.release(connection, *over)


@contextmanager
def _heartbeat(runtime: SiteRuntime, held: _Held) -> Iterator[None]:
    """Keep the lane's leases while it works; a lease that is lost shows at the next write.

    Not for longer than a page may go without a move: a walk that hangs loses its page so.
    """
    lane = runtime.site.lane

    def beat() -> None:
        at_work = held.snapshot()
        if not at_work:
            return
        with runtime.ledger.begin() as connection:
            kept = leases.renew(
                connection, at_work, lane.lease_s, longest_hold_s=lane.longest_hold_s
            )
        for lease in at_work:
            if lease.token not in kept and held.drop(lease):
                log.warning(
                    "the lease of %s ran out, or %g s without a move are over: its walk hangs",
                    lease.resource,
                    lane.longest_hold_s,
                )

    # A beat that fails is followed by the next: a database that restarts must not cost all leases.
    with repeated(beat, every_s=lane.lease_s / HEARTBEATS_PER_LEASE, name="heartbeat"):
        yield
