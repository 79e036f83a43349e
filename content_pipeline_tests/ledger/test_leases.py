"""Leases: every due page is claimed by one worker, and free again when that worker is gone."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, update

from content_pipeline.core.states import ALL_STAGES, FINAL, WORKABLE, PageJobState, Stage, states_of
from content_pipeline.ledger import jobs, leases
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Claim, Outlook, Selection
from content_pipeline.ledger.schema import leases as lease_rows
from content_pipeline.ledger.schema import page_jobs, seconds_from_now
from content_pipeline_tests.ledger.wanting import (
    current_job,
    job_in,
    leased,
    let_go,
    move_once,
    moved,
    rows_where,
    take_in,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of, settings_of

S = PageJobState


def claimed(
    ledger: Ledger, selection: Selection, *, most: int = 100, worker: str = "w", lease_s: float = 30
) -> list[Claim]:
    with ledger.begin() as connection:
        return leases.claim_due(connection, selection, most=most, worker=worker, lease_s=lease_s)


def pass_time(ledger: Ledger, claims: Sequence[Claim], seconds: float) -> None:
    """Let so much of the leases' time be over."""
    held = lease_rows.c.resource.in_([claim.lease.resource for claim in claims])
    earlier = lease_rows.c.expires_at - timedelta(seconds=seconds)
    with ledger.begin() as connection:
        connection.execute(update(lease_rows).where(held).values(expires_at=earlier))


def topics_of(claims: Sequence[Claim]) -> list[str]:
    return sorted(claim.topic_key for claim in claims)


def seen(ledger: Ledger, selection: Selection) -> Outlook:
    with ledger.begin() as connection:
        return leases.outlook(connection, selection)


def test_two_hundred_jobs_are_claimed_once_each_by_thirty_two_threads(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(200))
    selection = Selection(site=site_name)

    def take(worker: int) -> list[Claim]:
        mine = []
        while claims := claimed(ledger, selection, most=3, worker=f"w{worker}"):
            mine += claims
        return mine

    with ThreadPoolExecutor(32) as pool:
        taken = [claim for claims in pool.map(take, range(32)) for claim in claims]
    # A claim that saw a job locked by another found nothing and ended: the rest is claimed here.
    taken += take(99)
    assert Counter(claim.topic_key for claim in taken) == Counter({f"t{n}": 1 for n in range(200)})
    assert len({claim.lease.token for claim in taken}) == 200
    assert len({claim.lease.resource for claim in taken}) == 200


def test_two_jobs_of_one_page_are_never_held_together(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(30)
    take_in(ledger, settings_of(site_name), rows)
    take_in(ledger, settings_of(site_name), [row | {"river": "Rhine"} for row in rows])
    assert len(rows_where(ledger, page_jobs, site=site_name)) == 60

    def take(worker: int) -> list[Claim]:
        return claimed(ledger, Selection(site=site_name), most=7, worker=f"w{worker}")

    with ThreadPoolExecutor(16) as pool:
        taken = [claim for claims in pool.map(take, range(32)) for claim in claims]
    taken += claimed(ledger, Selection(site=site_name))
    assert len(taken) == len({claim.lease.resource for claim in taken}) == 30
    assert claimed(ledger, Selection(site=site_name)) == []
    first = taken[0]
    let_go(ledger, first.lease)
    (again,) = claimed(ledger, Selection(site=site_name))
    assert again.lease.resource == first.lease.resource


def test_a_page_is_free_when_its_lease_has_run_out(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(2))
    selection = Selection(site=site_name)
    held = claimed(ledger, selection, most=1, lease_s=30)
    rest = claimed(ledger, selection, lease_s=60)
    assert topics_of(held + rest) == ["t0", "t1"]
    outlook = seen(ledger, selection)
    assert outlook.unfinished == 2
    assert outlook.wait_s is not None
    assert 0 < outlook.wait_s <= 30
    pass_time(ledger, held + rest, 30)
    (taken,) = claimed(ledger, selection, worker="next")
    assert taken.topic_key == held[0].topic_key
    assert taken.lease.token > held[0].lease.token
    (row,) = rows_where(ledger, lease_rows, resource=taken.lease.resource)
    assert row["worker"] == "next"


def test_a_renewed_lease_outlives_its_first_time(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    (held,) = claimed(ledger, Selection(site=site_name), lease_s=30)
    with ledger.begin() as connection:
        assert leases.renew(connection, [held.lease], 90, longest_hold_s=600) == {held.lease.token}
    pass_time(ledger, [held], 30)
    assert claimed(ledger, Selection(site=site_name)) == []
    with ledger.begin() as connection:
        assert leases.renew(connection, [], 30, longest_hold_s=600) == frozenset()


def test_a_page_without_a_move_is_held_no_longer_than_its_site_allows(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(2))
    hangs, moves = claimed(ledger, Selection(site=site_name))
    with ledger.begin() as connection:
        connection.execute(
            update(lease_rows)
            .where(lease_rows.c.resource.in_([hangs.lease.resource, moves.lease.resource]))
            .values(acquired_at=seconds_from_now(-100))
        )
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.page_job_id == hangs.page_job_id)
            .values(updated_at=seconds_from_now(-90))
        )
    with ledger.fenced(moves.lease) as connection:
        job = jobs.load(connection, moves.page_job_id)
        jobs.move(connection, job, PageJobState.RESERVED, lease=moves.lease)
    both = [hangs.lease, moves.lease]
    with ledger.begin() as connection:
        kept = leases.renew(connection, both, 30, longest_hold_s=95)
        assert kept == {hangs.lease.token, moves.lease.token}
        kept = leases.renew(connection, both, 30, longest_hold_s=80)
        assert kept == {moves.lease.token}


def test_a_page_just_claimed_is_held_however_long_ago_it_last_moved(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    with ledger.begin() as connection:
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.site == site_name)
            .values(updated_at=seconds_from_now(-86_400))
        )
    (held,) = claimed(ledger, Selection(site=site_name))
    with ledger.begin() as connection:
        kept = leases.renew(connection, [held.lease], 30, longest_hold_s=60)
    assert kept == {held.lease.token}


def test_a_lease_let_go_is_free_at_once(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    (held,) = claimed(ledger, Selection(site=site_name))
    assert claimed(ledger, Selection(site=site_name)) == []
    let_go(ledger, held.lease)
    let_go(ledger, held.lease)
    assert topics_of(claimed(ledger, Selection(site=site_name))) == ["t0"]


def test_of_leases_let_go_together_those_of_others_are_kept(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(3))
    mine = claimed(ledger, Selection(site=site_name, topics=("t0", "t1")))
    claimed(ledger, Selection(site=site_name, topics=("t2",)))
    lost = replace(mine[0].lease, token=mine[0].lease.token - 1_000_000)
    with ledger.single() as connection:
        leases.release(connection, mine[1].lease, lost)
    free = claimed(ledger, Selection(site=site_name))
    assert [claim.topic_key for claim in free] == [mine[1].topic_key]


def test_only_selected_topics_are_claimed(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(6))
    chosen = Selection(site=site_name, topics=("t1", "t4", "no such topic"))
    assert seen(ledger, chosen) == Outlook(unfinished=2, wait_s=0.0)
    assert topics_of(claimed(ledger, chosen)) == ["t1", "t4"]
    nothing = Selection(site=site_name, topics=())
    assert claimed(ledger, nothing) == []
    assert seen(ledger, nothing) == Outlook(unfinished=0, wait_s=None)
    assert topics_of(claimed(ledger, Selection(site=site_name))) == ["t0", "t2", "t3", "t5"]


def test_a_site_is_never_claimed_for_another(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(2))
    assert claimed(ledger, Selection(site=f"{site_name}_b")) == []


@pytest.mark.parametrize("stage", Stage)
def test_a_stage_claims_what_it_works_on(stage: Stage, ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(len(PageJobState)))
    at = {f"t{number}": state for number, state in enumerate(PageJobState)}
    for topic, state in at.items():
        let_go(ledger, job_in(ledger, site_name, state, topic)[1])
    selection = Selection(site=site_name, stages=frozenset({stage}))
    expected = sorted(topic for topic, state in at.items() if state in states_of(selection.stages))
    assert expected
    assert seen(ledger, selection).unfinished == len(expected)
    assert topics_of(claimed(ledger, selection)) == expected


def test_all_stages_together_claim_every_workable_state() -> None:
    assert states_of(ALL_STAGES) == WORKABLE == frozenset(PageJobState) - FINAL


def test_what_waits_is_not_claimed_and_the_outlook_says_until_when(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(2))
    for topic, wait_s in (("t0", 100), ("t1", 300)):
        job, lease = leased(ledger, site_name, topic)
        with ledger.fenced(lease) as connection:
            move_once(connection, job, lease, S.FAILED_RETRYABLE, wait_s=wait_s)
        let_go(ledger, lease)
    selection = Selection(site=site_name)
    assert claimed(ledger, selection) == []
    outlook = seen(ledger, selection)
    assert outlook.unfinished == 2
    assert outlook.wait_s is not None
    assert 90 < outlook.wait_s <= 100


def test_the_outlook_is_the_later_of_wait_and_lease(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    job, lease = leased(ledger, site_name, lease_s=200)
    with ledger.fenced(lease) as connection:
        move_once(connection, job, lease, S.FAILED_RETRYABLE, wait_s=100)
    wait_s = seen(ledger, Selection(site=site_name)).wait_s
    assert wait_s is not None
    assert 150 < wait_s <= 200
    let_go(ledger, lease)
    wait_s = seen(ledger, Selection(site=site_name)).wait_s
    assert wait_s is not None
    assert 50 < wait_s <= 100


@pytest.mark.parametrize("state", sorted(FINAL))
def test_nothing_final_is_claimed_or_expected(
    state: PageJobState, ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    let_go(ledger, job_in(ledger, site_name, state)[1])
    assert claimed(ledger, Selection(site=site_name)) == []
    assert seen(ledger, Selection(site=site_name)) == Outlook(unfinished=0, wait_s=None)


def test_urgent_pages_come_first_and_then_the_longest_due(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(4))
    order = {"t3": (5, -10), "t0": (5, -5), "t2": (0, -20), "t1": (0, -1)}
    for topic, (priority, due_s) in order.items():
        with ledger.begin() as connection:
            connection.execute(
                update(page_jobs)
                .where(page_jobs.c.site == site_name, page_jobs.c.topic_key == topic)
                .values(
                    priority=priority,
                    next_attempt_at=func.now() + func.make_interval(0, 0, 0, 0, 0, 0, due_s),
                )
            )
    got = [claimed(ledger, Selection(site=site_name), most=1)[0].topic_key for _ in order]
    assert got == list(order)


def test_a_held_page_keeps_a_finished_jobs_successor_waiting(
    ledger: Ledger, site_name: str
) -> None:
    rows = rows_of(1)
    take_in(ledger, settings_of(site_name), rows)
    job, lease = job_in(ledger, site_name, S.PUBLISHING)
    take_in(ledger, settings_of(site_name), [rows[0] | {"river": "Rhine"}])
    assert claimed(ledger, Selection(site=site_name)) == []
    moved(ledger, job, lease, S.PUBLISHED)
    assert claimed(ledger, Selection(site=site_name)) == []
    let_go(ledger, lease)
    (claim,) = claimed(ledger, Selection(site=site_name))
    assert claim.page_job_id == current_job(ledger, site_name)["page_job_id"] != job.page_job_id
