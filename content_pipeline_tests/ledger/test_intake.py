"""Intake: what the table says becomes what is wanted, all of it or nothing, and only once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DataError

from content_pipeline.core.identity import page_id
from content_pipeline.core.states import PageJobState
from content_pipeline.core.topics import RejectedRow
from content_pipeline.ledger import intake
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.intake import Part
from content_pipeline.ledger.leases import Selection, outlook
from content_pipeline.ledger.schema import (
    draft_revisions,
    page_jobs,
    pages,
    rejected_rows,
    sites,
    topics,
    transitions,
)
from content_pipeline.ledger.wishes import Request
from content_pipeline_tests.ledger.wanting import (
    current_job,
    job_in,
    leased,
    let_go,
    moved,
    rows_where,
    take_in,
    topics_in,
)
from content_pipeline_tests.operations.small_site import Row, path_of, rows_of, settings_of

S = PageJobState


def versions(ledger: Ledger, site: str) -> dict[str, list[Any]]:
    """The version that PostgreSQL gave each row of the site: any write changes it."""
    with ledger.begin() as connection:
        return {
            table.name: list(
                connection.execute(
                    select(text("ctid::text"), text("xmin::text"))
                    .select_from(table)
                    .where(table.c.site == site)
                    .order_by(text("ctid"))
                ).all()
            )
            for table in (sites, topics, pages, page_jobs, rejected_rows)
        }


def with_river(rows: list[Row], river: str, topic: str = "t0") -> list[Row]:
    return [row | {"river": river} if row["id"] == topic else row for row in rows]


def test_every_row_becomes_a_topic_a_page_and_a_queued_job(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(3)
    taken = take_in(ledger, settings_of(site_name), rows)
    assert (taken.topic_keys, taken.wanted, taken.unchanged, taken.rejected) == (
        ("t0", "t1", "t2"),
        3,
        0,
        0,
    )
    for number, row in enumerate(rows, start=1):
        (topic,) = rows_where(ledger, topics, site=site_name, topic_key=row["id"])
        (page,) = rows_where(ledger, pages, site=site_name, topic_key=row["id"])
        job = current_job(ledger, site_name, row["id"])
        assert (topic["name"], topic["row_number"], topic["status"]) == (
            row["name"],
            number,
            "active",
        )
        assert page["page_id"] == topic["page_id"] == job["page_id"]
        assert page["page_id"] == page_id(site_name, path_of(row))
        assert job["state"] == S.QUEUED
        assert job["input_columns"] == {name: row[name] for name in row if name != "id"}
        (log,) = rows_where(ledger, transitions, page_job_id=job["page_job_id"])
        assert (log["from_state"], log["to_state"], log["worker"]) == (None, "queued", "test")
    with ledger.begin() as connection:
        assert intake.topic_keys(connection, site_name) == ["t0", "t1", "t2"]


def test_asking_again_writes_nothing_at_all(ledger: Ledger, site_name: str) -> None:
    rejected = [
        RejectedRow(row_number=4, key=None, message="row 4: no id"),
        RejectedRow(row_number=5, key="bad", message="row 5 (bad): empty"),
    ]
    take_in(ledger, settings_of(site_name), rows_of(3), rejected=rejected)
    before = versions(ledger, site_name)
    assert all(before.values())
    taken = take_in(ledger, settings_of(site_name), rows_of(3), rejected=rejected)
    assert (taken.wanted, taken.unchanged, taken.rejected) == (0, 3, 2)
    assert versions(ledger, site_name) == before


def test_asking_again_writes_nothing_while_the_jobs_are_at_work_or_done(
    ledger: Ledger, site_name: str
) -> None:
    rows = rows_of(3)
    take_in(ledger, settings_of(site_name), rows)
    job_in(ledger, site_name, S.PUBLISHED, "t0")
    job_in(ledger, site_name, S.GENERATING, "t1")
    job_in(ledger, site_name, S.FAILED_TERMINAL, "t2")
    before = versions(ledger, site_name)
    assert take_in(ledger, settings_of(site_name), rows).wanted == 0
    assert versions(ledger, site_name) == before


def test_a_changed_row_is_a_new_job_for_the_same_page(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(2)
    take_in(ledger, settings_of(site_name), rows)
    first, other = current_job(ledger, site_name), current_job(ledger, site_name, "t1")
    taken = take_in(ledger, settings_of(site_name), with_river(rows, "Rhine"))
    assert (taken.wanted, taken.unchanged) == (1, 1)
    second = current_job(ledger, site_name)
    assert second["page_job_id"] != first["page_job_id"]
    assert second["page_id"] == first["page_id"]
    assert second["input_columns"]["river"] == "Rhine"
    assert current_job(ledger, site_name, "t1") == other
    (row,) = rows_where(ledger, page_jobs, page_job_id=first["page_job_id"])
    assert row["state"] == S.QUEUED  # a worker supersedes it, unless it is wanted again first


def test_another_way_of_making_pages_is_a_new_job(ledger: Ledger, site_name: str) -> None:
    take_in(ledger, settings_of(site_name), rows_of(2))
    assert take_in(ledger, settings_of(site_name), rows_of(2), version="v2").wanted == 2
    assert len(rows_where(ledger, page_jobs, site=site_name)) == 4
    assert take_in(ledger, settings_of(site_name), rows_of(2), version="v2").wanted == 0


def test_a_column_that_no_page_uses_changes_nothing(ledger: Ledger, site_name: str) -> None:
    take_in(ledger, settings_of(site_name), rows_of(2))
    noisy = [row | {"editor": "somebody"} for row in rows_of(2)]
    assert take_in(ledger, settings_of(site_name), noisy).wanted == 0


def test_input_that_returns_revives_its_superseded_job_at_its_draft(
    ledger: Ledger, site_name: str
) -> None:
    rows = rows_of(1)
    take_in(ledger, settings_of(site_name), rows)
    first, lease = job_in(ledger, site_name, S.GENERATED)
    take_in(ledger, settings_of(site_name), with_river(rows, "Rhine"))
    moved(ledger, first, lease, S.SUPERSEDED)
    taken = take_in(ledger, settings_of(site_name), rows)
    assert taken.wanted == 1
    row = current_job(ledger, site_name)
    assert (row["page_job_id"], row["state"]) == (first.page_job_id, S.GENERATED)
    assert take_in(ledger, settings_of(site_name), rows).wanted == 0


def test_input_that_returns_before_anybody_noticed_is_simply_current_again(
    ledger: Ledger, site_name: str
) -> None:
    rows = rows_of(1)
    take_in(ledger, settings_of(site_name), rows)
    job, lease = leased(ledger, site_name)
    take_in(ledger, settings_of(site_name), with_river(rows, "Rhine"))
    take_in(ledger, settings_of(site_name), rows)
    assert moved(ledger, job, lease, S.RESERVED).is_current


def test_a_wanted_job_that_was_superseded_meanwhile_is_revived_by_the_next_intake(
    ledger: Ledger, site_name: str
) -> None:
    """A → B → A while B is being published: B takes A's place although A is wanted."""
    rows = rows_of(1)
    take_in(ledger, settings_of(site_name), rows)
    first, lease = job_in(ledger, site_name, S.GENERATED)
    take_in(ledger, settings_of(site_name), with_river(rows, "Rhine"))
    take_in(ledger, settings_of(site_name), rows)
    moved(ledger, first, lease, S.SUPERSEDED)  # by a worker that read it in between
    assert take_in(ledger, settings_of(site_name), rows).wanted == 1
    assert current_job(ledger, site_name)["state"] == S.GENERATED


def test_of_two_topics_with_one_path_the_first_keeps_it(ledger: Ledger, site_name: str) -> None:
    first, second = rows_of(1)[0], rows_of(1)[0] | {"id": "t9"}
    taken = take_in(ledger, settings_of(site_name), [first, second])
    assert (taken.wanted, taken.rejected) == (1, 1)
    refused = current_job(ledger, site_name, "t9")
    assert (refused["state"], refused["failure_class"]) == (S.FAILED_TERMINAL, "terminal")
    assert "topics 't0' and 't9' both claim /aarau-0/" in refused["failure_message"]
    assert refused["page_id"] is None
    (topic,) = rows_where(ledger, topics, site=site_name, topic_key="t9")
    assert (topic["status"], topic["message"]) == ("rejected", refused["failure_message"])
    # The order of a later table does not matter: the page stays with its first topic.
    taken = take_in(ledger, settings_of(site_name), [second, first])
    assert (taken.wanted, taken.rejected) == (0, 1)


def test_a_page_does_not_move_when_its_row_asks_for_another_path(
    ledger: Ledger, site_name: str
) -> None:
    row = rows_of(1)[0]
    take_in(ledger, settings_of(site_name), [row])
    before = current_job(ledger, site_name)
    taken = take_in(ledger, settings_of(site_name), [row | {"name": "Arosa"}])
    assert (taken.wanted, taken.rejected) == (0, 1)
    refused = current_job(ledger, site_name)
    assert refused["state"] == S.FAILED_TERMINAL
    assert "published under /aarau-0/" in refused["failure_message"]
    assert len(rows_where(ledger, pages, site=site_name)) == 1
    # The restored row is the old job again.
    assert take_in(ledger, settings_of(site_name), [row]).rejected == 0
    again = current_job(ledger, site_name)
    assert again["deadline_at"] > before["deadline_at"]
    assert {**again, "deadline_at": None} == {**before, "deadline_at": None}
    (topic,) = rows_where(ledger, topics, site=site_name, topic_key="t0")
    assert (topic["status"], topic["message"]) == ("active", None)


def test_rejected_rows_are_kept_with_their_reason_until_they_are_gone(
    ledger: Ledger, site_name: str
) -> None:
    keyless = RejectedRow(row_number=7, key=None, message="row 7: no id")
    keyed = RejectedRow(row_number=8, key="t8", message="row 8 (t8): empty")
    taken = take_in(ledger, settings_of(site_name), rows_of(1), rejected=[keyless, keyed])
    assert (taken.rejected, taken.topic_keys) == (2, ("t0", "t8"))
    (row,) = rows_where(ledger, rejected_rows, site=site_name)
    assert (row["row_number"], row["message"]) == (7, "row 7: no id")
    refused = current_job(ledger, site_name, "t8")
    assert (refused["state"], refused["failure_class"]) == (S.FAILED_TERMINAL, "invalid_input")
    assert refused["finished_at"] is not None
    changed = RejectedRow(row_number=7, key=None, message="row 7: bad id")
    take_in(ledger, settings_of(site_name), rows_of(1), rejected=[changed])
    (row,) = rows_where(ledger, rejected_rows, site=site_name)
    assert row["message"] == "row 7: bad id"
    take_in(ledger, settings_of(site_name), rows_of(1))
    assert rows_where(ledger, rejected_rows, site=site_name) == []


def test_a_corrected_row_becomes_a_page(ledger: Ledger, site_name: str) -> None:
    row = rows_of(1)[0]
    bad = RejectedRow(row_number=1, key="t0", message="row 1 (t0): column 'canton' is empty")
    take_in(ledger, settings_of(site_name), [], rejected=[bad])
    assert take_in(ledger, settings_of(site_name), [row]).wanted == 1
    assert current_job(ledger, site_name)["state"] == S.QUEUED
    # ... and a good row that breaks is refused, while its page stays what it is.
    job_in(ledger, site_name, S.PUBLISHED)
    take_in(ledger, settings_of(site_name), [], rejected=[bad])
    assert current_job(ledger, site_name)["state"] == S.FAILED_TERMINAL
    (page,) = rows_where(ledger, pages, site=site_name)
    assert page["topic_key"] == "t0"
    assert take_in(ledger, settings_of(site_name), [row]).wanted == 1
    assert current_job(ledger, site_name)["state"] == S.PUBLISHED


def test_an_intake_that_fails_leaves_nothing(ledger: Ledger, site_name: str) -> None:
    site = settings_of(site_name)
    good, other = topics_in(site, rows_of(2))
    bad = (2, replace(other[1], columns={"name": "no text of PostgreSQL: \0"}))
    request = Request(
        site=site, generation_version="v1", model_route="scripted", requested_by="test"
    )
    with pytest.raises(DataError), ledger.begin() as connection:
        intake.take_in(connection, request, [Part(topics=[good, bad])])
    assert rows_where(ledger, sites, site=site_name) == []
    assert rows_where(ledger, topics, site=site_name) == []


def test_a_site_declared_anew_is_remembered_as_declared(ledger: Ledger, site_name: str) -> None:
    take_in(ledger, settings_of(site_name), rows_of(1))
    take_in(ledger, settings_of(site_name, title="Cities", owner="a team"), rows_of(1))
    (row,) = rows_where(ledger, sites, site=site_name)
    assert (row["title"], row["owner"]) == ("Cities", "a team")


def test_the_same_table_taken_in_by_many_at_once_is_wanted_once(
    ledger: Ledger, site_name: str
) -> None:
    with ThreadPoolExecutor(8) as pool:
        taken = list(
            pool.map(lambda _: take_in(ledger, settings_of(site_name), rows_of(40)), range(8))
        )
    assert sorted(item.wanted for item in taken) == [0] * 7 + [40]
    assert len(rows_where(ledger, page_jobs, site=site_name)) == 40
    with ledger.begin() as connection:
        assert outlook(connection, Selection(site=site_name)).unfinished == 40


def test_different_tables_taken_in_at_once_leave_one_of_them(
    ledger: Ledger, site_name: str
) -> None:
    tables = [with_river(rows_of(5), f"river {n}") for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda rows: take_in(ledger, settings_of(site_name), rows), tables))
    rivers = {current_job(ledger, site_name)["input_columns"]["river"]}
    assert rivers <= {f"river {n}" for n in range(6)}
    assert len(rows_where(ledger, page_jobs, site=site_name)) == 5 - 1 + 6
    assert len(rows_where(ledger, pages, site=site_name)) == 5


def test_sites_do_not_see_each_others_topics(ledger: Ledger, site_name: str) -> None:
    other = f"{site_name}_b"
    take_in(ledger, settings_of(site_name), rows_of(2))
    take_in(ledger, settings_of(other), rows_of(2))
    ours = {row["page_job_id"] for row in rows_where(ledger, page_jobs, site=site_name)}
    theirs = {row["page_job_id"] for row in rows_where(ledger, page_jobs, site=other)}
    assert len(ours | theirs) == 4


def test_five_thousand_rows_are_taken_in_as_a_whole(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(5_000)
    assert take_in(ledger, settings_of(site_name), rows).wanted == 5_000
    with ledger.begin() as connection:
        logged = connection.execute(
            select(func.count())
            .select_from(transitions)
            .join(page_jobs, page_jobs.c.page_job_id == transitions.c.page_job_id)
            .where(page_jobs.c.site == site_name)
        ).scalar_one()
    assert logged == 5_000
    changed = with_river(rows, "Rhine", "t4999")
    taken = take_in(ledger, settings_of(site_name), changed)
    assert (taken.wanted, taken.unchanged) == (1, 4_999)


def test_a_revived_draft_is_published_as_a_newer_revision(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(1)
    take_in(ledger, settings_of(site_name), rows)
    first, lease = job_in(ledger, site_name, S.GENERATED)
    take_in(ledger, settings_of(site_name), with_river(rows, "Rhine"))
    moved(ledger, first, lease, S.SUPERSEDED)
    let_go(ledger, lease)
    second, _ = job_in(ledger, site_name, S.GENERATED)
    assert second.revision == 2
    take_in(ledger, settings_of(site_name), rows)
    assert current_job(ledger, site_name)["revision"] == 3
    kept = rows_where(ledger, draft_revisions, page_id=first.page_id)
    assert sorted((row["revision"], row["copied_from_revision"]) for row in kept) == [
        (1, None),
        (2, None),
        (3, 1),
    ]
