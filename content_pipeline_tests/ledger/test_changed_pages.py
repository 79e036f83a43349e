"""Changed pages are read in their order, from an index, and none that commits late is missed."""

from datetime import UTC, datetime

import pytest

from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import changed_pages as changes
from content_pipeline.ledger.changed_pages import ChangedPage, Position
from content_pipeline.ledger.database import Ledger
from content_pipeline_tests.ledger.plans import (
    as_on_a_large_site,
    indexes,
    nodes,
    plan_of,
    said_by,
    shown,
)
from content_pipeline_tests.ledger.wanting import job_in, let_go, move_once, take_in
from content_pipeline_tests.operations.small_site import rows_of, settings_of

THE_BEGIN = Position(at=datetime(1970, 1, 1, tzinfo=UTC))


def read(
    ledger: Ledger, site: str, since: Position = THE_BEGIN, *, settled_s: float = 0, most: int = 9
) -> list[ChangedPage]:
    with ledger.begin() as connection:
        return list(changes.changed_pages(connection, site, since, settled_s=settled_s, most=most))


@pytest.mark.parametrize("job", ["", "a1b2"])
def test_a_position_is_what_was_written(job: str) -> None:
    position = Position(at=datetime(2026, 3, 1, 2, 0, 0, 17, tzinfo=UTC), page_job_id=job)
    assert Position.parse(str(position)) == position


def test_pages_are_read_in_the_order_of_their_last_move_by_whom(
    ledger: Ledger, site_name: str
) -> None:
    take_in(ledger, settings_of(site_name), rows_of(3))
    assert read(ledger, site_name) == [], "of a page that only waits for its begin is nothing told"
    for topic in ("t1", "t0"):
        _, lease = job_in(ledger, site_name, PageJobState.GENERATED, topic)
        let_go(ledger, lease)
    first, second = read(ledger, site_name)
    assert (first.topic_key, second.topic_key) == ("t1", "t0")
    assert first.mover == lease.worker
    assert read(ledger, site_name, most=1) == [first]
    assert read(ledger, site_name, first.position) == [second]
    assert read(ledger, site_name, second.position) == []
    assert read(ledger, site_name, settled_s=3600) == []


def test_nothing_is_read_past_what_is_still_to_be_committed(ledger: Ledger, site_name: str) -> None:
    take_in(ledger, settings_of(site_name), rows_of(2))
    late, lease = job_in(ledger, site_name, PageJobState.GENERATED, "t0")
    with ledger.fenced(lease) as slow:
        move_once(slow, late, lease, PageJobState.VALIDATING)
        _, other = job_in(ledger, site_name, PageJobState.GENERATED, "t1")
        let_go(ledger, other)
        seen = read(ledger, site_name)
        assert "t1" not in {page.topic_key for page in seen}
    since = seen[-1].position if seen else THE_BEGIN
    assert [page.topic_key for page in read(ledger, site_name, since)] == ["t0", "t1"]


def test_the_changes_of_a_large_site_come_from_an_index(ledger: Ledger, site_name: str) -> None:
    take_in(ledger, settings_of(site_name), rows_of(1))
    with ledger.begin() as connection:
        as_on_a_large_site(connection)
        said = said_by(
            connection,
            lambda asked: changes.changed_pages(asked, site_name, THE_BEGIN, settled_s=0, most=9),
        )
        plan = plan_of(connection, said[-1])
    assert "page_jobs_changed_idx" in indexes(plan), shown(plan)
    assert "Sort" not in {node["Node Type"] for node in nodes(plan)}, shown(plan)
