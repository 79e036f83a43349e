"""A page's deadline: set when it is wanted, renewed when it is wanted anew, and not otherwise."""

from datetime import timedelta

import pytest
from sqlalchemy import text, update

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.site import SiteSettings
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import deadlines, intake, migrate, regenerations, resting
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import page_jobs, seconds_from_now
from content_pipeline_tests.ledger.conftest import MakeDatabase
from content_pipeline_tests.ledger.wanting import (
    current_job,
    job_in,
    leased,
    let_go,
    moved,
    take_in,
    wanted,
)
from content_pipeline_tests.operations.small_site import rows_of, settings_of

S = PageJobState
TWO_WEEKS_S = 14 * 86_400.0
FAILED = Failure(failure_class=FailureClass.TRANSIENT, message="it failed")


def left_s(ledger: Ledger, site: str, topic: str = "t0") -> float:
    with ledger.begin() as connection:
        return deadlines.left_s(connection, current_job(ledger, site, topic)["page_job_id"])


def use_up(ledger: Ledger, site: str) -> None:
    """Let all the time of the site's pages pass."""
    with ledger.begin() as connection:
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.site == site)
            .values(deadline_at=seconds_from_now(-60))
        )


def short(site: str, seconds: float) -> SiteSettings:
    return settings_of(site, lane={"page_deadline_s": seconds})


def assert_about(found_s: float, seconds: float) -> None:
    assert seconds - 60 < found_s <= seconds


def test_a_wanted_page_has_the_time_that_its_site_gives(ledger: Ledger, site_name: str) -> None:
    take_in(ledger, short(site_name, 10_000), rows_of(3))
    for topic in ("t0", "t1", "t2"):
        assert_about(left_s(ledger, site_name, topic), 10_000)


def test_the_time_of_a_site_is_two_weeks_unless_it_says_otherwise(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    assert_about(left_s(ledger, site_name), TWO_WEEKS_S)


def test_a_deadline_that_has_passed_is_told_as_such(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    use_up(ledger, site_name)
    assert -120 < left_s(ledger, site_name) <= -60


def test_asking_again_for_a_page_that_is_wanted_gives_no_more_time(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    use_up(ledger, site_name)
    wanted(ledger, site_name, rows_of(1))
    assert left_s(ledger, site_name) < 0


@pytest.mark.parametrize("state", [S.QUEUED, S.FAILED_RETRYABLE, S.GENERATED, S.SUPERSEDED])
def test_a_page_that_is_wanted_once_more_has_all_its_time_again(
    state: PageJobState, ledger: Ledger, site_name: str
) -> None:
    (row,) = rows_of(1)
    wanted(ledger, site_name, [row])
    if state is not S.QUEUED:
        _, lease = job_in(ledger, site_name, state)
        let_go(ledger, lease)
    wanted(ledger, site_name, [row | {"population": "9"}])
    use_up(ledger, site_name)
    wanted(ledger, site_name, [row])
    assert_about(left_s(ledger, site_name), TWO_WEEKS_S)


@pytest.mark.parametrize("state", [S.FAILED_TERMINAL, S.DEAD_LETTERED, S.CANCELLED])
def test_a_repaired_page_has_all_the_time_that_its_site_gives_now(
    state: PageJobState, ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    job, lease = job_in(ledger, site_name, state)
    let_go(ledger, lease)
    use_up(ledger, site_name)
    take_in(ledger, short(site_name, 20_000), rows_of(1))
    with ledger.begin() as connection:
        assert resting.move_resting(
            connection, job.page_job_id, sources=[state], worker="a person", next_epoch=True
        )
    assert_about(left_s(ledger, site_name), 20_000)


def test_a_page_made_anew_has_time_of_its_own(ledger: Ledger, site_name: str) -> None:
    take_in(ledger, short(site_name, 20_000), rows_of(1))
    job, lease = leased(ledger, site_name)
    moved(ledger, job, lease, S.CANCELLED)
    use_up(ledger, site_name)
    with ledger.begin() as connection:
        intake.lock(connection, site_name)
        new = regenerations.begin_anew(
            connection, job.page_job_id, why="made anew: test", requested_by="a person"
        )
    assert current_job(ledger, site_name)["page_job_id"] == new
    assert_about(left_s(ledger, site_name), 20_000)


def test_moving_on_gives_no_more_time(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    before = current_job(ledger, site_name)["deadline_at"]
    job, lease = leased(ledger, site_name)
    moved(ledger, job, lease, S.FAILED_RETRYABLE, S.QUEUED, S.RESERVED, S.GENERATING)
    assert current_job(ledger, site_name)["deadline_at"] == before


def test_renewing_nothing_changes_nothing(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    use_up(ledger, site_name)
    with ledger.begin() as connection:
        deadlines.renew(connection, [])
    assert left_s(ledger, site_name) < 0


OLD_JOB = """
INSERT INTO content_pipeline.sites (site, title, base_url, owner) VALUES ('s', 't', 'b', 'o');
INSERT INTO content_pipeline.pages (page_id, site, path, topic_key) VALUES ('p', 's', '/p/', 'k');
INSERT INTO content_pipeline.topics (site, topic_key, name, row_number, status, input_hash)
VALUES ('s', 'k', 'n', 1, 'active', 'h');
INSERT INTO content_pipeline.page_jobs (page_job_id, site, topic_key, page_id, state, input_hash,
    input_columns, generation_version, owner, requested_by)
VALUES ('j', 's', 'k', 'p', 'queued', 'h', '{}', 'v', 'o', 'test');
INSERT INTO content_pipeline.transitions (page_job_id, sequence, to_state, why, worker)
VALUES ('j', 1, 'queued', 'asked for', 'test');
"""


def test_pages_from_before_deadlines_have_two_weeks_from_the_update_on(
    make_database: MakeDatabase,
) -> None:
    engine = make_database()
    with engine.begin() as connection:
        migrate.run_migrations(connection, "0006")
    with engine.begin() as connection:
        for statement in OLD_JOB.strip().split(";\n"):
            connection.execute(text(statement))
    with engine.begin() as connection:
        migrate.run_migrations(connection)
    with engine.begin() as connection:
        age, needs = connection.execute(
            text(
                "SELECT deadline_at - clock_timestamp(), waits_for_usd "
                "FROM content_pipeline.page_jobs"
            )
        ).one()
    assert timedelta(days=13, hours=23) < age <= timedelta(days=14)
    assert needs is None
