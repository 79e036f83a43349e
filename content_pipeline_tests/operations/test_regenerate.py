"""Regenerating: a deliberate new page job of the same input, paid anew, that later intakes keep."""

from dataclasses import replace

import pytest

from content_pipeline.core.errors import UnknownPage
from content_pipeline.operations.regenerate import regenerate
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedCMS, ScriptedModel


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def cms() -> ScriptedCMS:
    return ScriptedCMS()


@pytest.fixture
def bench(make_bench: MakeBench, model: ScriptedModel, cms: ScriptedCMS) -> Bench:
    """A site with one published page."""
    bench = make_bench(model=model, cms=cms)
    bench.submit_and_run()
    return bench


def anew(bench: Bench, topic: str = "t0") -> str:
    return regenerate(
        bench.ledger,
        bench.site.settings,
        bench.site.generation_version,
        topic,
        cause="dull text",
        by="ann",
    )


def test_it_is_a_page_job_of_its_own_and_says_what_it_may_cost(
    bench: Bench, model: ScriptedModel, cms: ScriptedCMS
) -> None:
    old = bench.report()
    told = anew(bench)
    assert "This pays for it again, at most $1;" in told
    new = bench.report()
    assert new.page_job_id != old.page_job_id
    assert (new.input_hash, new.generation_version, new.page_id) == (
        old.input_hash,
        old.generation_version,
        old.page_id,
    )
    assert bench.reasons() == ["made anew: dull text"]
    assert bench.state_of(old.page_job_id) == "published"
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert bench.state_of(old.page_job_id) == "superseded"
    assert (len(model.sent), cms.writes) == (2, [("/aarau-0/", 1), ("/aarau-0/", 2)])


def test_later_intakes_of_the_same_table_keep_it(
    bench: Bench, model: ScriptedModel, cms: ScriptedCMS
) -> None:
    anew(bench)
    bench.submit_and_run()
    made = bench.report()
    assert bench.submit().wanted == 0
    bench.run()
    assert bench.report() == made
    assert (len(model.sent), len(cms.writes)) == (2, 2)


def test_input_that_comes_back_brings_the_last_one_back_for_nothing(
    bench: Bench, model: ScriptedModel
) -> None:
    anew(bench)
    bench.run()
    made = bench.report().page_job_id
    bench.rows[0]["river"] = "Inn"
    bench.submit_and_run()
    bench.rows[0]["river"] = "Aare"
    bench.submit_and_run()
    assert bench.report().page_job_id == made
    assert bench.states() == {"t0": "published"}
    assert len(model.sent) == 3


def test_asking_twice_at_once_is_one_wish(bench: Bench, model: ScriptedModel) -> None:
    anew(bench)
    wanted = bench.report().page_job_id
    assert anew(bench) == ("t0 is queued, so it is still at work: wait for it, or cancel it")
    assert bench.report().page_job_id == wanted
    bench.run()
    anew(bench)
    bench.run()
    assert len(model.sent) == 3
    assert len({bench.report().page_job_id, wanted}) == 2


def test_a_page_that_failed_can_be_made_anew(make_bench: MakeBench, model: ScriptedModel) -> None:
    bench = make_bench(model=model, cms=ScriptedCMS(), article={"rules": {"min_words": 2_000}})
    bench.submit_and_run()
    assert bench.states() == {"t0": "failed_terminal"}
    bench.change(article={"rules": {"min_words": 60}})
    anew(bench)
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert len(model.sent) == 2


def test_a_page_of_an_older_way_is_made_anew_by_the_next_run_anyway(
    bench: Bench, model: ScriptedModel
) -> None:
    chain = bench.site.chain
    newer = replace(chain.steps[0], template="Write another page about {{ name }}. {{ facts }}")
    bench.site = replace(bench.site, chain=replace(chain, steps=(newer,)))
    before = bench.report()
    assert "in another way since t0 was made" in anew(bench)
    assert bench.report() == before
    bench.submit_and_run()
    assert len(model.sent) == 2


def test_a_row_that_can_be_no_page_and_an_unknown_page_are_refused(bench: Bench) -> None:
    bench.rows[0]["population"] = ""
    bench.submit()
    assert anew(bench) == "t0 has no usable row: correct the table and run again"
    with pytest.raises(UnknownPage):
        anew(bench, "nobody")
