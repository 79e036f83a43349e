"""What one way of making pages has published is taken back, and nothing more is made by it."""

from dataclasses import replace

import pytest

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import rollbacks
from content_pipeline.operations import rollback as operation
from content_pipeline.operations.republish import republish
from content_pipeline.operations.rollback import Rollback, lift, roll_back
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedCMS, loses_the_answer
from content_pipeline_tests.operations.small_site import page_text, rows_of, site_of

S = PageJobState


def with_prompt(bench: Bench, prompt: str) -> str:
    """Make pages by another prompt from now on; the generation version."""
    bench.site = site_of(
        bench.site.settings, prompt=f"{prompt} {{{{ name }}}}\n\n{{{{ facts }}}}\n"
    )
    return bench.site.generation_version


def twice_made(make_bench: MakeBench, towns: int = 3, **parts: object) -> tuple[Bench, str]:
    """A site whose pages were all made by a first way and then by a second, which is returned."""
    bench = make_bench(towns, **parts)
    with_prompt(bench, "Describe")
    bench.submit_and_run()
    second = with_prompt(bench, "Praise")
    bench.submit_and_run()
    assert set(bench.states().values()) == {"published"}
    assert {bench.report(topic).revision for topic in bench.states()} == {2}
    return bench, second


def back(bench: Bench, version: str) -> Rollback:
    return roll_back(bench.worker(), version, cause="it boasts", by="anna")


def test_every_page_shows_again_what_it_showed_before_and_nothing_is_paid(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(3)
    with_prompt(bench, "Describe")
    bench.submit_and_run()
    before = [page_text(bench.folder, row) for row in bench.rows]
    second = with_prompt(bench, "Praise")
    bench.submit_and_run()
    assert [page_text(bench.folder, row) for row in bench.rows] != before
    billed = bench.billed()

    assert back(bench, second) == Rollback(wanted_back=("t0", "t1", "t2"), nothing_before=())
    bench.run()

    after = [page_text(bench.folder, row) for row in bench.rows]
    assert [text and text.replace(" rev=3 ", " rev=1 ") for text in after] == before
    assert set(bench.states().values()) == {"published"}
    assert bench.report().revision == 3, "an old draft comes back under a new number"
    assert bench.billed() == billed
    assert "rolled back to: it boasts" in bench.reasons()


def test_asking_again_finds_nothing_left_to_do(make_bench: MakeBench) -> None:
    bench, second = twice_made(make_bench)
    back(bench, second)
    assert back(bench, second).wanted_back == ()
    bench.run()
    writes = bench.writes()
    assert back(bench, second) == Rollback(wanted_back=(), nothing_before=())
    bench.run()
    assert bench.writes() == writes


def test_a_crash_in_the_middle_leaves_whole_pages_and_the_next_call_does_the_rest(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, second = twice_made(make_bench)
    monkeypatch.setattr(operation, "AT_ONCE", 1)
    runtime = bench.worker()
    with bench.ledger.begin() as connection:
        rollbacks.refuse(connection, bench.name, second, cause="it boasts", by="anna")
        rollbacks.want_earlier(
            connection, bench.name, second, most=1, worker=runtime.worker, cause="it boasts"
        )
    assert sorted(bench.states().values()) == ["generated", "published", "published"]
    assert back(bench, second).wanted_back == ("t1", "t2")
    bench.run()
    assert [bench.report(topic).revision for topic in ("t0", "t1", "t2")] == [3, 3, 3]


def test_a_page_that_never_showed_anything_else_stays_and_is_named(make_bench: MakeBench) -> None:
    bench, second = twice_made(make_bench, 1)
    bench.rows = rows_of(2)
    bench.submit_and_run()
    assert back(bench, second) == Rollback(wanted_back=("t0",), nothing_before=("t1",))
    bench.run()
    assert bench.states() == {"t0": "published", "t1": "published"}
    assert page_text(bench.folder, bench.rows[1]) is not None


def test_a_page_is_not_rolled_back_to_what_was_rolled_back_as_well(make_bench: MakeBench) -> None:
    bench, second = twice_made(make_bench, 1)
    third = with_prompt(bench, "Sell")
    bench.submit_and_run()
    back(bench, second)
    assert bench.report().revision == 3, "the page shows the third version by now"
    back(bench, third)
    bench.run()
    with bench.ledger.begin() as connection:
        taken_back = rollbacks.of_site(connection, bench.name)
    assert [each.generation_version for each in taken_back] == [second, third]
    assert bench.report().generation_version not in {second, third}
    assert bench.report().state is S.PUBLISHED


def test_nothing_is_made_by_the_version_until_the_rollback_is_lifted(make_bench: MakeBench) -> None:
    bench, second = twice_made(make_bench, 1)
    back(bench, second)
    bench.run()
    billed = bench.billed()
    bench.rows = rows_of(2)
    taken = bench.submit()
    assert taken.wanted == 0
    assert taken.rolled_back == "it boasts (anna)"
    bench.run()
    assert bench.billed() == billed

    assert lift(bench.worker(), second)
    assert not lift(bench.worker(), second)
    assert bench.submit().wanted == 2
    bench.run()
    assert set(bench.states().values()) == {"published"}
    assert bench.billed() == billed + 1, "the draft of before is reused"


def test_a_new_version_works_at_once(make_bench: MakeBench) -> None:
    bench, second = twice_made(make_bench, 1)
    back(bench, second)
    third = with_prompt(bench, "Sell")
    assert bench.submit().rolled_back is None
    bench.run()
    assert (bench.report().generation_version, bench.report().state) == (third, S.PUBLISHED)


@pytest.mark.parametrize("state", [S.QUEUED, S.GENERATED, S.READY_TO_PUBLISH])
def test_a_page_under_way_is_not_made_by_the_version_any_more(
    state: PageJobState, make_bench: MakeBench
) -> None:
    bench = make_bench(1)
    with_prompt(bench, "Describe")
    bench.submit_and_run()
    second = with_prompt(bench, "Praise")
    bench.submit()
    if state is not S.QUEUED:
        bench.step(until=state)
    under_way = bench.report()
    assert under_way.state is state
    billed = bench.billed()

    back(bench, second)
    assert bench.report().state is S.PUBLISHED, "what the page shows is wanted as it is"
    bench.run()

    assert bench.state_of(under_way.page_job_id) == "superseded"
    assert len(bench.writes()) == 1
    assert bench.billed() == billed


def test_a_first_page_under_way_is_taken_up_again_when_it_is_lifted(make_bench: MakeBench) -> None:
    bench = make_bench(1)
    bench.submit()
    bench.step(until=S.READY_TO_PUBLISH)
    version = bench.site.generation_version
    assert back(bench, version) == Rollback(wanted_back=(), nothing_before=())
    bench.run()
    assert (bench.report().state, bench.writes()) == (S.SUPERSEDED, [])
    lift(bench.worker(), version)
    bench.submit_and_run()
    assert (bench.report().state, bench.billed()) == (S.PUBLISHED, 1)


def test_a_publish_whose_answer_was_lost_is_settled_and_then_replaced(
    make_bench: MakeBench,
) -> None:
    cms = ScriptedCMS()
    bench = make_bench(1, cms=cms)
    with_prompt(bench, "Describe")
    bench.submit_and_run()
    second = with_prompt(bench, "Praise")
    bench.submit()
    cms.on_write.append(loses_the_answer)
    bench.step()
    lost = bench.report()
    assert lost.state is S.PUBLISH_UNCERTAIN
    back(bench, second)
    bench.make_due()
    bench.run()
    assert bench.state_of(lost.page_job_id) == "superseded"
    assert bench.report().generation_version != second
    assert cms.writes == [("/aarau-0/", revision) for revision in (1, 2, 3)]


def test_a_retired_topic_is_left_alone(make_bench: MakeBench) -> None:
    bench, second = twice_made(make_bench, 2)
    del bench.rows[0]
    bench.submit()
    assert back(bench, second).wanted_back == ("t1",)


def test_what_was_rolled_back_and_stays_is_not_published_again(make_bench: MakeBench) -> None:
    bench = make_bench(1)
    bench.submit_and_run()
    back(bench, bench.site.generation_version)
    assert republish(bench.worker(), None, cause="a new theme", by="anna") == ()


def test_a_version_that_nobody_knows_is_refused(make_bench: MakeBench) -> None:
    bench = make_bench(1)
    bench.submit()
    with pytest.raises(ConfigurationError, match="never made a page with generation version 'v0'"):
        back(bench, "v0")


def test_another_sites_rollback_is_none_of_ours(make_bench: MakeBench) -> None:
    bench, second = twice_made(make_bench, 1)
    with bench.ledger.begin() as connection:
        assert rollbacks.cause_of_refusal(connection, "elsewhere", second) is None
    other = replace(bench.worker(), site=bench.site.settings.model_copy(update={"site": "other"}))
    with pytest.raises(ConfigurationError):
        roll_back(other, second, cause="x", by="anna")
