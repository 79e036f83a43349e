"""The whole lane onto a Hugo site in a repository: topics in, pages that visitors read out."""

from pathlib import Path

import pytest

from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import routes
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.small_site import path_of
from content_pipeline_tests.partners.hugo_site import HugoSite, cms_of_site

TOWNS = 5


@pytest.fixture
def hugo(tmp_path: Path) -> HugoSite:
    return HugoSite.new(tmp_path / "server")


@pytest.fixture
def bench(make_bench: MakeBench, hugo: HugoSite, tmp_path: Path) -> Bench:
    cms = cms_of_site(hugo, tmp_path / "ours.git")
    return make_bench(TOWNS, cms=cms, hooks=())


def test_a_small_site_is_published_and_read_by_visitors(bench: Bench, hugo: HugoSite) -> None:
    bench.submit_and_run()
    assert set(bench.states().values()) == {PageJobState.PUBLISHED}
    assert bench.billed() == TOWNS
    for number, row in enumerate(bench.rows):
        assert hugo.article(path_of(row)) == bench.document(f"t{number}").body_html
    assert len(hugo.repository.names()) == TOWNS
    assert hugo.deployed() == hugo.repository.head()


def test_doing_it_again_pays_nothing_and_commits_nothing(bench: Bench, hugo: HugoSite) -> None:
    bench.submit_and_run()
    head = hugo.repository.head()
    bench.submit_and_run()
    assert hugo.repository.head() == head
    assert bench.billed() == TOWNS


def test_pages_wait_for_the_deployment_and_are_proved_by_it(bench: Bench, hugo: HugoSite) -> None:
    hugo.stop_building()
    bench.submit_and_run()
    assert set(bench.states().values()) == {PageJobState.PUBLISH_UNCERTAIN}
    committed = hugo.repository.head()
    assert len(hugo.repository.names()) == TOWNS
    assert hugo.visible(path_of(bench.rows[0])) is None
    bench.make_due()
    bench.run()
    assert set(bench.states().values()) == {PageJobState.PUBLISH_UNCERTAIN}
    assert "does not show it yet" in (bench.report().failure_message or "")
    hugo.build()
    bench.make_due()
    bench.run()
    assert set(bench.states().values()) == {PageJobState.PUBLISHED}
    assert hugo.repository.head() == committed
    assert bench.billed() == TOWNS


def test_a_persons_edit_is_left_alone_and_goes_to_a_person(bench: Bench, hugo: HugoSite) -> None:
    bench.submit_and_run()
    name = f"content{path_of(bench.rows[0]).rstrip('/')}.html"
    text = hugo.repository.read(name)
    assert text is not None
    edited = text.replace(b"<p>", b"<p>By a person. ", 1)
    hugo.repository.commit({name: edited})
    bench.rows[0] = bench.rows[0] | {"population": "99,999"}
    bench.submit_and_run()
    assert bench.states()["t0"] == PageJobState.FAILED_TERMINAL
    assert hugo.repository.read(name) == edited
    assert "By a person." in hugo.article(path_of(bench.rows[0]))


def test_a_refusal_by_the_repository_is_told_in_its_words(bench: Bench, hugo: HugoSite) -> None:
    hugo.repository.hook("pre-receive", "echo frozen until Monday; exit 1")
    bench.submit_and_run()
    assert set(bench.states().values()) == {PageJobState.FAILED_TERMINAL}
    assert "frozen until Monday" in (bench.report().failure_message or "")
    assert hugo.repository.names() == []


def test_a_stale_lock_in_the_repository_costs_no_page(bench: Bench, hugo: HugoSite) -> None:
    lock = hugo.repository.bare / "HEAD.lock"
    lock.touch()
    bench.submit()
    bench.run_drafts()
    assert bench.step(random=lambda: 0.5).state is PageJobState.FAILED_RETRYABLE
    assert "remove that lock file" in (bench.report().failure_message or "")
    bench.make_due()
    bench.run()
    states = bench.states()
    assert states.pop("t0") == PageJobState.FAILED_RETRYABLE
    assert set(states.values()) == {PageJobState.READY_TO_PUBLISH}, "no other used up a try on it"
    lock.unlink()
    with bench.ledger.begin() as connection:
        assert routes.close_circuit(connection, bench.worker().cms_route), "a person resumed it"
    bench.make_due()
    bench.run()
    assert set(bench.states().values()) == {PageJobState.PUBLISHED}
    assert bench.billed() == TOWNS
