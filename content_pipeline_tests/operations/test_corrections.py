"""Corrections: a value put right beside the table holds until the table itself changes there."""

from collections.abc import Mapping

import pytest

from content_pipeline.core.errors import ConfigurationError, UnknownPage
from content_pipeline.core.topics import MALFORMED
from content_pipeline.ledger import jobs
from content_pipeline.operations.corrections import fix_input
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedCMS, ScriptedModel


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def bench(make_bench: MakeBench, model: ScriptedModel) -> Bench:
    bench = make_bench(2, model=model, cms=ScriptedCMS())
    bench.submit()
    return bench


def correct(bench: Bench, topic: str = "t0", **values: str) -> str:
    return fix_input(
        bench.ledger,
        bench.site.settings,
        bench.site.columns,
        bench.rows,
        topic,
        values,
        cause="a typo",
        by="ann",
    )


def columns(bench: Bench, topic: str = "t0") -> Mapping[str, str]:
    """What the topic's current page job is made from."""
    with bench.ledger.begin() as connection:
        return jobs.load(connection, bench.report(topic).page_job_id).input_columns


def test_a_correction_makes_another_page_job_of_the_corrected_input(
    bench: Bench, model: ScriptedModel
) -> None:
    bench.run()
    before, other = bench.report(), bench.report("t1")
    told = correct(bench, river="Inn")
    assert told == (
        "t0 is corrected in river until the table itself changes there; the next run makes the "
        "page from it"
    )
    bench.submit_and_run()
    after = bench.report()
    assert after.page_job_id != before.page_job_id
    assert after.input_hash != before.input_hash
    assert after.path == before.path
    assert columns(bench)["river"] == "Inn"
    assert '"River": "Inn"' in model.sent[-1].user
    assert bench.report("t1") == other
    assert bench.states() == {"t0": "published", "t1": "published"}


def test_taking_the_same_table_in_again_changes_nothing(bench: Bench) -> None:
    correct(bench, river="Inn")
    bench.submit()
    first = bench.report()
    assert bench.submit().wanted == 0
    assert bench.report() == first


def test_the_table_wins_as_soon_as_it_says_something_new(bench: Bench) -> None:
    correct(bench, river="Inn", population="10,001")
    bench.submit()
    bench.rows[0]["river"] = "Rhine"
    bench.submit()
    assert (columns(bench)["river"], columns(bench)["population"]) == ("Rhine", "10,001")
    bench.rows[0]["river"] = "Aare"  # what it was when it was corrected
    bench.submit()
    assert columns(bench)["river"] == "Aare"


def test_a_change_elsewhere_in_the_row_leaves_the_correction(bench: Bench) -> None:
    correct(bench, river="Inn")
    bench.rows[0]["canton"] = "Canton 5"
    bench.submit()
    assert (columns(bench)["river"], columns(bench)["canton"]) == ("Inn", "Canton 5")


def test_a_row_that_could_be_no_page_becomes_one(bench: Bench) -> None:
    bench.rows[0]["population"] = ""
    bench.submit()
    assert bench.states()["t0"] == "failed_terminal"
    assert correct(bench, population=" 9,999 ").endswith("the next run makes the page from it")
    bench.submit_and_run()
    assert bench.states()["t0"] == "published"
    assert columns(bench)["population"] == "9,999"


def test_a_row_that_is_still_refused_says_so(bench: Bench) -> None:
    bench.rows[0] |= {"population": "", "canton": ""}
    bench.submit()
    told = correct(bench, population="9,999")
    assert "its row is still refused: row 1 (t0): column 'canton' is empty" in told
    assert correct(bench, canton="Uri").endswith("the next run makes the page from it")
    bench.submit()
    assert bench.states()["t0"] == "queued"


def test_a_correction_can_be_corrected_and_taken_back(bench: Bench) -> None:
    correct(bench, river="Inn")
    correct(bench, river="Rhine")
    bench.submit()
    assert columns(bench)["river"] == "Rhine"
    assert "nothing to correct" in correct(bench, river="Rhine")
    correct(bench, river="Aare")
    bench.submit()
    assert columns(bench)["river"] == "Aare"


def test_what_the_table_says_anyway_is_no_correction(bench: Bench) -> None:
    assert "nothing to correct" in correct(bench, river=" Aare")


def test_only_the_row_that_is_used_is_corrected(bench: Bench) -> None:
    correct(bench, river="Inn")
    bench.rows.append(bench.rows[0] | {"river": "Rhine"})
    for _ in range(2):  # nor does the other row end the correction for the next intake
        assert bench.submit().rejected == 1
        assert columns(bench)["river"] == "Inn"


def test_a_row_that_is_torn_apart_leaves_the_correction_alone(bench: Bench) -> None:
    correct(bench, river="Inn")
    whole = dict(bench.rows[0])
    bench.rows[0] = {"id": "t0" + MALFORMED} | {
        name: MALFORMED + value for name, value in whole.items() if name != "id"
    }
    bench.submit()
    bench.rows[0] = whole
    bench.submit()
    assert columns(bench)["river"] == "Inn"


def test_a_column_the_site_does_not_use_cannot_be_corrected(bench: Bench) -> None:
    with pytest.raises(ConfigurationError, match="without a column 'mayor'; it uses canton, name"):
        correct(bench, mayor="Ann")
    with pytest.raises(ConfigurationError, match="'id' is the topic's id"):
        correct(bench, id="t9")


def test_a_page_that_has_no_row_cannot_be_corrected(bench: Bench) -> None:
    with pytest.raises(UnknownPage, match="no page 'nobody'"):
        correct(bench, "nobody", river="Inn")
    del bench.rows[1]
    with pytest.raises(UnknownPage, match="no row 't1' any more"):
        correct(bench, "t1", river="Inn")


def test_a_page_is_named_by_its_path_as_well(bench: Bench) -> None:
    assert correct(bench, "/aarau-0/", river="Inn").startswith("t0 is corrected")
