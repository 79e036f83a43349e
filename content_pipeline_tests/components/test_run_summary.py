"""What a run leaves to tell."""

from decimal import Decimal
from typing import Any

import pytest

from content_pipeline.components.run_summary import RunSummary, last_of
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import ALL_STAGES, PageJobState, Stage
from content_pipeline.ledger.overview import Work
from content_pipeline.ledger.routes import RouteReport
from content_pipeline_tests.components.page_reports import NOON, failed, page

S = PageJobState

WORK = Work(
    generate_attempts=3,
    publish_attempts=2,
    input_tokens=1_000,
    output_tokens=2_500,
    usd=Decimal("0.0125"),
    uncertain_usd=Decimal(0),
)


def summary(**changes: Any) -> RunSummary:
    values: dict[str, Any] = {
        "stages": ALL_STAGES,
        "pages": [
            page(S.PUBLISHED, topic_key="a", revision=1),
            page(S.PUBLISHED, topic_key="b", revision=1),
            page(S.FAILED_RETRYABLE, topic_key="c"),
        ],
        "unknown": [],
        "made": frozenset({"a"}),
        "work": WORK,
        "complaint": "",
        "closed_routes": [],
        "interrupted": False,
    }
    return RunSummary(**(values | changes))


def route(**changes: Any) -> RouteReport:
    values: dict[str, Any] = {
        "route": "sandbox",
        "paused_until": None,
        "reason": "slow down",
        "circuit_opened_at": None,
    }
    return RouteReport(**(values | changes))


def test_a_pause_is_told_and_is_no_failure() -> None:
    found = summary(closed_routes=[route(paused_until=NOON)])
    assert found.line().endswith("; sandbox is closed: slow down")
    assert found.failure() is None


def test_each_page_is_counted_once() -> None:
    found = summary(
        pages=[
            *summary().pages,
            failed(FailureClass.POLICY, topic_key="d"),
            page(S.CANCELLED, topic_key="e"),
        ],
        unknown=["ghost"],
    )
    assert found.counts() == {
        "published": 1,
        "reused": 1,
        "waiting": 1,
        "failed": 2,
        "stopped": 1,
    }


@pytest.mark.parametrize(
    ("stages", "word"),
    [
        ({Stage.DRAFT}, "drafted"),
        ({Stage.DRAFT, Stage.PAGE}, "validated"),
        ({Stage.ARTIFACT}, "published"),
    ],
)
def test_what_was_done_is_named_after_the_last_asset(stages: set[Stage], word: str) -> None:
    assert next(iter(summary(stages=frozenset(stages)).counts())) == word


def test_pages_that_wait_do_not_end_a_run_as_failed() -> None:
    assert summary().failure() is None


def test_the_line_tells_pages_calls_tokens_and_dollars() -> None:
    assert summary().line() == (
        "1 published, 1 reused, 1 waiting; 3 paid calls, 2 publishes; "
        "1,000 tokens in, 2,500 out; $0.0125"
    )


def test_the_line_tells_what_may_not_have_been_billed() -> None:
    work = Work(
        generate_attempts=1,
        publish_attempts=0,
        input_tokens=0,
        output_tokens=0,
        usd=Decimal("0.0300"),
        uncertain_usd=Decimal("0.0300"),
    )
    line = summary(pages=[], work=work).line()
    assert line.startswith("no pages; ")
    assert line.endswith("$0.0300, $0.0300 of it uncertain")


def test_tags_leave_out_what_did_not_occur() -> None:
    assert summary().tags() == {
        "pages/published": "1",
        "pages/reused": "1",
        "pages/waiting": "1",
        "cost_usd": "0.0125",
        "tokens": "3500",
    }


def test_a_failure_names_a_few_pages_and_lists_all_in_its_table() -> None:
    many = [failed(FailureClass.CONFLICT, topic_key=f"k{number}") for number in range(7)]
    failure = summary(pages=many).failure()
    assert failure is not None
    assert failure.description == (
        "7 of 7 pages need a person: k0 (conflict), k1 (conflict), k2 (conflict), k3 (conflict), "
        "k4 (conflict), …"
    )
    assert failure.allow_retries is False
    assert len(failure.metadata["pages"].value.records) == 7  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"pages": [failed(FailureClass.POLICY)]},
            "1 of 1 pages needs a person: t01 (policy)",
        ),
        ({"unknown": ["x", "y"]}, "2 partitions are no topics of the table: x, y"),
        ({"complaint": "not announced: sitemap: full"}, "not announced: sitemap: full"),
        (
            {"closed_routes": [route(circuit_opened_at=NOON, reason="quota: no credit left")]},
            "sandbox is closed: quota: no credit left; "
            "put it in order, then `content-pipeline resume`",
        ),
        ({"interrupted": True}, "the run was stopped; 1 pages go on with the next one"),
        (
            {"unknown": ["x"], "interrupted": True},
            "1 partitions are no topics of the table: x. "
            "the run was stopped; 1 pages go on with the next one",
        ),
    ],
)
def test_a_run_fails_for_everything_that_somebody_should_know(
    changes: dict[str, Any], said: str
) -> None:
    failure = summary(**changes).failure()
    assert failure is not None
    assert failure.description == said
    assert failure.metadata["run"].value == summary(**changes).line()


def test_a_page_with_a_draft_is_no_failure_of_a_run_that_wanted_drafts() -> None:
    broken = failed(FailureClass.INVALID_PAGE, revision=1)
    assert summary(pages=[broken], stages=frozenset({Stage.DRAFT})).failure() is None
    assert summary(pages=[broken]).failure() is not None


def test_pages_that_are_only_counted_stand_beside_those_that_are_known() -> None:
    besides = {"published": 40, "reused": 900, "waiting": 3, "failed": 7}
    found = summary(
        pages=[failed(FailureClass.INVALID_PAGE, topic_key="a")], made=frozenset(), besides=besides
    )
    assert found.counts() == {
        "published": 40,
        "reused": 900,
        "waiting": 3,
        "failed": 8,
        "stopped": 0,
    }
    failure = found.failure()
    assert failure is not None
    assert (failure.description or "").startswith(
        "8 of 951 pages need a person: a (invalid_page), …"
    )


def test_pages_that_are_only_counted_and_well_make_no_failure() -> None:
    assert summary(pages=[], made=frozenset(), besides={"reused": 5}).failure() is None


@pytest.mark.parametrize(
    ("stages", "last"),
    [
        (ALL_STAGES, Stage.ARTIFACT),
        (frozenset({Stage.DRAFT}), Stage.DRAFT),
        (frozenset({Stage.PAGE, Stage.DRAFT}), Stage.PAGE),
    ],
)
def test_a_run_is_counted_by_the_last_of_its_stages(stages: frozenset[Stage], last: Stage) -> None:
    assert last_of(stages) is last
