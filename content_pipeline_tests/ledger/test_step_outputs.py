"""Outputs of a chain's steps: kept for good, and found by the question that they answer."""

from typing import Any

import pytest

from content_pipeline.core.identity import digest
from content_pipeline.ledger import jobs, step_outputs
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import step_outputs as output_rows
from content_pipeline.ledger.step_outputs import StepOutput
from content_pipeline_tests.ledger.wanting import current_job, rows_where, take_in, wanted
from content_pipeline_tests.operations.small_site import rows_of, settings_of


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    wanted(ledger, site_name, rows_of(2))
    return site_name


def wanted_job(ledger: Ledger, site: str, topic: str = "t0") -> PageJob:
    """The page job that the topic wants now."""
    with ledger.begin() as connection:
        return jobs.load(connection, current_job(ledger, site, topic)["page_job_id"])


@pytest.fixture
def job(ledger: Ledger, site: str) -> PageJob:
    return wanted_job(ledger, site)


def newer_job(ledger: Ledger, site: str) -> PageJob:
    """Another page job of the same page: the input has changed."""
    rows = rows_of(2)
    take_in(ledger, settings_of(site), [rows[0] | {"river": "Rhine"}, rows[1]])
    return wanted_job(ledger, site)


def store(
    ledger: Ledger,
    job: PageJob,
    output: Any,
    *,
    step: str = "outline",
    key: str = "key",
    attempt: str = "attempt",
) -> None:
    """Keep an output in a transaction of its own."""
    with ledger.begin() as connection:
        step_outputs.store(
            connection, job, step=step, step_key=key, attempt_id=attempt, output=output
        )


def stored(ledger: Ledger, job: PageJob) -> list[StepOutput]:
    with ledger.begin() as connection:
        return step_outputs.of_page(connection, job.page_id)


def test_what_is_stored_is_found_with_where_it_came_from(ledger: Ledger, job: PageJob) -> None:
    assert stored(ledger, job) == []
    store(ledger, job, {"points": ["a", "b"]})
    assert stored(ledger, job) == [
        StepOutput(
            page_job_id=job.page_job_id,
            step="outline",
            step_key="key",
            attempt_id="attempt",
            output={"points": ["a", "b"]},
        )
    ]
    (row,) = rows_where(ledger, output_rows, page_job_id=job.page_job_id)
    assert row["output_hash"] == digest("output", {"points": ["a", "b"]})


@pytest.mark.parametrize(
    "output", [{}, [], "text", 1, 0.5, True, None, {"a": [{"b": "ü 漢 \u2028"}]}]
)
def test_an_output_is_any_json_value(output: Any, ledger: Ledger, job: PageJob) -> None:
    store(ledger, job, output)
    (found,) = stored(ledger, job)
    assert found.output == output


def test_a_second_answer_to_the_same_question_changes_nothing(ledger: Ledger, job: PageJob) -> None:
    store(ledger, job, "first", attempt="one")
    store(ledger, job, "second", attempt="two")
    (found,) = stored(ledger, job)
    assert (found.output, found.attempt_id) == ("first", "one")


def test_another_question_of_the_same_step_is_another_output(ledger: Ledger, job: PageJob) -> None:
    store(ledger, job, "plain", key="plain")
    store(ledger, job, "with findings", key="with findings")
    assert [found.output for found in stored(ledger, job)] == ["with findings", "plain"]


def test_the_newest_comes_first(ledger: Ledger, job: PageJob) -> None:
    for step in ("outline", "text", "opinion"):
        store(ledger, job, step, step=step)
    assert [found.step for found in stored(ledger, job)] == ["opinion", "text", "outline"]


def test_another_job_of_the_page_takes_over_what_was_paid_for(
    ledger: Ledger, site: str, job: PageJob
) -> None:
    store(ledger, job, "outline", attempt="paid")
    later = newer_job(ledger, site)
    assert (later.page_id, later.page_job_id != job.page_job_id) == (job.page_id, True)
    (found,) = stored(ledger, later)
    for _ in range(2):
        with ledger.begin() as connection:
            step_outputs.take_over(connection, later, [found])
    assert {item.page_job_id for item in stored(ledger, later)} == {
        job.page_job_id,
        later.page_job_id,
    }
    (row,) = rows_where(ledger, output_rows, page_job_id=later.page_job_id)
    assert (row["attempt_id"], row["output"], row["step_key"]) == ("paid", "outline", "key")


def test_taking_over_nothing_or_ones_own_writes_nothing(ledger: Ledger, job: PageJob) -> None:
    store(ledger, job, "outline")
    before = rows_where(ledger, output_rows, page_id=job.page_id)
    with ledger.begin() as connection:
        step_outputs.take_over(connection, job, [])
        step_outputs.take_over(connection, job, step_outputs.of_page(connection, job.page_id))
    assert rows_where(ledger, output_rows, page_id=job.page_id) == before


def test_another_page_has_nothing_of_it(ledger: Ledger, site: str, job: PageJob) -> None:
    store(ledger, job, "outline")
    assert stored(ledger, wanted_job(ledger, site, "t1")) == []
