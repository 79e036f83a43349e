"""Sizes of tables: the planner learns of many new rows when they are taken in."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text

from content_pipeline.core.topics import RejectedRow
from content_pipeline.ledger import migrate, planner, site_changes
from content_pipeline.ledger.database import Ledger, create_ledger_engine
from content_pipeline.ledger.schema import pages, transitions
from content_pipeline_tests.ledger.conftest import MakeDatabase
from content_pipeline_tests.ledger.wanting import rows_where, take_in
from content_pipeline_tests.operations.fakes import ScriptedModel, remote_page
from content_pipeline_tests.operations.published_site import prove_all, want
from content_pipeline_tests.operations.small_site import (
    Parts,
    rows_of,
    runtime_of,
    settings_of,
    site_of,
)

SOME, MANY = 5, 40
COUNTED = ("topics", "pages", "page_jobs", "transitions")


@pytest.fixture
def own_ledger(make_database: MakeDatabase) -> Iterator[Ledger]:
    """A ledger whose sizes nobody else changes."""
    engine = make_database()
    migrate.upgrade(engine)
    ledger = Ledger(create_ledger_engine(engine.url.render_as_string(hide_password=False)))
    yield ledger
    ledger.dispose()


def known_sizes(engine: Engine) -> dict[str, int]:
    """What the planner takes each table's size for; -1: it was never counted."""
    with engine.begin() as connection:
        rows = connection.execute(
            text(
                "SELECT relname, reltuples FROM pg_class "
                "WHERE relnamespace = 'content_pipeline'::regnamespace AND relname = ANY(:names)"
            ),
            {"names": list(COUNTED)},
        )
        return {row.relname: int(row.reltuples) for row in rows}


def test_the_planner_learns_of_many_new_rows_at_once_and_of_few_in_its_own_time(
    own_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "COUNTED_FROM", MANY)
    take_in(own_ledger, settings_of("small"), rows_of(SOME))
    assert known_sizes(own_ledger.engine) == dict.fromkeys(COUNTED, -1)
    take_in(own_ledger, settings_of("large"), rows_of(MANY))
    assert known_sizes(own_ledger.engine) == dict.fromkeys(COUNTED, SOME + MANY)
    assert len(rows_where(own_ledger, transitions)) == SOME + MANY


def test_refused_rows_count_once_and_asking_again_counts_nothing(
    own_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "COUNTED_FROM", MANY)
    site = settings_of("refused")
    bad = [
        RejectedRow(row_number=n, key=f"k{n}", message=f"row {n} (k{n}): empty")
        for n in range(MANY)
    ]
    take_in(own_ledger, site, [], rejected=bad)
    assert known_sizes(own_ledger.engine)["page_jobs"] == MANY
    take_in(own_ledger, settings_of("small"), rows_of(SOME))
    take_in(own_ledger, site, [], rejected=bad)
    assert known_sizes(own_ledger.engine)["page_jobs"] == MANY, "nothing new, nothing counted"


# --- what a survey asks -------------------------------------------------------------------------

SITE = "surveyed"
SLICE = 100

Plan = Mapping[str, Any]


@pytest.fixture
def surveyed(own_ledger: Ledger, tmp_path: Path) -> Ledger:
    """As many published pages as the planner counts, counted before any of them was published."""
    parts = Parts(
        site=site_of(settings_of(SITE)),
        ledger=own_ledger,
        model=ScriptedModel(),
        folder=tmp_path,
        hooks=(),
    )
    runtime = runtime_of(parts)
    documents = want(runtime, rows_of(planner.COUNTED_FROM))
    held = {each.marker.page_id: remote_page(each.path, each.marker) for each in documents}
    prove_all(runtime, documents, held)
    return own_ledger


def plan_of(ledger: Ledger, asks: Callable[[Connection], object]) -> Plan:
    """How the one statement of ``asks`` was carried out, with the rows that each step read."""
    said: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, values: Any, *_: object) -> None:
        said.append((statement, values))

    with ledger.begin() as connection:
        event.listen(connection, "before_cursor_execute", note)
        asks(connection)
        ((statement, values),) = said
        cursor = connection.connection.cursor()
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)
        ((found,),) = cursor.fetchall()
    plan: Plan = found[0]["Plan"]
    return plan


def rows_read(plan: Plan, table: str) -> float:
    """Rows of ``table`` that were looked at, kept or not."""
    own = 0.0
    if plan.get("Relation Name") == table and "Scan" in plan["Node Type"]:
        each = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        own = each * plan["Actual Loops"]
    return own + sum(rows_read(part, table) for part in plan.get("Plans", ()))


def test_a_survey_reads_no_more_than_the_pages_it_asks_about(surveyed: Ledger) -> None:
    remote_ids = [f"remote:/aarau-{9 * number}/" for number in range(SLICE)]
    (page,) = rows_where(surveyed, pages, site=SITE, path="/aarau-0/")

    def a_slice(connection: Connection) -> None:
        found = site_changes.known_by_remote_id(connection, SITE, remote_ids)
        assert len(found) == SLICE
        assert all(page.page_job_id is not None for page in found.values())

    plan = plan_of(surveyed, a_slice)
    assert (rows_read(plan, "pages"), rows_read(plan, "page_jobs")) == (SLICE, SLICE)
    plan = plan_of(surveyed, lambda c: site_changes.mark_listed(c, SITE, remote_ids))
    assert rows_read(plan, "pages") == SLICE
    plan = plan_of(surveyed, lambda c: site_changes.known_by_page_id(c, SITE, page["page_id"]))
    assert (rows_read(plan, "pages"), rows_read(plan, "page_jobs")) == (1, 1)
    plan = plan_of(surveyed, lambda c: site_changes.waiting(c, SITE))
    assert rows_read(plan, "pages") == 0
