"""Whatever workers, people and tables do in whatever order: only legal histories come to be."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Connection, func, select, update

from content_pipeline.core.errors import BudgetExhausted, LeaseLost
from content_pipeline.core.states import FINAL, MOVES, WORKABLE, PageJobState
from content_pipeline.ledger import attempts, jobs, leases, resting, spend
from content_pipeline.ledger.database import Lease, Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import AttemptKind, budgets, page_jobs, transitions
from content_pipeline.ledger.schema import leases as lease_rows
from content_pipeline.ledger.schema import spend as spend_rows
from content_pipeline.ledger.spend import Caps
from content_pipeline_tests.ledger.wanting import (
    FAILED,
    WAYS,
    move_once,
    rows_where,
    take_in,
)
from content_pipeline_tests.operations.small_site import rows_of, settings_of

S = PageJobState
TOPICS = ("t0", "t1")
CAPS = Caps(page_usd=Decimal("0.5"), site_day_usd=Decimal("0.8"))
WORST_CASE = Decimal("0.2")
HAPPY = dict(pairwise(WAYS[S.PUBLISHED]))

topics = st.sampled_from(TOPICS)
workers = st.sampled_from(["worker 1", "worker 2"])
ON = -1
TURNS = st.lists(st.sampled_from([ON] * 8 + list(range(9))), min_size=2, max_size=9)
"""Mostly the move of a page that meets no trouble, else the so-manieth of all allowed ones.

Every rule ends with some: the library leaves out whole rules at random, and a rule for working
alone would be missing from half of all histories.
"""


@dataclass(slots=True)
class Hand:
    """What a worker believes to hold: perhaps long lost, perhaps read an age ago."""

    job: PageJob
    lease: Lease


class Histories(RuleBasedStateMachine):
    """Two workers that lose leases, act on stale reads and try forbidden moves; a busy table."""

    ledger: Ledger
    next_site: Callable[[], str]
    start: PageJobState

    @initialize(other=st.sampled_from(PageJobState), turns=TURNS)
    def begin(self, other: PageJobState, turns: list[int]) -> None:
        self.site = self.next_site()
        self.rivers = dict.fromkeys(TOPICS, "Aare")
        self.hands: dict[tuple[str, str], Hand] = {}
        self._take_in()
        for topic, start in zip(TOPICS, (self.start, other), strict=True):
            hand = self._claims("worker 1", topic)
            assert hand is not None
            assert all(self._moves(hand, state) for state in WAYS[start][1:])
            self._work(topic, "worker 1", turns)

    def _take_in(self) -> None:
        rows = [row | {"river": self.rivers[row["id"]]} for row in rows_of(len(TOPICS))]
        take_in(self.ledger, settings_of(self.site), rows)

    # --- the table and people ------------------------------------------------------------------

    @rule(
        topic=topics, worker=workers, turns=TURNS, river=st.sampled_from(["Aare", "Rhine", "Inn"])
    )
    def the_table_changes(self, topic: str, worker: str, turns: list[int], river: str) -> None:
        self.rivers[topic] = river
        self._take_in()
        self._work(topic, worker, turns)

    @rule(topic=topics, worker=workers, turns=TURNS)
    def a_person_cancels(self, topic: str, worker: str, turns: list[int]) -> None:
        with self.ledger.begin() as connection:
            connection.execute(
                update(page_jobs)
                .where(page_jobs.c.site == self.site, page_jobs.c.topic_key == topic)
                .where(page_jobs.c.state.in_(WORKABLE))
                .values(cancel_requested_at=func.now())
            )
        self._work(topic, worker, turns)

    @rule(topic=topics, worker=workers, turns=TURNS, next_epoch=st.booleans())
    def a_person_repairs(self, topic: str, worker: str, turns: list[int], next_epoch: bool) -> None:
        for row in rows_where(self.ledger, page_jobs, site=self.site, topic_key=topic):
            with self.ledger.begin() as connection:
                resting.move_resting(
                    connection,
                    row["page_job_id"],
                    sources=[S.FAILED_TERMINAL, S.DEAD_LETTERED, S.CANCELLED],
                    worker="a person",
                    next_epoch=next_epoch,
                )
        self._work(topic, worker, turns)

    # --- workers -------------------------------------------------------------------------------

    def _work(self, topic: str, worker: str, turns: list[int]) -> None:
        """Some moves in a row, mostly those of a page that meets no trouble."""
        for turn in turns:
            hand = self.hands.get((worker, topic)) or self._claims(worker, topic)
            if hand is not None and not self._moves(hand, self._next(hand, turn)):
                del self.hands[worker, topic]

    def _claims(self, worker: str, topic: str) -> Hand | None:
        selection = Selection(site=self.site, topics=(topic,))
        with self.ledger.begin() as connection:
            for claim in leases.claim_due(connection, selection, most=1, worker=worker, lease_s=60):
                job = jobs.load(connection, claim.page_job_id)
                self.hands[worker, topic] = Hand(job=job, lease=claim.lease)
        return self.hands.get((worker, topic))

    def _next(self, hand: Hand, turn: int) -> PageJobState | None:
        state = hand.job.state
        if turn == ON and state in HAPPY:
            return HAPPY[state]
        allowed = sorted(
            to
            for source, to in MOVES
            if source is state
            and state not in FINAL
            # What is kept after a wait is the draft, if there is one.
            and (to is not S.READY_TO_PUBLISH or hand.job.revision is not None)
        )
        return PageJobState(allowed[turn % len(allowed)]) if allowed else None

    def _moves(self, hand: Hand, to: PageJobState | None) -> bool:
        """Make the move with the money and the attempts that belong to it."""
        if to is None:
            return False
        try:
            with self.ledger.fenced(hand.lease) as connection:
                source = hand.job
                moved = move_once(connection, source, hand.lease, to)
                self._books(connection, hand.lease, source, to)
        except (LeaseLost, BudgetExhausted):
            return False
        hand.job = moved
        return True

    def _books(self, connection: Connection, lease: Lease, job: PageJob, to: PageJobState) -> None:
        number = attempts.next_number(connection, job.page_job_id, AttemptKind.GENERATE)
        if to is S.RESERVED:
            spend.reserve(
                connection,
                attempt_id=attempts.attempt_id(job.page_job_id, AttemptKind.GENERATE, number),
                page_job_id=job.page_job_id,
                site=job.site,
                worst_case_usd=WORST_CASE,
                caps=CAPS,
            )
        elif to is S.GENERATING:
            attempts.open_attempt(
                connection,
                job,
                AttemptKind.GENERATE,
                number=number,
                worker=lease.worker,
                run_id=None,
            )
        elif job.state is S.GENERATING:
            newest = attempts.attempt_id(job.page_job_id, AttemptKind.GENERATE, number - 1)
            if to is S.GENERATED:
                spend.settle(connection, newest, Decimal("0.01") * number)
                attempts.succeed(connection, newest, revision=1, output_hash="h")
            elif to is S.GENERATION_UNCERTAIN:
                spend.keep_as_uncertain(connection, newest)
                attempts.leave_uncertain(connection, newest, FAILED)
            else:
                spend.release(connection, newest)
                attempts.fail(connection, newest, FAILED)

    @rule(topic=topics, worker=workers, turns=TURNS)
    def a_lease_runs_out(self, topic: str, worker: str, turns: list[int]) -> None:
        for hand in self.hands.values():
            if hand.job.topic_key == topic:
                with self.ledger.begin() as connection:
                    connection.execute(
                        update(lease_rows)
                        .where(lease_rows.c.token == hand.lease.token)
                        .values(expires_at=func.clock_timestamp())
                    )
        self._work(topic, worker, turns)

    @rule(topic=topics, worker=workers, turns=TURNS)
    def lets_go(self, topic: str, worker: str, turns: list[int]) -> None:
        hand = self.hands.get((worker, topic))
        if hand is not None:  # and keeps believing to hold it
            with self.ledger.begin() as connection:
                leases.release(connection, hand.lease)
        self._work(topic, worker, turns)

    @rule(topic=topics, worker=workers, to=st.sampled_from(PageJobState))
    def tries_what_is_forbidden(self, topic: str, worker: str, to: PageJobState) -> None:
        hand = self.hands.get((worker, topic))
        if hand is None or (hand.job.state, to) in MOVES:
            return
        try:
            with self.ledger.fenced(hand.lease) as connection:
                jobs.move(connection, hand.job, to, lease=hand.lease, failure=FAILED, revision=1)
        except (ValueError, LeaseLost):
            return
        raise AssertionError(f"{hand.job.state} became {to}")

    # --- what must hold after every step -------------------------------------------------------

    @invariant()
    def the_budget_is_the_sum_of_the_rows_and_holds(self) -> None:
        if not hasattr(self, "site"):
            return
        with self.ledger.begin() as connection:
            committed = connection.execute(
                select(func.coalesce(func.sum(budgets.c.committed_usd), 0)).where(
                    budgets.c.scope.like(f"site:{self.site}:day:%")
                )
            ).scalar_one()
        of_job: Counter[str] = Counter()
        set_aside: Counter[str] = Counter()
        for row in rows_where(self.ledger, spend_rows, site=self.site):
            settled = row["settled_usd"]
            of_job[row["page_job_id"]] += row["reserved_usd"] if settled is None else settled
            set_aside[row["page_job_id"]] += row["state"] == "reserved"
        assert committed == sum(of_job.values()) <= CAPS.site_day_usd
        assert all(usd <= CAPS.page_usd for usd in of_job.values())
        # Money is set aside exactly for a call that may come or is out.
        for row in rows_where(self.ledger, page_jobs, site=self.site):
            expected = row["state"] in (S.RESERVED, S.GENERATING)
            assert set_aside[row["page_job_id"]] == expected

    # --- what must hold in the end, since nothing of it can be taken back -----------------------

    def teardown(self) -> None:
        if not hasattr(self, "site"):
            return
        published: Counter[str] = Counter()
        for row in rows_where(self.ledger, page_jobs, site=self.site):
            log = sorted(
                rows_where(self.ledger, transitions, page_job_id=row["page_job_id"]),
                key=lambda entry: entry["sequence"],
            )
            states = [PageJobState(entry["to_state"]) for entry in log]
            assert [entry["sequence"] for entry in log] == list(range(1, row["sequence"] + 1))
            assert [entry["from_state"] for entry in log] == [None, *states[:-1]]
            assert all(step in MOVES for step in pairwise(states))
            assert (states[0], states[-1]) == (S.QUEUED, row["state"])
            assert (row["finished_at"] is not None) == (states[-1] in FINAL)
            published[row["page_id"]] += row["state"] == S.PUBLISHED
        assert set(published.values()) <= {0, 1}


@pytest.mark.parametrize("start", PageJobState)
def test_only_legal_histories_come_to_be(
    start: PageJobState, ledger: Ledger, site_name: str
) -> None:
    """Each begins with one page in ``start`` and another in any state."""
    numbers = iter(range(1_000_000))
    machine = type(
        "Histories",
        (Histories,),
        {
            "ledger": ledger,
            "next_site": lambda _: f"{site_name}_{next(numbers)}",
            "start": start,
        },
    )
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=5,
            stateful_step_count=8,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
