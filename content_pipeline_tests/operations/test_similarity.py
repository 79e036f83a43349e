"""A page that says what another page says already is rejected before it is published."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import WORKABLE, PageJobState, Stage
from content_pipeline.core.vectors import description, packed
from content_pipeline.ledger import jobs, rejections, step_outputs, vectors
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.operations.repair import retry
from content_pipeline.operations.steps import walk
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.embedding_site import (
    ABOUT_RIVERS,
    PAGE,
    VECTOR,
    put_on,
    received,
)

S = PageJobState
FILES = {"page.md": "{{ name }} {{ facts }}", "vector.md": "{{ river }}"}
"""One completion a page, and a vector of one column: the same river is the same vector."""

LATEST_S = 20.0
"""No thread here needs longer, however busy the machine."""


def rivers(make_bench: MakeBench, *names: str, limit: float | None = 0.9, **changes: Any) -> Bench:
    """A bench with a town on each of the rivers, every town's vector being its river's."""
    bench = put_on(
        make_bench(towns=len(names)), [PAGE, VECTOR], limit=limit, files=FILES, **changes
    )
    for row, river in zip(bench.rows, names, strict=True):
        row["river"] = river
    return bench


def one_by_one(bench: Bench) -> None:
    """Ask for all pages and bring them to the end in the order of the table."""
    bench.submit()
    for row in bench.rows:
        bench.step(row["id"])


def reason(bench: Bench, topic: str) -> str:
    return bench.report(topic).failure_message or ""


# --- caught -------------------------------------------------------------------------------------


def test_the_second_of_two_pages_that_say_the_same_goes_to_a_person(
    make_bench: MakeBench,
) -> None:
    bench = rivers(make_bench, "Aare", "Rhine", "Aare")
    one_by_one(bench)
    assert bench.states() == {"t0": "published", "t1": "published", "t2": "failed_terminal"}
    report = bench.report("t2")
    assert report.failure_class is FailureClass.INVALID_PAGE
    assert "too similar (1.000) to /aarau-0/; at most 0.9 is allowed" in reason(bench, "t2")
    assert [path for path, _ in bench.writes()] == ["/aarau-0/", "/baden-1/"]
    with bench.ledger.begin() as connection:
        (rejected,) = rejections.of_job(connection, report.page_job_id)
    assert [finding.rule for finding in rejected.findings] == ["max_similarity"]


def test_the_same_is_not_asked_again(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Aare", retries={"bad_output": {"attempts": 5}})
    one_by_one(bench)
    bench.run()
    bench.submit_and_run()
    assert bench.states() == {"t0": "published", "t1": "failed_terminal"}
    assert received(bench) == (2, 2, 0)
    assert bench.spend("t1") == ["settled", "settled"]


def test_at_most_one_more_draft_is_paid_for_where_the_site_says_so(
    make_bench: MakeBench,
) -> None:
    bench = rivers(make_bench, "Aare", "Aare", article={"regenerations": 1})
    one_by_one(bench)
    assert bench.states() == {"t0": "published", "t1": "dead_lettered"}
    # The second draft's vector is that of the first, so only the article was paid again.
    assert received(bench) == (3, 2, 0)
    with bench.ledger.begin() as connection:
        found = rejections.of_job(connection, bench.report("t1").page_job_id)
    assert [rejected.is_asked_again for rejected in found] == [True, False]


NEAR = "The river Aare comes from the Bernese Alps and flows by Thun, Bern, Solothurn and {}"


@pytest.mark.parametrize(("limit", "state"), [(0.95, "published"), (0.5, "failed_terminal")])
def test_the_limit_decides(limit: float, state: str, make_bench: MakeBench) -> None:
    bench = rivers(make_bench, NEAR.format("Aarau"), NEAR.format("Brugg"), limit=limit)
    one_by_one(bench)
    assert bench.states() == {"t0": "published", "t1": state}


def test_a_site_without_the_rule_compares_nothing(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Aare", limit=None)
    one_by_one(bench)
    assert bench.states() == {"t0": "published", "t1": "published"}


def test_a_page_that_breaks_another_rule_is_told_that_first(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Aare")
    bench.submit()
    bench.step("t0")
    bench.change(article={"rules": {"min_words": 2000, "max_similarity": 0.9}})
    bench.step("t1")
    assert "words" in reason(bench, "t1")
    assert "similar" not in reason(bench, "t1")


# --- which pages count --------------------------------------------------------------------------


def test_the_vector_of_a_changed_article_replaces_the_old_one(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Aare", "Rhine")
    one_by_one(bench)
    assert bench.states()["t1"] == "failed_terminal"
    bench.rows[0]["river"] = "Limmat"
    bench.submit()
    bench.step("t0")
    assert bench.states()["t0"] == "published"
    retry(bench.ledger, bench.name, "t1", cause="the other page says something else now")
    bench.step("t1")
    assert bench.states() == dict.fromkeys(("t0", "t1", "t2"), "published")
    assert received(bench) == (4, 4, 0)
    # And it is the new one that others are compared with.
    bench.rows[2]["river"] = "Limmat"
    bench.submit()
    bench.step("t2")
    assert "to /aarau-0/" in reason(bench, "t2")


def test_a_page_is_not_compared_with_its_own_earlier_self(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Rhine")
    one_by_one(bench)
    bench.rows[0]["population"] = "20,001"
    bench.submit()
    bench.step("t0")
    assert bench.states() == {"t0": "published", "t1": "published"}
    assert bench.writes()[-1] == ("/aarau-0/", 2)


def test_what_is_live_counts_until_its_successor_is(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Rhine")
    one_by_one(bench)
    bench.rows[0]["river"] = "Limmat"
    bench.submit()
    bench.step("t0", until=S.READY_TO_PUBLISH)
    for river in ("Aare", "Limmat"):
        bench.rows[1]["river"] = river
        bench.submit()
        bench.step("t1")
        assert "to /aarau-0/" in reason(bench, "t1"), river


def test_an_accepted_draft_that_is_cancelled_no_longer_counts(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Aare")
    bench.submit()
    bench.step("t0", until=S.READY_TO_PUBLISH)
    bench.cancel("t0")
    bench.step("t0")
    bench.step("t1")
    assert bench.states() == {"t0": "cancelled", "t1": "published"}


def test_a_draft_that_nobody_has_checked_yet_does_not_count(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Aare")
    bench.submit()
    bench.run_drafts()
    bench.step("t1")
    bench.step("t0")
    assert bench.states() == {"t0": "failed_terminal", "t1": "published"}
    assert "to /baden-1/" in reason(bench, "t0")


def test_vectors_of_another_model_are_another_measure(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Aare")
    bench.submit()
    bench.step("t0")
    older = VECTOR | {"model": "text-embedding-ada-002"}
    put_on(bench, [PAGE, older], limit=0.9, files=FILES)
    bench.submit()
    bench.step("t1")  # supersedes the page job of the other model
    bench.step("t1")
    assert bench.states()["t1"] == "published"
    bench.step("t0")
    assert "to /baden-1/" in reason(bench, "t0"), "it has a vector of the new model now"


def test_a_draft_of_before_the_step_has_no_vector_and_is_not_waved_through(
    make_bench: MakeBench,
) -> None:
    bench = put_on(make_bench(), [PAGE], files=FILES)
    bench.submit()
    bench.run_drafts()
    put_on(bench, [PAGE, VECTOR], limit=0.9, files=FILES)
    bench.step("t0")
    assert bench.states() == {"t0": "failed_terminal"}
    assert "no vector; have the page made anew" in reason(bench, "t0")


# --- at the same instant ------------------------------------------------------------------------


def wait_until(holds: Callable[[], bool]) -> None:
    latest = time.monotonic() + LATEST_S
    while not holds():
        assert time.monotonic() < latest, "it never came to hold"
        time.sleep(0.01)


WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def test_of_pages_validated_at_the_same_instant_one_is_accepted(make_bench: MakeBench) -> None:
    """All wait at the same place, past their other rules, before any of them is accepted."""
    bench = rivers(make_bench, *["Aare"] * 4)
    bench.submit()
    bench.run_drafts()
    runtime = bench.worker()
    claims = [bench.claim(runtime, row["id"]) for row in bench.rows]
    through = WORKABLE - {S.READY_TO_PUBLISH}
    threads = [
        threading.Thread(
            target=walk,
            args=(runtime, bench.claimed(claim), claim.lease),
            kwargs={"through": through},
        )
        for claim in claims
    ]

    def waiting() -> int:
        with bench.ledger.begin() as looking:
            return int(looking.execute(text(WAITING)).scalar_one())

    with bench.ledger.begin() as holding:
        vectors.one_at_a_time(holding, bench.name)
        for thread in threads:
            thread.start()
        wait_until(lambda: waiting() == len(threads))
        assert set(bench.states().values()) == {"generated"}
    for thread in threads:
        thread.join(LATEST_S)
        assert not thread.is_alive()
    assert sorted(bench.states().values()) == ["failed_terminal"] * 3 + ["ready_to_publish"]


def test_a_lane_of_many_threads_publishes_one_of_each(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, *["Aare", "Rhine", "Limmat"] * 4)
    bench.submit_and_run()
    states = list(bench.states().values())
    assert (states.count("published"), states.count("failed_terminal")) == (3, 9)
    assert len(bench.writes()) == 3


def test_sites_do_not_wait_for_each_other(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Rhine")
    with bench.ledger.begin() as holding:
        vectors.one_at_a_time(holding, f"{bench.name}_other")
        one_by_one(bench)
    assert set(bench.states().values()) == {"published"}


# --- reading ------------------------------------------------------------------------------------


MODEL, SIZE = "sandbox/text-embedding-3-small", 4 * 1536


def job_of(bench: Bench, topic: str) -> PageJob:
    with bench.ledger.begin() as connection:
        return jobs.load(connection, bench.report(topic).page_job_id)


def test_a_process_reads_every_vector_once(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Rhine", "Limmat")
    one_by_one(bench)
    known, job = bench.worker().known_vectors, job_of(bench, "t0")
    with bench.ledger.begin() as connection:
        accepted = vectors.accepted_elsewhere(connection, job, model_identity=MODEL, size=SIZE)
        assert {each.path for each in accepted} == {"/baden-1/", "/chur-2/"}
        found = known.of(connection, accepted)
        assert found == [vectors.of_job(connection, each.key[0]) for each in accepted]
        marked = b"as it was read"
        known.held[accepted[0].key] = marked
        assert known.of(connection, accepted)[0] == marked
        assert known.of(connection, accepted[1:]) == found[1:]
        assert known.held.keys() == {accepted[1].key}
        assert known.of(connection, accepted) == found
        assert known.of(connection, []) == []


def test_of_a_page_with_two_drafts_the_vector_of_the_newer_counts(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Rhine")
    one_by_one(bench)
    first, other = job_of(bench, "t0"), job_of(bench, "t1")
    newer = packed([1.0] * 1536)
    with bench.ledger.begin() as connection:
        step_outputs.store(
            connection,
            first,
            step="vector",
            step_key="the second draft's",
            attempt_id="a",
            output=description(newer, MODEL),
            vector=newer,
        )
    with bench.ledger.begin() as connection:
        assert vectors.of_job(connection, first.page_job_id) == newer
        (found,) = vectors.accepted_elsewhere(connection, other, model_identity=MODEL, size=SIZE)
        assert found.key == (first.page_job_id, "the second draft's")
        assert bench.worker().known_vectors.of(connection, [found]) == [newer]


def test_only_vectors_of_the_same_site_model_and_length_are_listed(make_bench: MakeBench) -> None:
    bench = rivers(make_bench, "Aare", "Rhine")
    one_by_one(bench)
    job = job_of(bench, "t0")
    with bench.ledger.begin() as connection:

        def listed(of: PageJob = job, model: str = MODEL, size: int = SIZE) -> list[str]:
            found = vectors.accepted_elsewhere(connection, of, model_identity=model, size=size)
            return [each.path for each in found]

        assert listed() == ["/baden-1/"]
        assert listed(model="text-embedding-3-small") == []
        assert listed(size=SIZE * 2) == []
        assert listed(of=replace(job, site="elsewhere")) == []


def test_rivers_of_the_example_are_what_the_tests_take_them_for(make_bench: MakeBench) -> None:
    bench = put_on(make_bench(towns=6), limit=0.95, files=ABOUT_RIVERS)
    bench.submit()
    bench.run(Stage.DRAFT)
    bench.run(Stage.PAGE)
    assert set(bench.states().values()) == {"ready_to_publish"}
