"""Announcements: when a hook is told, what it was told, and how it stands."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from sqlalchemy import RowMapping, func, insert, select

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.identity import page_id
from content_pipeline.ledger import announcements, effects
from content_pipeline.ledger.announcements import HookStanding
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.effects import SiteEffect
from content_pipeline.ledger.schema import EffectState, announced_pages, pages, site_hooks
from content_pipeline.ledger.schema import effects as effect_rows
from content_pipeline_tests.ledger.wanting import rows_where, wanted
from content_pipeline_tests.operations.small_site import rows_of, settings_of

STALE_S = 60.0
HOOK = "deploy_hook"
THROTTLED = Failure(failure_class=FailureClass.THROTTLED, message="slow down", retry_after_s=90)


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    wanted(ledger, site_name, rows_of(1))
    return site_name


def want(ledger: Ledger, site: str, delay_s: float = 0.0, kind: str = HOOK) -> None:
    with ledger.begin() as connection:
        effects.want_for_site(connection, site, {kind: delay_s}, "owner")


def take(ledger: Ledger, site: str, *kinds: str) -> list[SiteEffect]:
    with ledger.begin() as connection:
        return effects.take_site_effects(connection, site, STALE_S, kinds or None)


def rows(ledger: Ledger, site: str) -> list[RowMapping]:
    return rows_where(ledger, effect_rows, site=site, page_id=None)


def standing(ledger: Ledger, site: str, kind: str = HOOK) -> HookStanding:
    with ledger.begin() as connection:
        found = {each.kind: each for each in announcements.standings(connection, site)}
    return found[kind]


def live_pages(ledger: Ledger, site: str, count: int) -> None:
    """Proved pages, without the work that makes them."""
    paths = [f"/p{number:05}/" for number in range(count)]
    with ledger.begin() as connection:
        connection.execute(
            insert(pages),
            [
                {
                    "page_id": page_id(site, path),
                    "site": site,
                    "path": path,
                    "topic_key": path.strip("/"),
                    "last_revision": 1,
                    "published_revision": 1,
                    "published_content_hash": f"hash of {path}",
                    "published_title": path,
                    "published_meta_description": "",
                    "remote_fingerprint": "f",
                    "content_changed_at": datetime(2026, 3, 1, tzinfo=UTC),
                }
                for path in paths
            ],
        )


# --- when a hook is told ------------------------------------------------------------------------


def test_ten_thousand_wishes_in_a_window_are_one_call_at_its_end(ledger: Ledger, site: str) -> None:
    for _ in range(100):  # in one transaction each version of the row would be passed every time
        with ledger.begin() as connection:
            for _ in range(100):
                effects.want_for_site(connection, site, {HOOK: 300.0}, "owner")
    (row,) = rows(ledger, site)
    assert row["state"] == "pending"
    assert 290 < (row["next_attempt_at"] - row["created_at"]).total_seconds() <= 310
    assert take(ledger, site) == []
    with ledger.begin() as connection:
        announcements.hurry(connection, site, (HOOK,))
    assert len(take(ledger, site)) == 1


def test_wishes_of_many_workers_at_once_are_one_call(ledger: Ledger, site: str) -> None:
    ready = threading.Barrier(8)

    def publishes(_: int) -> None:
        ready.wait(20)
        for _ in range(25):
            want(ledger, site, 300.0)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(publishes, range(8)))
    assert [row["state"] for row in rows(ledger, site)] == ["pending"]


def test_a_wish_during_the_call_waits_for_a_window_of_its_own(ledger: Ledger, site: str) -> None:
    want(ledger, site)
    (taken,) = take(ledger, site)
    want(ledger, site, 300.0)
    assert sorted(row["state"] for row in rows(ledger, site)) == ["in_progress", "pending"]
    with ledger.begin() as connection:
        effects.finish(connection, taken.effect_key, outcome="told", result_reference="build 1")
        left_s = effects.seconds_until_due(connection, site, STALE_S)
    assert left_s is not None
    assert 290 < left_s <= 300
    found = standing(ledger, site)
    assert (found.gathers, found.outcome, found.result_reference) == (True, "told", "build 1")


def test_each_hook_has_its_own_window(ledger: Ledger, site: str) -> None:
    with ledger.begin() as connection:
        effects.want_for_site(connection, site, {"sitemap": 0.0, HOOK: 300.0}, "owner")
    assert [effect.kind for effect in take(ledger, site)] == ["sitemap"]
    with ledger.begin() as connection:
        left_s = announcements.seconds_until_told(connection, site)
        assert left_s is not None
        assert 290 < left_s <= 300
        assert announcements.seconds_until_told(connection, site, ("sitemap",)) is None


def test_one_that_has_just_become_due_is_still_waited_for(ledger: Ledger, site: str) -> None:
    """Due between two questions, it was told by nobody, and the run called itself done."""
    with ledger.begin() as connection:
        effects.want_for_site(connection, site, {HOOK: 0.0}, "owner")
    with ledger.begin() as connection:
        assert announcements.seconds_until_told(connection, site) == 0
    assert [effect.kind for effect in take(ledger, site)] == [HOOK]
    with ledger.begin() as connection:
        assert announcements.seconds_until_told(connection, site) is None


def test_a_person_ends_a_window_and_no_announced_wait(ledger: Ledger, site: str) -> None:
    want(ledger, site)
    (taken,) = take(ledger, site)
    with ledger.begin() as connection:
        effects.put_back(connection, taken.effect_key, THROTTLED, 90)
        announcements.hurry(connection, site, (HOOK,))
    assert take(ledger, site) == []
    assert (standing(ledger, site).wait_s or 0) > 80


def test_only_the_kinds_asked_for_are_taken(ledger: Ledger, site: str) -> None:
    for kind in ("sitemap", HOOK):
        want(ledger, site, kind=kind)
    assert [effect.kind for effect in take(ledger, site, HOOK)] == [HOOK]
    assert [effect.kind for effect in take(ledger, site)] == ["sitemap"]


def test_a_wish_that_takes_over_a_failed_one_takes_its_wait_and_its_tries(
    ledger: Ledger, site: str
) -> None:
    want(ledger, site)
    (taken,) = take(ledger, site)
    want(ledger, site)
    with ledger.begin() as connection:
        effects.put_back(connection, taken.effect_key, THROTTLED, 90)
    found = standing(ledger, site)
    assert 80 < (found.wait_s or 0) <= 90
    assert (found.failure_class, found.failure_message) == ("throttled", "slow down")
    (pending,) = [row for row in rows(ledger, site) if row["state"] == "pending"]
    assert pending["attempts"] == 1


def test_who_was_taken_over_does_not_go_on(ledger: Ledger, site: str) -> None:
    want(ledger, site)
    (taken,) = take(ledger, site)
    with ledger.begin() as connection:
        assert announcements.keep(connection, taken)
        (again,) = effects.take_site_effects(connection, site, -1)
        assert not announcements.keep(connection, taken)
        assert announcements.keep(connection, again)
        effects.finish(connection, again.effect_key, outcome="told", result_reference="")
        assert not announcements.keep(connection, again)


# --- what it was told ---------------------------------------------------------------------------


def meet(ledger: Ledger, site: str, *, tells_existing: bool = False) -> None:
    with ledger.begin() as connection:
        announcements.meet_hooks(connection, site, {HOOK: tells_existing})


def told_in_batches(ledger: Ledger, site: str, most: int) -> list[int]:
    """How many pages each batch holds until nothing is news."""
    want(ledger, site)
    (effect,) = take(ledger, site)
    sizes: list[int] = []
    while True:
        with ledger.begin() as connection:
            batch = announcements.next_batch(connection, settings_of(site), effect, most)
            if batch is None:
                effects.finish(connection, effect.effect_key, outcome="told", result_reference="")
                return sizes
            announcements.mark_told(connection, site, effect, batch)
        sizes.append(len(batch.shown))


def test_ten_thousand_pages_are_told_in_the_batches_that_a_hook_takes(
    ledger: Ledger, site: str
) -> None:
    meet(ledger, site)
    live_pages(ledger, site, 10_001)
    assert told_in_batches(ledger, site, 10_000) == [10_000, 1]
    assert standing(ledger, site).pages_told == 10_001
    assert told_in_batches(ledger, site, 10_000) == []


def test_what_is_public_when_a_hook_is_first_met_is_no_news(ledger: Ledger, site: str) -> None:
    live_pages(ledger, site, 3)
    meet(ledger, site)
    meet(ledger, site)
    assert told_in_batches(ledger, site, 10) == []
    assert len(rows_where(ledger, announced_pages, site=site)) == 3


def test_a_hook_may_want_to_know_of_everything(ledger: Ledger, site: str) -> None:
    live_pages(ledger, site, 3)
    meet(ledger, site, tells_existing=True)
    assert told_in_batches(ledger, site, 10) == [3]


def test_two_workers_that_meet_a_hook_at_once_agree(ledger: Ledger, site: str) -> None:
    live_pages(ledger, site, 50)
    ready = threading.Barrier(6)

    def meets(_: int) -> None:
        ready.wait(20)
        meet(ledger, site)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(meets, range(6)))
    assert len(rows_where(ledger, announced_pages, site=site)) == 50
    assert told_in_batches(ledger, site, 10) == []


def test_a_site_without_topics_has_no_hooks_on_record(ledger: Ledger) -> None:
    meet(ledger, "nowhere")
    with ledger.begin() as connection:
        count = select(func.count()).where(site_hooks.c.site == "nowhere")
        assert connection.execute(count).scalar_one() == 0


# --- how it stands ------------------------------------------------------------------------------


def test_a_hook_that_was_never_wanted_has_no_standing(ledger: Ledger, site: str) -> None:
    with ledger.begin() as connection:
        assert announcements.standings(connection, site) == ()


def test_a_hook_that_waits_was_never_called(ledger: Ledger, site: str) -> None:
    want(ledger, site, 300.0)
    found = standing(ledger, site)
    assert (found.state, found.called_at, found.outcome) == (EffectState.PENDING, None, None)
    assert found.gathers


def test_a_failure_is_shown_until_the_next_success(ledger: Ledger, site: str) -> None:
    want(ledger, site)
    (taken,) = take(ledger, site)
    failure = Failure(failure_class=FailureClass.AUTH, message="wrong token")
    with ledger.begin() as connection:
        effects.mark(connection, taken.effect_key, EffectState.FAILED, failure)
    found = standing(ledger, site)
    assert (found.state, found.failure_class) == (EffectState.FAILED, "auth")
    assert (found.failure_message, found.next_attempt_at) == ("wrong token", None)
    assert found.called_at is not None
    want(ledger, site)
    assert standing(ledger, site).failure_class == "auth", "it is not told yet"
    (again,) = take(ledger, site)
    with ledger.begin() as connection:
        effects.finish(connection, again.effect_key, outcome="told", result_reference="build 2")
    found = standing(ledger, site)
    assert (found.state, found.failure_class, found.outcome) == (EffectState.DONE, None, "told")
    assert found.called_at is not None
