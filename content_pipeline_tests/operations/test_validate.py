"""Validation: a draft that breaks a rule is never published, and costs nothing more."""

from collections import deque

import pytest

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import GenerationRequest, RawResponse
from content_pipeline.core.states import PageJobState
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.fakes import ARTICLE, ScriptedCMS, ScriptedModel

S = PageJobState


def silent_on_facts(_request: GenerationRequest) -> RawResponse:
    """A good article that states nothing it was given."""
    return RawResponse(status=200, headers={}, body=ARTICLE.model_dump_json().encode())


def test_a_fit_draft_is_published(make_bench: MakeBench) -> None:
    cms = ScriptedCMS()
    bench = make_bench(model=ScriptedModel(), cms=cms)
    bench.submit()
    assert bench.step().state is S.PUBLISHED
    assert cms.writes == [("/aarau-0/", 1)]


def test_a_draft_that_does_not_state_its_facts_needs_a_person(make_bench: MakeBench) -> None:
    model, cms = ScriptedModel(on_send=deque([silent_on_facts])), ScriptedCMS()
    bench = make_bench(model=model, cms=cms)
    bench.submit()
    assert bench.step().state is S.FAILED_TERMINAL
    report = bench.report()
    assert report.failure_class is FailureClass.INVALID_PAGE
    message = report.failure_message or ""
    for label in ("Name", "Canton", "Population"):
        assert f"does not state {label}" in message
    assert "A town" not in message  # the model's own text stays out of messages
    bench.run()
    assert (len(model.sent), cms.looks) == (1, 0)
    assert bench.spend() == ["settled"]
    assert bench.history()[-2:] == ["validating", "failed_terminal"]


def test_many_findings_are_summed_up(make_bench: MakeBench) -> None:
    model = ScriptedModel(on_send=deque([silent_on_facts]))
    rules = {
        "min_words": 2_000,
        "max_title_characters": 10,
        "min_meta_description_characters": 160,
        "min_sections": 5,
    }
    bench = make_bench(model=model, article={"rules": rules})
    bench.submit()
    bench.step()
    message = bench.report().failure_message or ""
    assert message.count(";") == 5
    assert message.endswith("and 1 more")


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_rule_stays_broken_whatever_the_policy_asks_for(
    attempts: int, make_bench: MakeBench
) -> None:
    model = ScriptedModel(on_send=deque([silent_on_facts]))
    bench = make_bench(
        model=model, retries={"invalid_page": {"attempts": attempts, "then_dead_letter": False}}
    )
    bench.submit_and_run()
    assert bench.states() == {"t0": "failed_terminal"}
    assert bench.report().failure_class is FailureClass.INVALID_PAGE
    assert len(model.sent) == 1


def test_a_crash_while_validating_only_repeats_it(make_bench: MakeBench) -> None:
    model, cms = ScriptedModel(), ScriptedCMS()
    bench = make_bench(model=model, cms=cms)
    bench.submit()
    bench.step(until=S.GENERATED)
    bench.leave_in(S.VALIDATING)
    assert bench.step().state is S.PUBLISHED
    assert (len(model.sent), cms.writes) == (1, [("/aarau-0/", 1)])
