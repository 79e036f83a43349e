"""Sizes of tables: the planner learns of many new rows when they are taken in."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from content_pipeline.core.topics import RejectedRow
from content_pipeline.ledger import migrate, planner
from content_pipeline.ledger.database import Ledger, create_ledger_engine
from content_pipeline.ledger.schema import transitions
from content_pipeline_tests.ledger.conftest import MakeDatabase
from content_pipeline_tests.ledger.wanting import rows_where, take_in
from content_pipeline_tests.operations.small_site import rows_of, settings_of

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
