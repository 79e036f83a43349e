"""Repair: a failed page, or all of one cause, taken up again without repeating what exists."""

import time
from collections import deque
from typing import Any

import pytest

from content_pipeline.core.causes import cause_of
from content_pipeline.core.errors import CallFailed, UnknownPage
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import GenerationLookUp, GenerationRequest, RawResponse, Verdict
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import failed_pages
from content_pipeline.ledger.failed_pages import FailedGroup
from content_pipeline.operations import recover, repair
from content_pipeline.operations.cancel import cancel
from content_pipeline.operations.repair import retry
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    ARTICLE,
    ScriptedCMS,
    ScriptedModel,
    article_answer,
    call_raises,
    loses_the_answer,
    says_unknown,
)

S = PageJobState
LOST = call_raises(CallFailed(Failure(failure_class=FailureClass.UNCERTAIN, message="lost")))


def silent_on_facts(_request: GenerationRequest) -> RawResponse:
    return RawResponse(status=200, headers={}, body=ARTICLE.model_dump_json().encode())


def bench_of(
    make_bench: MakeBench, towns: int = 1, model: ScriptedModel | None = None, **more: Any
) -> tuple[Bench, ScriptedModel, ScriptedCMS]:
    model, cms = model or ScriptedModel(), ScriptedCMS()
    bench = make_bench(towns, model=model, cms=cms, **more)
    bench.submit()
    return bench, model, cms


def groups(bench: Bench) -> list[FailedGroup]:
    with bench.ledger.begin() as connection:
        return failed_pages.by_cause(connection, bench.name)


def test_a_whole_group_is_taken_up_with_one_cause_and_the_others_stay(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repair, "WOKEN_AT_ONCE", 2)  # so that a group takes several transactions
    model = ScriptedModel(on_send=deque([silent_on_facts] * 5))
    bench, _, cms = bench_of(make_bench, 6, model, generation={"in_flight": 1})
    policy = CallFailed(Failure(failure_class=FailureClass.POLICY, message="the model declines"))
    model.on_send.append(call_raises(policy))
    bench.run()
    invalid, declined = groups(bench)
    assert (len(invalid.pages), len(declined.pages)) == (5, 1)

    bench.change(article={"must_state": []})
    told = retry(bench.ledger, bench.name, invalid.cause.fingerprint, cause="the rules were wrong")

    assert told == (
        f"5 of 5 pages of {invalid.cause.fingerprint} are taken up again; the next run goes on "
        "with them"
    )
    bench.run()
    (still,) = groups(bench)
    assert still == declined
    assert sorted(bench.states().values()) == ["failed_terminal", *["published"] * 5]
    assert (len(model.sent), len(cms.writes)) == (6, 5)
    topic = invalid.pages[0].topic_key
    assert "repaired: the rules were wrong" in bench.reasons(topic)
    assert bench.report(topic).page_job_id == invalid.pages[0].page_job_id


def test_a_cause_that_nothing_has_any_more_is_named(make_bench: MakeBench) -> None:
    bench, _, _ = bench_of(make_bench)
    nothing = cause_of(FailureClass.POLICY, "the model declines").fingerprint
    with pytest.raises(UnknownPage, match=f"no failed page .* has {nothing}"):
        retry(bench.ledger, bench.name, nothing, cause="x")


def test_of_a_group_of_rows_the_table_must_be_corrected(make_bench: MakeBench) -> None:
    bench, _, _ = bench_of(make_bench, 2)
    for row in bench.rows:
        row["population"] = ""
    bench.submit()
    (group,) = groups(bench)
    assert group.cause.text == "row …: column 'population' is empty, and the page must state it"
    told = retry(bench.ledger, bench.name, group.cause.fingerprint, cause="x")
    assert told.startswith("0 of 2 pages")
    assert told.endswith("correct the table and run again")


# --- what exists is found first -----------------------------------------------------------------


def test_a_page_that_is_live_with_this_revision_is_left_alone(make_bench: MakeBench) -> None:
    bench, model, cms = bench_of(make_bench)
    bench.run()
    told = retry(bench.ledger, bench.name, "t0", cause="x")
    assert told == "t0 is published: revision 1 is live and proved, nothing is done"
    bench.run()
    assert (len(model.sent), len(cms.writes)) == (1, 1)


def test_a_publish_that_took_effect_after_all_is_confirmed_and_not_repeated(
    make_bench: MakeBench,
) -> None:
    bench, model, cms = bench_of(make_bench)
    cms.on_write.append(loses_the_answer)
    bench.step()
    cms.on_look.extend([says_unknown] * 20)
    for _ in range(20):
        bench.step()
    assert bench.states() == {"t0": "failed_terminal"}

    retry(bench.ledger, bench.name, "t0", cause="the CMS answers again")
    bench.run()

    assert bench.states() == {"t0": "published"}
    assert (len(model.sent), cms.writes) == (1, [("/aarau-0/", 1)])


def given_up(make_bench: MakeBench) -> tuple[Bench, ScriptedModel]:
    """A page whose lost call nobody could be asked about, until its tries were used up."""
    model = ScriptedModel(look_up_by_attempt=True, on_send=deque([LOST]))
    bench, _, _ = bench_of(
        make_bench,
        model=model,
        generation={"deadline_s": 0.1, "answer_slack_s": 0.01},
        retries={"uncertain": {"attempts": 1}},
    )
    unknown = GenerationLookUp(
        verdict=Verdict.UNKNOWN,
        failure=Failure(failure_class=FailureClass.TRANSIENT, message="503"),
    )
    model.on_look.append(unknown)
    bench.step()
    return bench, model


def dead(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the last moment for an answer pass, and the hour in which the provider is asked."""
    time.sleep(0.2)
    monkeypatch.setattr(recover, "KEEP_ASKING_S", -10)
    bench.step()
    assert bench.states() == {"t0": "dead_lettered"}
    assert bench.spend() == ["uncertain"]


def test_an_answer_the_provider_had_all_along_is_taken_before_another_is_paid(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, model = given_up(make_bench)
    dead(bench, monkeypatch)

    told = retry(bench.ledger, bench.name, "t0", cause="the provider is well")
    assert told == (
        "t0 is generation_uncertain again; the next run goes on with it: the provider is asked "
        "whether the call completed first"
    )
    kept = article_answer(model.sent[0])
    model.on_look.append(GenerationLookUp(verdict=Verdict.PRESENT, raw=kept))
    bench.run()

    assert bench.states() == {"t0": "published"}
    assert (len(model.sent), bench.spend()) == (1, ["settled"])


def test_only_a_call_that_never_happened_is_paid_anew(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, model = given_up(make_bench)
    dead(bench, monkeypatch)
    retry(bench.ledger, bench.name, "t0", cause="the provider is well")
    bench.run()  # the provider has no record of the call
    assert bench.states() == {"t0": "published"}
    assert (len(model.sent), bench.spend()) == (2, ["released", "settled"])


def test_a_cancelled_page_can_be_wanted_again(make_bench: MakeBench) -> None:
    bench, model, _ = bench_of(make_bench)
    cancel(bench.ledger, bench.name, "t0", reason="not now", by="ann")
    assert retry(bench.ledger, bench.name, "t0", cause="now").startswith("t0 is queued again")
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert len(model.sent) == 1
