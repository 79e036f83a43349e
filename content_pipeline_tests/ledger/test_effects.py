"""Effects: one row per outward intent, and one pending announcement however many ask for it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import RowMapping, func, text, update

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.identity import publish_key
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import effects, overview
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.effects import SiteEffect
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import EffectState
from content_pipeline.ledger.schema import effects as effect_rows
from content_pipeline_tests.ledger.wanting import job_in, rows_where, wanted
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState
STALE_S = 60.0
FAILURE = Failure(failure_class=FailureClass.STORAGE, message="the disk is full")


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    wanted(ledger, site_name, rows_of(1))
    return site_name


@pytest.fixture
def job(ledger: Ledger, site: str) -> PageJob:
    return job_in(ledger, site, S.READY_TO_PUBLISH)[0]


def want(ledger: Ledger, site: str, *kinds: str) -> None:
    with ledger.begin() as connection:
        effects.want_for_site(connection, site, dict.fromkeys(kinds or ("sitemap",), 0.0), "owner")


def take(ledger: Ledger, site: str, stale_s: float = STALE_S) -> list[SiteEffect]:
    with ledger.begin() as connection:
        return sorted(
            effects.take_site_effects(connection, site, stale_s), key=lambda effect: effect.kind
        )


def finish(ledger: Ledger, effect: SiteEffect) -> None:
    with ledger.begin() as connection:
        effects.finish(
            connection, effect.effect_key, outcome="changed", result_reference="sitemap.xml"
        )


def put_back(ledger: Ledger, effect: SiteEffect, wait_s: float = 0) -> None:
    with ledger.begin() as connection:
        effects.put_back(connection, effect.effect_key, FAILURE, wait_s)


def age(ledger: Ledger, effect: SiteEffect, seconds: float) -> None:
    """Let the announcement have been taken so long ago."""
    with ledger.begin() as connection:
        connection.execute(
            update(effect_rows)
            .where(effect_rows.c.effect_key == effect.effect_key)
            .values(updated_at=func.now() - func.make_interval(0, 0, 0, 0, 0, 0, seconds))
        )


def of_site(ledger: Ledger, site: str, **equal: object) -> list[RowMapping]:
    return rows_where(ledger, effect_rows, site=site, page_id=None, **equal)


# --- the publish effect of a page's revision ----------------------------------------------------


def test_publishing_a_revision_has_one_key_whatever_the_attempt(
    ledger: Ledger, job: PageJob
) -> None:
    assert job.revision is not None
    key = publish_key(job.page_id, job.revision)
    for attempt in (1, 2):
        with ledger.begin() as connection:
            assert effects.begin_publish(connection, job, request_hash="hash") == key
        (row,) = rows_where(ledger, effect_rows, page_id=job.page_id)
        assert (row["state"], row["attempts"], row["revision"]) == ("in_progress", attempt, 1)
        assert (row["owner"], row["request_hash"]) == (job.owner, "hash")


def test_a_finished_effect_says_how_and_where(ledger: Ledger, job: PageJob) -> None:
    with ledger.begin() as connection:
        key = effects.begin_publish(connection, job, request_hash="hash")
        effects.mark(connection, key, EffectState.UNCERTAIN, FAILURE)
        effects.finish(connection, key, outcome="created", result_reference="/aarau-0/")
    (row,) = rows_where(ledger, effect_rows, effect_key=key)
    assert (row["state"], row["outcome"], row["result_reference"]) == (
        "done",
        "created",
        "/aarau-0/",
    )
    assert (row["failure_class"], row["failure_message"]) == (None, None)
    assert row["finished_at"] is not None


def test_looks_are_counted_for_one_try_and_start_anew_with_the_next(
    ledger: Ledger, job: PageJob
) -> None:
    with ledger.begin() as connection:
        key = effects.begin_publish(connection, job, request_hash="hash")
        effects.mark(connection, key, EffectState.UNCERTAIN, FAILURE, unknown_looks=3)
        effects.mark(connection, key, EffectState.UNCERTAIN, FAILURE, absent_looks=1)
        looks = effects.looks(connection, key)
        assert (looks.unknown, looks.absent) == (3, 1)
        effects.begin_publish(connection, job, request_hash="hash")
        looks = effects.looks(connection, key)
        assert (looks.unknown, looks.absent) == (0, 0)


# --- announcements of a site --------------------------------------------------------------------


def test_a_hundred_publishes_want_one_announcement_of_each_kind(ledger: Ledger, site: str) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: want(ledger, site, "sitemap", "index_page"), range(100)))
    rows = of_site(ledger, site)
    assert sorted(row["kind"] for row in rows) == ["index_page", "sitemap"]
    assert {row["state"] for row in rows} == {"pending"}


def test_what_is_wanted_is_taken_once(ledger: Ledger, site: str) -> None:
    want(ledger, site, "sitemap", "index_page")
    with ThreadPoolExecutor(8) as pool:
        taken = [
            effect for some in pool.map(lambda _: take(ledger, site), range(8)) for effect in some
        ]
    assert sorted((effect.kind, effect.attempts) for effect in taken) == [
        ("index_page", 1),
        ("sitemap", 1),
    ]
    for effect in taken:
        finish(ledger, effect)
    assert take(ledger, site) == []
    assert {row["state"] for row in of_site(ledger, site)} == {"done"}


def test_announcements_of_another_site_are_left_alone(ledger: Ledger, site: str) -> None:
    want(ledger, site)
    assert take(ledger, f"{site}_b") == []


@contextmanager
def publishing(ledger: Ledger, site: str) -> Iterator[None]:
    """A page's last transaction, which asks for the announcement and has not committed yet."""
    with ledger.begin() as connection:
        effects.want_for_site(connection, site, {"sitemap": 0.0}, "owner")
        yield


@pytest.mark.parametrize("already_pending", [True, False])
def test_a_page_committed_while_an_announcement_is_taken_is_announced(
    already_pending: bool, ledger: Ledger, site: str
) -> None:
    """Either the taker waits for the page, or the page leaves another announcement."""
    if already_pending:
        want(ledger, site)
    with ThreadPoolExecutor(1) as pool:
        with publishing(ledger, site):
            taking = pool.submit(take, ledger, site)
            if already_pending:
                with pytest.raises(TimeoutError):
                    taking.result(timeout=0.3)
            else:
                assert taking.result(timeout=10) == []
        if already_pending:
            assert len(taking.result(timeout=10)) == 1
        else:
            assert len(take(ledger, site)) == 1


def test_a_page_proved_after_the_taking_leaves_another_announcement(
    ledger: Ledger, site: str
) -> None:
    want(ledger, site)
    (first,) = take(ledger, site)
    want(ledger, site)
    # The other is at it and read the pages before: it must not be the last to write.
    assert take(ledger, site) == []
    finish(ledger, first)
    (second,) = take(ledger, site)
    assert second.effect_key != first.effect_key
    assert second.attempts == 1


def test_an_interrupted_announcement_is_taken_over(ledger: Ledger, site: str) -> None:
    want(ledger, site)
    (first,) = take(ledger, site)
    assert take(ledger, site) == []
    with ledger.begin() as connection:
        left = effects.seconds_until_stale(connection, site, STALE_S)
    assert left is not None
    assert STALE_S - 10 < left <= STALE_S
    age(ledger, first, STALE_S + 1)
    with ledger.begin() as connection:
        assert effects.seconds_until_stale(connection, site, STALE_S) == 0
    (again,) = take(ledger, site)
    assert (again.effect_key, again.attempts) == (first.effect_key, 2)
    assert take(ledger, site) == []


def test_an_interrupted_one_and_a_newer_one_are_both_taken(ledger: Ledger, site: str) -> None:
    want(ledger, site)
    (first,) = take(ledger, site)
    want(ledger, site)
    age(ledger, first, STALE_S + 1)
    assert len(take(ledger, site)) == 2


def test_nothing_under_way_is_waited_for(ledger: Ledger, site: str) -> None:
    want(ledger, site)
    with ledger.begin() as connection:
        assert effects.seconds_until_stale(connection, site, STALE_S) is None


def test_a_failed_announcement_waits(ledger: Ledger, site: str) -> None:
    want(ledger, site)
    (first,) = take(ledger, site)
    put_back(ledger, first, wait_s=100)
    (row,) = of_site(ledger, site)
    assert (row["state"], row["failure_class"]) == ("pending", "storage")
    assert take(ledger, site) == []
    want(ledger, site)  # a page published meanwhile relies on it and does not hurry it
    assert take(ledger, site) == []
    put_back(ledger, first, wait_s=-1)
    (again,) = take(ledger, site)
    assert (again.effect_key, again.attempts) == (first.effect_key, 2)


def test_a_failed_announcement_gives_way_to_a_newer_one(ledger: Ledger, site: str) -> None:
    want(ledger, site)
    (first,) = take(ledger, site)
    want(ledger, site)
    put_back(ledger, first)
    (merged,) = of_site(ledger, site, effect_key=first.effect_key)
    assert (merged["state"], merged["outcome"]) == ("done", "merged")
    (second,) = take(ledger, site)
    assert second.effect_key != first.effect_key


def test_a_failed_announcement_gives_way_to_one_that_is_just_being_asked_for(
    ledger: Ledger, site: str
) -> None:
    want(ledger, site)
    (first,) = take(ledger, site)
    started = threading.Event()

    def give_back() -> None:
        started.set()
        put_back(ledger, first)

    with ThreadPoolExecutor(1) as pool:
        with publishing(ledger, site):
            giving = pool.submit(give_back)
            assert started.wait(10)
            with pytest.raises(TimeoutError):
                giving.result(timeout=0.3)
        giving.result(timeout=10)
    assert sorted(row["state"] for row in of_site(ledger, site)) == ["done", "pending"]


def test_a_hook_that_failed_for_good_is_wanted_again_by_the_next_page(
    ledger: Ledger, site: str
) -> None:
    want(ledger, site)
    (first,) = take(ledger, site)
    with ledger.begin() as connection:
        effects.mark(connection, first.effect_key, EffectState.FAILED, FAILURE)
    assert take(ledger, site) == []
    want(ledger, site)
    assert len(take(ledger, site)) == 1


def give_up(ledger: Ledger, effect: SiteEffect) -> None:
    with ledger.begin() as connection:
        effects.mark(connection, effect.effect_key, EffectState.FAILED, FAILURE)


def given_up(ledger: Ledger, site: str) -> tuple[str, ...]:
    with ledger.begin() as connection:
        return effects.given_up(connection, site)


def test_only_the_latest_announcement_of_a_hook_can_be_given_up(ledger: Ledger, site: str) -> None:
    assert given_up(ledger, site) == ()
    want(ledger, site, "sitemap", "index_page")
    for effect in take(ledger, site):
        give_up(ledger, effect)
    assert given_up(ledger, site) == ("index_page", "sitemap")
    assert given_up(ledger, f"{site}_b") == ()
    want(ledger, site, "sitemap")
    assert given_up(ledger, site) == ("index_page",), "it is wanted again"
    (again,) = take(ledger, site)
    finish(ledger, again)
    assert given_up(ledger, site) == ("index_page",), "a success is not undone by older failures"
    with ledger.begin() as connection:
        assert overview.site_status(connection, site).failed_announcements == 1


def test_an_older_request_that_fails_last_is_not_the_latest(ledger: Ledger, site: str) -> None:
    want(ledger, site)
    (first,) = take(ledger, site)
    want(ledger, site)
    give_up(ledger, first)
    assert given_up(ledger, site) == ()


def due_in(ledger: Ledger, site: str) -> float | None:
    with ledger.begin() as connection:
        return effects.seconds_until_due(connection, site, STALE_S)


def test_it_is_known_when_an_announcement_can_be_taken(ledger: Ledger, site: str) -> None:
    assert due_in(ledger, site) is None
    want(ledger, site)
    assert due_in(ledger, site) == 0
    assert due_in(ledger, f"{site}_b") is None
    (effect,) = take(ledger, site)
    left = due_in(ledger, site)
    assert left is not None
    assert STALE_S - 10 < left <= STALE_S, "whoever is at it may be interrupted"
    age(ledger, effect, STALE_S + 1)
    assert due_in(ledger, site) == 0
    put_back(ledger, effect, wait_s=500)
    left = due_in(ledger, site)
    assert left is not None
    assert 490 < left <= 500
    give_up(ledger, effect)
    assert due_in(ledger, site) is None


def test_pages_and_a_taker_lock_announcements_in_one_order(ledger: Ledger, site: str) -> None:
    """A page that holds one kind and then wants another never waits for who waits for it.

    ``sitemap`` was asked for first and lies first in the table, so a taker that took rows as they
    lie held it while it waited for ``index_page``.
    """
    want(ledger, site, "sitemap")
    want(ledger, site, "index_page")
    with ThreadPoolExecutor(1) as pool:
        with ledger.begin() as connection:
            effects.want_for_site(connection, site, {"index_page": 0.0}, "owner")
            taking = pool.submit(take, ledger, site)
            with pytest.raises(TimeoutError):
                taking.result(timeout=0.5)
            connection.execute(text("SET LOCAL lock_timeout = '5s'"))
            effects.want_for_site(connection, site, {"sitemap": 0.0}, "owner")
        taken = taking.result(timeout=10)
    assert [effect.kind for effect in taken] == ["index_page", "sitemap"]


def test_the_last_id_that_a_publish_met_is_kept(ledger: Ledger, job: PageJob) -> None:
    def last() -> str | None:
        with ledger.begin() as connection:
            return effects.last_reference(connection, job.page_id)

    assert last() is None
    with ledger.begin() as connection:
        key = effects.begin_publish(connection, job, request_hash="hash")
    assert last() is None
    with ledger.begin() as connection:
        effects.note_reference(connection, key, "draft 7")
    assert last() == "draft 7"
    with ledger.begin() as connection:
        effects.begin_publish(connection, job, request_hash="hash")
    assert last() == "draft 7", "it outlives the try that made the draft"
    with ledger.begin() as connection:
        effects.finish(connection, key, outcome="created", result_reference="page 8")
    assert last() == "page 8"
