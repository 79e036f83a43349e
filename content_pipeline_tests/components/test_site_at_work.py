"""Opening a site for a run, and what errors become."""

import dagster as dg
import pytest
from sqlalchemy import text

from content_pipeline.components.site_at_work import site_at_work
from content_pipeline.core.errors import DatabaseUnavailable, TopicTableError
from content_pipeline.postgres.urls import VARIABLE
from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of

CANARY = "what a model wrote"


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> TownSite:
    return make_site(rows_of(1))


def _failing(site: TownSite, error: Exception) -> dg.Failure:
    with pytest.raises(dg.Failure) as caught, site_at_work(site.site, "run 1"):
        raise error
    assert caught.value.allow_retries is False
    assert caught.value.__suppress_context__
    return caught.value


def test_the_run_is_named_in_the_records_of_its_work(site: TownSite) -> None:
    with site_at_work(site.site, "run 1") as runtime:
        assert runtime.run_id == "run 1"
        assert ":dagster:" in runtime.worker


def test_what_a_person_must_correct_is_said_in_its_own_words(site: TownSite) -> None:
    assert _failing(site, TopicTableError("topics.csv is empty")).description == (
        "topics.csv is empty"
    )


def test_a_fault_of_ours_is_told_by_type_and_place_and_never_by_its_text(site: TownSite) -> None:
    said = _failing(site, KeyError(CANARY)).description or ""
    assert said.startswith("KeyError at ")
    assert "please report it" in said
    assert CANARY not in said


def test_a_database_lost_in_the_middle_is_not_called_a_fault_of_ours(site: TownSite) -> None:
    with (
        pytest.raises(dg.Failure) as caught,
        site_at_work(site.site, "run 1") as runtime,
        runtime.ledger.begin() as connection,
    ):
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    said = caught.value.description or ""
    assert said.startswith("the database failed in the middle of the work: ")
    assert "Nothing is lost" in said
    assert caught.value.allow_retries is False
    assert caught.value.__suppress_context__  # the database quotes what it was sent


def test_a_failure_of_the_work_passes_as_it_is(site: TownSite) -> None:
    failure = dg.Failure("2 pages need a person", metadata={"pages": 2}, allow_retries=False)
    with pytest.raises(dg.Failure) as caught, site_at_work(site.site, "run 1"):
        raise failure
    assert caught.value is failure


def test_only_a_database_that_does_not_answer_at_the_start_is_left_to_the_retry_policy(
    site: TownSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(DatabaseUnavailable), site_at_work(site.site, "run 1"):
        pass


def test_a_model_without_a_price_ends_the_run_before_anything_is_done(make_site: MakeSite) -> None:
    generation = {"provider": "sandbox", "model": "sandbox-without-price"}
    site = make_site(rows_of(1), generation=generation)
    with pytest.raises(dg.Failure, match="price") as caught, site_at_work(site.site, "run 1"):
        pass
    assert caught.value.allow_retries is False


def test_connections_are_closed_afterwards(site: TownSite) -> None:
    with site_at_work(site.site, "run 1") as runtime, runtime.ledger.begin() as connection:
        pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    left = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
    for _ in range(100):  # the server notices a moment later
        with site.ledger.begin() as connection:
            if connection.execute(left, {"pid": pid}).scalar_one() == 0:
                return
    pytest.fail("the connection is still there")
