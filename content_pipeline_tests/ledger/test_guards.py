"""What the database itself refuses, whatever program writes to it."""

from typing import Any

import pytest
from psycopg import errors
from sqlalchemy import RowMapping, insert, text, update
from sqlalchemy.exc import IntegrityError, InternalError

from content_pipeline.core.states import FINAL, MOVES, PageJobState
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import (
    attempts,
    budgets,
    effects,
    page_jobs,
    pages,
    spend,
    transitions,
)
from content_pipeline_tests.ledger.wanting import (
    NEEDS_FAILURE,
    WAYS,
    current_job,
    job_in,
    leased,
    rows_where,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    """A site with three queued page jobs."""
    wanted(ledger, site_name, rows_of(3))
    return site_name


def raw_move(
    ledger: Ledger,
    row: RowMapping,
    to: str,
    *,
    by: int = 1,
    logged: bool = True,
    logged_as: str | None = None,
    **more: Any,
) -> None:
    """Move a job past the ledger's functions, as a stray UPDATE would."""
    number = row["sequence"] + by
    with ledger.begin() as connection:
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.page_job_id == row["page_job_id"])
            .values(state=to, sequence=number, **more)
        )
        if logged:
            connection.execute(
                insert(transitions).values(
                    page_job_id=row["page_job_id"],
                    sequence=number,
                    from_state=row["state"],
                    to_state=logged_as or to,
                    why="a stray hand",
                    worker="nobody",
                )
            )


@pytest.mark.parametrize("source", PageJobState)
def test_a_move_that_the_table_does_not_hold_is_refused(
    source: PageJobState, ledger: Ledger, site: str
) -> None:
    job_in(ledger, site, source)
    row = current_job(ledger, site)
    assert row["state"] == source
    illegal = [to for to in PageJobState if (source, to) not in MOVES]
    assert illegal
    for to in illegal:
        # Everything else about the row is as the state wants it, so only the move is wrong.
        more: dict[str, Any] = {
            "finished_at": text("now()") if to in FINAL else None,
            "revision": row["revision"] or 1,
            "failure_class": "internal" if to in NEEDS_FAILURE else None,
            "failure_message": "m" if to in NEEDS_FAILURE else None,
        }
        with pytest.raises(IntegrityError, match=f"may not move from {source} to {to}"):
            raw_move(ledger, row, to, logged=False, **more)
    assert current_job(ledger, site) == row


def test_every_move_of_the_table_is_possible(ledger: Ledger, site: str) -> None:
    for source in PageJobState:
        assert [
            (step, then)
            for step, then in zip(WAYS[source], WAYS[source][1:], strict=False)
            if (step, then) not in MOVES
        ] == []
        assert WAYS[source][-1] is source


@pytest.mark.parametrize("by", [0, 2, -1])
def test_the_number_of_a_move_follows_the_one_before(by: int, ledger: Ledger, site: str) -> None:
    with pytest.raises(IntegrityError, match="may not move"):
        raw_move(ledger, current_job(ledger, site), "reserved", by=by)


def test_a_move_without_its_row_in_the_log_is_refused_at_commit(ledger: Ledger, site: str) -> None:
    with pytest.raises(IntegrityError, match="moved to reserved without a row in transitions"):
        raw_move(ledger, current_job(ledger, site), "reserved", logged=False)
    raw_move(ledger, current_job(ledger, site), "reserved")
    assert current_job(ledger, site)["state"] == "reserved"


def test_a_log_of_another_move_does_not_count(ledger: Ledger, site: str) -> None:
    row = current_job(ledger, site)
    with pytest.raises(IntegrityError, match="without a row in transitions"):
        raw_move(ledger, row, "reserved", logged_as="failed_retryable")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE content_pipeline.transitions SET why = 'nicer' WHERE page_job_id = :job",
        "DELETE FROM content_pipeline.transitions WHERE page_job_id = :job",
        "TRUNCATE content_pipeline.transitions",
    ],
)
def test_the_log_cannot_be_changed(statement: str, ledger: Ledger, site: str) -> None:
    job = current_job(ledger, site)["page_job_id"]
    before = rows_where(ledger, transitions, page_job_id=job)
    with (
        pytest.raises((IntegrityError, InternalError), match="append-only") as refused,
        ledger.begin() as connection,
    ):
        connection.execute(text(statement), {"job": job} if ":job" in statement else {})
    assert isinstance(refused.value.orig, errors.RestrictViolation)
    assert rows_where(ledger, transitions, page_job_id=job) == before


def test_a_logged_move_must_be_an_allowed_one(ledger: Ledger, site: str) -> None:
    row = current_job(ledger, site)
    with pytest.raises(IntegrityError, match="from_state_to_state"), ledger.begin() as connection:
        connection.execute(
            insert(transitions).values(
                page_job_id=row["page_job_id"],
                sequence=2,
                from_state="queued",
                to_state="published",
                why="a wish",
                worker="nobody",
            )
        )


@pytest.mark.parametrize("state", sorted(set(PageJobState) - {S.QUEUED, S.FAILED_TERMINAL}))
def test_a_job_begins_queued_or_refused(state: str, ledger: Ledger, site: str) -> None:
    row = dict(current_job(ledger, site))
    row |= {
        "page_job_id": f"{site}-new",
        "state": state,
        "revision": 1,
        "failure_class": "internal",
        "failure_message": "m",
        "finished_at": row["created_at"] if PageJobState(state) in FINAL else None,
    }
    with pytest.raises(IntegrityError, match="cannot begin as"), ledger.begin() as connection:
        connection.execute(insert(page_jobs).values(row))


@pytest.mark.parametrize("state", sorted(NEEDS_FAILURE))
def test_a_failed_state_must_say_its_class_and_message(
    state: str, ledger: Ledger, site: str
) -> None:
    job_in(ledger, site, WAYS[PageJobState(state)][-2])
    row = current_job(ledger, site)
    finished = text("now()") if PageJobState(state) in FINAL else None
    partly: list[dict[str, Any]] = [{}, {"failure_class": "budget"}, {"failure_message": "m"}]
    for given in partly:
        with pytest.raises(IntegrityError, match="failed_says_why"):
            raw_move(ledger, row, state, finished_at=finished, **given)
    with pytest.raises(IntegrityError, match="page_jobs_failure_class"):
        raw_move(ledger, row, state, finished_at=finished, failure_class="odd", failure_message="m")


@pytest.mark.parametrize(("state", "finished"), [(S.CANCELLED, None), (S.RESERVED, text("now()"))])
def test_a_final_state_and_only_a_final_state_has_an_end(
    state: PageJobState, finished: object, ledger: Ledger, site: str
) -> None:
    with pytest.raises(IntegrityError, match="page_jobs_finished"):
        raw_move(ledger, current_job(ledger, site), state, finished_at=finished)


def test_a_draft_state_without_a_draft_is_refused(ledger: Ledger, site: str) -> None:
    job_in(ledger, site, S.GENERATING)
    with pytest.raises(IntegrityError, match="draft_is_stored"):
        raw_move(ledger, current_job(ledger, site), "generated")


def test_a_page_has_one_published_job(ledger: Ledger, site: str) -> None:
    job_in(ledger, site, S.PUBLISHED, "t0")
    job_in(ledger, site, S.PUBLISHING, "t1")
    first, second = current_job(ledger, site, "t0"), current_job(ledger, site, "t1")
    with pytest.raises(IntegrityError, match="page_jobs_one_published_key"):
        raw_move(ledger, second, "published", finished_at=text("now()"), page_id=first["page_id"])


def test_a_job_has_one_open_attempt(ledger: Ledger, site: str) -> None:
    row = current_job(ledger, site)
    values = {
        "page_job_id": row["page_job_id"],
        "kind": "generate",
        "step": "article",
        "epoch": 1,
        "state": "open",
        "worker": "w",
        "generation_version": "v1",
        "input_hash": "h",
    }
    with ledger.begin() as connection:
        connection.execute(
            insert(attempts).values(values | {"attempt_id": f"{site}-1", "number": 1})
        )
    with pytest.raises(IntegrityError, match="attempts_one_open_key"), ledger.begin() as connection:
        connection.execute(
            insert(attempts).values(
                values | {"attempt_id": f"{site}-2", "number": 1, "kind": "publish"}
            )
        )


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ({"state": "failed", "finished_at": text("now()")}, "failed_says_why"),
        ({"state": "uncertain", "finished_at": text("now()")}, "failed_says_why"),
        ({"state": "succeeded"}, "attempts_finished"),
        ({"state": "open", "finished_at": text("now()")}, "attempts_finished"),
        ({"state": "lost", "finished_at": text("now()")}, "attempts_state"),
        ({"kind": "chat"}, "attempts_kind"),
    ],
)
def test_an_attempt_that_contradicts_itself_is_refused(
    changes: dict[str, object], constraint: str, ledger: Ledger, site: str
) -> None:
    row = current_job(ledger, site)
    values: dict[str, object] = {
        "attempt_id": f"{site}-1",
        "page_job_id": row["page_job_id"],
        "kind": "generate",
        "step": "article",
        "number": 1,
        "epoch": 1,
        "state": "open",
        "worker": "w",
        "generation_version": "v1",
        "input_hash": "h",
    }
    with pytest.raises(IntegrityError, match=constraint), ledger.begin() as connection:
        connection.execute(insert(attempts).values(values | changes))


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ({"reserved_usd": -1}, "spend_not_negative"),
        ({"state": "settled", "settled_usd": -1}, "spend_not_negative"),
        ({"state": "settled"}, "spend_settled"),
        ({"state": "reserved", "settled_usd": 0}, "spend_settled"),
        ({"state": "uncertain", "settled_usd": 0}, "spend_settled"),
        ({"state": "gone"}, "spend_state"),
    ],
)
def test_money_that_contradicts_itself_is_refused(
    values: dict[str, object], constraint: str, ledger: Ledger, site: str
) -> None:
    row = current_job(ledger, site)
    good = {
        "attempt_id": f"{site}-1",
        "site": site,
        "page_job_id": row["page_job_id"],
        "day": text("current_date"),
        "state": "reserved",
        "reserved_usd": 1,
    }
    with pytest.raises(IntegrityError, match=constraint), ledger.begin() as connection:
        connection.execute(insert(spend).values(good | values))


def test_a_budget_is_never_negative(ledger: Ledger, site: str) -> None:
    with pytest.raises(IntegrityError, match="not_negative"), ledger.begin() as connection:
        connection.execute(insert(budgets).values(scope=site, committed_usd=-1))


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ({"state": "done"}, "done_has_outcome"),
        ({"state": "pending", "outcome": "created"}, "done_has_outcome"),
        ({"state": "failed"}, "failed_says_why"),
        ({"state": "sent"}, "effects_state"),
    ],
)
def test_an_effect_that_contradicts_itself_is_refused(
    values: dict[str, object], constraint: str, ledger: Ledger, site: str
) -> None:
    good = {"effect_key": f"{site}-1", "site": site, "kind": "sitemap", "owner": "o"}
    with pytest.raises(IntegrityError, match=constraint), ledger.begin() as connection:
        connection.execute(insert(effects).values(good | {"state": "pending"} | values))


def test_a_site_has_one_pending_effect_of_a_kind(ledger: Ledger, site: str) -> None:
    values = {"site": site, "kind": "sitemap", "owner": "o", "state": "pending"}
    with ledger.begin() as connection:
        connection.execute(insert(effects).values(values | {"effect_key": f"{site}-1"}))
    with (
        pytest.raises(IntegrityError, match="effects_one_pending_site_effect_key"),
        ledger.begin() as connection,
    ):
        connection.execute(insert(effects).values(values | {"effect_key": f"{site}-2"}))


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ({"published_revision": 1, "remote_fingerprint": "f"}, "published_exists"),
        ({"last_revision": 1, "published_revision": 1}, "published_is_proved"),
        ({"remote_fingerprint": "f"}, "published_is_proved"),
    ],
)
def test_a_page_is_published_only_with_a_draft_and_a_proof(
    values: dict[str, object], constraint: str, ledger: Ledger, site: str
) -> None:
    job, _ = leased(ledger, site)
    with pytest.raises(IntegrityError, match=constraint), ledger.begin() as connection:
        connection.execute(update(pages).where(pages.c.page_id == job.page_id).values(values))


def test_two_pages_never_share_a_path(ledger: Ledger, site: str) -> None:
    job, _ = leased(ledger, site)
    (row,) = rows_where(ledger, pages, page_id=job.page_id)
    with pytest.raises(IntegrityError, match="pages_site_path_key"), ledger.begin() as connection:
        connection.execute(insert(pages).values({**row, "page_id": f"{site}-other"}))
