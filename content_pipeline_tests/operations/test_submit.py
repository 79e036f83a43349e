"""Submit: every row is wanted once, and a bad row is one failed page with a reason."""

import pytest

from content_pipeline.core.errors import UnknownPage
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import overview
from content_pipeline.operations.repair import retry
from content_pipeline.operations.submit import submit
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.fakes import ScriptedCMS, ScriptedModel
from content_pipeline_tests.operations.small_site import rows_of

S = PageJobState


def test_a_table_is_wanted_as_a_whole_and_only_once(make_bench: MakeBench) -> None:
    bench = make_bench(towns=4)
    first, second = bench.submit(), bench.submit()
    assert (first.wanted, first.unchanged, first.rejected) == (4, 0, 0)
    assert (second.wanted, second.unchanged, second.rejected) == (0, 4, 0)
    assert first.topic_keys == second.topic_keys == ("t0", "t1", "t2", "t3")
    assert set(bench.states().values()) == {"queued"}


def test_bad_rows_fail_alone_and_say_why(make_bench: MakeBench) -> None:
    bench = make_bench(towns=6, model=ScriptedModel(), cms=ScriptedCMS())
    bench.rows[1]["canton"] = ""
    bench.rows[2]["id"] = "not an id"
    bench.rows[3]["name"] = "!!!"
    bench.rows[4]["id"] = "t0"
    intake = bench.submit()
    assert (intake.wanted, intake.rejected) == (2, 4)
    bench.run()
    assert bench.states() == {
        "t0": "published",
        "t1": "failed_terminal",
        "t3": "failed_terminal",
        "t5": "published",
    }
    for topic, words in (("t1", "canton"), ("t3", "path")):
        report = bench.report(topic)
        assert report.failure_class is FailureClass.INVALID_INPUT
        assert words in (report.failure_message or "")
    with bench.ledger.begin() as connection:
        rejected = overview.site_status(connection, bench.name).rejected_rows
    assert [message.split(" ")[1] for message in rejected] == ["3:", "5"]
    assert "repeats the id 't0' of row 1" in rejected[1]


def test_the_first_of_two_rows_with_one_id_is_used(make_bench: MakeBench) -> None:
    bench = make_bench(towns=2)
    bench.rows[1]["id"] = "t0"
    intake = bench.submit()
    assert (intake.wanted, intake.rejected, intake.topic_keys) == (1, 1, ("t0",))
    assert bench.report().name == "Aarau 0"
    assert bench.submit().wanted == 0


def test_a_failed_row_cannot_be_repaired_without_the_table(make_bench: MakeBench) -> None:
    bench = make_bench(towns=1)
    bench.rows[0]["canton"] = ""
    bench.submit()
    answer = retry(bench.ledger, bench.name, "t0", cause="please")
    assert answer == "t0 has no usable row: correct the table and run again"
    bench.rows[0]["canton"] = "Aargau"
    assert bench.submit().wanted == 1
    assert bench.states() == {"t0": "queued"}


def test_only_a_page_that_rests_can_be_repaired(make_bench: MakeBench) -> None:
    bench = make_bench(towns=1, model=ScriptedModel(), cms=ScriptedCMS())
    bench.submit()
    assert retry(bench.ledger, bench.name, "t0", cause="c").endswith("there is nothing to repair")
    bench.run()
    assert retry(bench.ledger, bench.name, "t0", cause="c") == (
        "t0 is published: revision 1 is live and proved, nothing is done"
    )
    with pytest.raises(UnknownPage, match="no page 'nowhere'"):
        retry(bench.ledger, bench.name, "nowhere", cause="c")


def test_a_repair_keeps_the_cause_and_counts_tries_anew(make_bench: MakeBench) -> None:
    bench = make_bench(retries={"transient": {"attempts": 2, "first_wait_s": 0}})
    bench.strike("status", status=500, times=None)
    bench.submit_and_run()
    assert bench.states() == {"t0": "dead_lettered"}
    assert bench.calls() == 2
    retry(bench.ledger, bench.name, "/aarau-0/", cause="the provider is well again")
    bench.strike("status", status=500, times=1)
    bench.run()
    assert bench.states() == {"t0": "published"}
    assert bench.calls() == 4
    assert "repaired: the provider is well again" in bench.reasons()


def test_only_the_topics_that_are_asked_for_are_wanted(make_bench: MakeBench) -> None:
    bench = make_bench(towns=3)
    worker = bench.worker()
    intake = submit(worker, rows_of(3), requested_by="test", only=["t1"])
    assert (intake.topic_keys, intake.wanted) == (("t1",), 1)
    assert bench.states() == {"t1": "queued"}
    bench.run()
    assert bench.states() == {"t1": "published"}
    assert bench.billed() == 1


def test_a_path_belongs_to_the_first_topic_of_the_table_even_if_only_the_second_is_asked_for(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(towns=2)
    first, second = rows_of(2)
    rows = [first, {**second, "name": first["name"]}]
    submit(bench.worker(), rows, requested_by="test", only=["t1"])
    assert bench.states() == {"t1": "failed_terminal"}
    assert "'t0' and 't1' both claim" in (bench.report("t1").failure_message or "")


def test_only_the_rows_of_some_topics_are_looked_at_under_their_own_numbers(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(towns=5)
    bench.rows[1]["canton"] = ""
    taken = submit(bench.worker(), bench.rows, requested_by="test", only={"t1", "t3"}, alone=True)
    assert (taken.wanted, taken.rejected, taken.retired) == (1, 1, ())
    assert bench.states() == {"t1": "failed_terminal", "t3": "queued"}
    assert "row 2 (t1)" in (bench.report("t1").failure_message or "")
    whole = bench.submit()
    assert (whole.wanted, whole.unchanged, whole.rejected) == (3, 1, 1)


def test_taken_in_alone_a_path_still_belongs_to_one_topic_for_ever(make_bench: MakeBench) -> None:
    bench = make_bench(towns=2)
    bench.rows[1]["name"] = bench.rows[0]["name"]
    submit(bench.worker(), bench.rows, requested_by="test", only={"t1"}, alone=True)
    submit(bench.worker(), bench.rows, requested_by="test", only={"t0"}, alone=True)
    assert bench.states() == {"t0": "failed_terminal", "t1": "queued"}
    assert "it belongs to 't1'" in (bench.report("t0").failure_message or "")
    assert bench.submit().wanted == 0
    assert bench.states() == {"t0": "failed_terminal", "t1": "queued"}


def test_what_is_taken_in_alone_a_second_time_is_unchanged(make_bench: MakeBench) -> None:
    bench = make_bench(towns=3)
    bench.submit()
    again = submit(bench.worker(), bench.rows, requested_by="test", only={"t2"}, alone=True)
    assert (again.wanted, again.unchanged) == (0, 1)
    bench.rows[2]["river"] = "Rhine"
    changed = submit(bench.worker(), bench.rows, requested_by="test", only={"t2"}, alone=True)
    assert (changed.wanted, changed.unchanged) == (1, 0)
