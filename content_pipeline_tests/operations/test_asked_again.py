"""A draft that breaks rules: asked for once more with the findings, where the site pays for it."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import (
    GenerationLookUp,
    GenerationRequest,
    RawResponse,
    Verdict,
)
from content_pipeline.core.prompts import RULES_OPEN
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, rejections
from content_pipeline.ledger.schema import AttemptKind, step_outputs
from content_pipeline.operations.repair import retry
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    ARTICLE,
    ScriptedCMS,
    ScriptedModel,
    article_answer,
    call_raises,
)
from content_pipeline_tests.operations.small_site import settings_of, site_of

S = PageJobState
Answer = Callable[[GenerationRequest], RawResponse]


def silent_on_facts(_request: GenerationRequest) -> RawResponse:
    """A good article that states nothing it was given."""
    return RawResponse(status=200, headers={}, body=ARTICLE.model_dump_json().encode())


def fails(failure_class: FailureClass) -> Answer:
    return call_raises(CallFailed(Failure(failure_class=failure_class, message="as scripted")))


def bench_of(
    make_bench: MakeBench, *answers: Answer, regenerations: int = 1, **more: Any
) -> tuple[Bench, ScriptedModel, ScriptedCMS]:
    model, cms = ScriptedModel(on_send=deque(answers), **more), ScriptedCMS()
    bench = make_bench(model=model, cms=cms, article={"regenerations": regenerations})
    bench.submit()
    return bench, model, cms


def rejected(bench: Bench) -> list[tuple[int, bool]]:
    """Revision and whether another was asked for, of each rejected draft."""
    with bench.ledger.begin() as connection:
        found = rejections.of_job(connection, bench.report().page_job_id)
    return [(item.revision, item.is_asked_again) for item in found]


def test_a_second_draft_is_asked_for_with_the_findings_and_published(
    make_bench: MakeBench,
) -> None:
    bench, model, cms = bench_of(make_bench, silent_on_facts)
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    first, second = model.sent
    assert second.user.startswith(first.user)
    assert RULES_OPEN not in first.user
    for label in ("Name", "Canton", "Population"):
        assert f"states_fact: the page does not state {label}" in second.user
    assert ARTICLE.introduction[:20] not in second.user
    assert second.max_output_tokens == first.max_output_tokens
    assert second.page_job_id == first.page_job_id
    assert second.attempt_id != first.attempt_id
    assert cms.writes == [("/aarau-0/", 2)]
    assert bench.spend() == ["settled", "settled"]
    assert [state for _, state, _ in bench.attempts()] == ["succeeded"] * 3
    assert bench.history()[4:9] == ["validating", "queued", "reserved", "generating", "generated"]
    assert rejected(bench) == [(1, True)]


def test_a_second_bad_draft_goes_to_a_person_with_both(make_bench: MakeBench) -> None:
    bench, model, cms = bench_of(make_bench, silent_on_facts, silent_on_facts)
    bench.submit_and_run()
    assert bench.states() == {"t0": "dead_lettered"}
    assert (len(model.sent), cms.looks) == (2, 0)
    report = bench.report()
    assert report.failure_class is FailureClass.INVALID_PAGE
    assert "does not state Name" in (report.failure_message or "")
    assert rejected(bench) == [(1, True), (2, False)]
    bench.run()
    bench.submit_and_run()
    assert len(model.sent) == 2


def test_a_site_that_does_not_pay_for_it_asks_once(make_bench: MakeBench) -> None:
    bench, model, _ = bench_of(make_bench, silent_on_facts, regenerations=0)
    bench.submit_and_run()
    assert bench.states() == {"t0": "failed_terminal"}
    assert len(model.sent) == 1
    assert rejected(bench) == [(1, False)]


def test_a_persons_retry_checks_again_and_does_not_pay_again(make_bench: MakeBench) -> None:
    bench, model, cms = bench_of(make_bench, silent_on_facts, silent_on_facts)
    bench.submit_and_run()
    retry(bench.ledger, bench.name, "t0", cause="let us see")
    assert bench.step().state is S.DEAD_LETTERED
    assert len(model.sent) == 2
    bench.change(article={"must_state": []})
    retry(bench.ledger, bench.name, "t0", cause="the rule was wrong")
    assert bench.step().state is S.PUBLISHED
    assert (len(model.sent), cms.writes) == (2, [("/aarau-0/", 2)])


def test_a_call_that_fails_in_between_is_retried_with_the_same_question(
    make_bench: MakeBench,
) -> None:
    bench, model, _ = bench_of(
        make_bench, silent_on_facts, fails(FailureClass.NOT_SENT), fails(FailureClass.THROTTLED)
    )
    bench.step()
    assert bench.report().revision is None  # so nothing takes the wait for that of a publish
    bench.step()
    assert bench.step().state is S.PUBLISHED
    assert len({request.user for request in model.sent[1:]}) == 1
    assert len(model.sent) == 4


@pytest.mark.parametrize("checkpoint", ["call_answered", "answer_saved", "draft_stored"])
def test_a_crash_at_any_point_of_the_second_draft_pays_for_no_third(
    checkpoint: str, make_bench: MakeBench
) -> None:
    bench, model, cms = bench_of(make_bench, silent_on_facts, look_up_by_attempt=True)
    passed: list[str] = []

    def die(name: str) -> None:
        passed.append(name)
        if name == checkpoint and passed.count(name) == 2:
            raise KeyboardInterrupt

    bench.on_checkpoint = die
    with pytest.raises(KeyboardInterrupt):
        bench.step()
    bench.on_checkpoint = None
    bench.let_leases_run_out()
    kept = article_answer(model.sent[1])
    model.on_look.append(GenerationLookUp(verdict=Verdict.PRESENT, raw=kept))
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert len(model.sent) == 2
    assert cms.writes == [("/aarau-0/", 2)]


def test_a_cap_of_the_page_holds_for_both_drafts(make_bench: MakeBench) -> None:
    bench, model, _ = bench_of(make_bench, silent_on_facts)
    # Enough for the worst case of one call, and not for another after it was paid.
    bench.change(budgets={"page_usd": "0.0068"})
    bench.submit_and_run()
    assert bench.states() == {"t0": "dead_lettered"}
    assert bench.report().failure_class is FailureClass.BUDGET
    assert len(model.sent) == 1


def test_of_a_chain_the_page_and_what_follows_are_made_anew_and_nothing_before(
    make_bench: MakeBench,
) -> None:
    outline = '{"type": "object", "properties": {"points": {"type": "string"}}}'
    bench, model, _ = bench_of(make_bench)
    settings = settings_of(
        bench.name,
        article={"regenerations": 1},
        generation={
            "steps": [
                {"name": "outline", "prompt": "outline.md", "output": "outline.json"},
                {"name": "page", "prompt": "page.md"},
                {"name": "opinion", "prompt": "opinion.md", "output": "review"},
            ]
        },
    )
    files = {
        "outline.md": "Outline {{ name }}. {{ facts }}",
        "outline.json": outline,
        "page.md": "Write along {{ outline }}. {{ facts }}",
        "opinion.md": "Judge {{ page }}. {{ facts }}",
    }
    bench.site = site_of(settings, files=files)
    opinions = 0

    def answer(request: GenerationRequest) -> RawResponse:
        nonlocal opinions
        if request.schema_name == "outline":
            body = b'{"points": "all"}'
        elif request.schema_name == "review":
            opinions += 1
            body = b'{"approved": true, "findings": []}'
        else:
            return article_answer(request) if opinions else silent_on_facts(request)
        return RawResponse(status=200, headers={}, body=body)

    model.on_send.extend([answer] * 5)
    bench.submit_and_run()
    assert bench.states() == {"t0": "published"}
    asked = [request.schema_name for request in model.sent]
    assert asked == ["outline", "article", "review", "article", "review"]
    assert RULES_OPEN in model.sent[3].user
    assert RULES_OPEN not in model.sent[4].user
    job_id = bench.report().page_job_id
    with bench.ledger.begin() as connection:
        steps = connection.execute(
            step_outputs.select().where(step_outputs.c.page_job_id == job_id)
        ).all()
        assert attempts.next_number(connection, job_id, AttemptKind.GENERATE) == 6
    assert sorted(row.step for row in steps) == ["opinion", "opinion", "outline", "page", "page"]


def test_a_cancelled_page_is_not_asked_for_again(make_bench: MakeBench) -> None:
    bench, model, _ = bench_of(make_bench, silent_on_facts)

    def cancel(passed: str) -> None:
        if passed == "draft_stored":
            bench.cancel()

    bench.on_checkpoint = cancel
    bench.run()
    assert bench.states() == {"t0": "cancelled"}
    assert len(model.sent) == 1
