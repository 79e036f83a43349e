"""The laws on a real Ghost, and what only a real one can show. Runs with ``CMS_REAL=ghost``."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from content_pipeline.config import environment
from content_pipeline.core.cms import RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.cms.conformance import LAWS, Law, law_name
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.ghost_scenarios import BASE_URL, SCENARIOS
from content_pipeline_tests.adapters.cms.recorded import recording, save
from content_pipeline_tests.real_cms.chosen import chosen_folder
from content_pipeline_tests.real_cms.ghost_server import (
    GhostBench,
    GhostServer,
    connect,
    serving_ghost,
)

pytestmark = pytest.mark.timeout(600)  # the first test waits for migrations and the set-up


@pytest.fixture(scope="module")
def running_ghost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GhostServer]:
    installed: Path = chosen_folder("ghost")
    with serving_ghost(installed, tmp_path_factory.mktemp("ghost")) as server:
        yield server


@pytest.fixture
def bench(running_ghost: GhostServer) -> Iterator[GhostBench]:
    running_ghost.empty()
    cms = connect(running_ghost)
    yield GhostBench(server=running_ghost, cms=cms)
    cms.close()


@pytest.fixture
def posts(running_ghost: GhostServer) -> Iterator[GhostBench]:
    running_ghost.empty()
    cms = connect(running_ghost, content_type="posts")
    yield GhostBench(server=running_ghost, cms=cms, kind="posts")
    cms.close()


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_ghost_keeps_the_law(law: Law, bench: GhostBench) -> None:
    law(bench)


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_ghost_keeps_the_law_with_posts(law: Law, posts: GhostBench) -> None:
    law(posts)


def test_wrong_credentials_never_read_as_absent(bench: GhostBench) -> None:
    page = make_document(base_url=bench.base_url)
    published = bench.cms.publish(page, replacing=None)
    key_id, _, secret = bench.server.key.partition(":")
    for wrong in (f"{key_id}:{secret[::-1]}", f"{'f' * 24}:{secret}"):
        stranger = connect(bench.server, key=wrong)
        for known in (None, published.remote_id, "f" * 24):
            found = stranger.look_up(page.marker.page_id, page.path, known)
            assert found.verdict is Verdict.UNKNOWN
            assert found.failure is not None
            assert found.failure.failure_class is FailureClass.AUTH
        (problem,) = stranger.check().problems
        assert "Admin API key" in problem
        assert secret not in problem
        stranger.close()


def test_an_edit_in_the_very_second_of_our_publish_is_not_overwritten(bench: GhostBench) -> None:
    """Its ``updated_at`` may equal ours, which is why nothing is handed out within that second."""
    page = make_document(base_url=bench.base_url)
    seen = bench.cms.publish(page, replacing=None)
    for number in range(5):
        bench.edit(page.path)
        edited = bench.visible(page.path)
        with pytest.raises(CallFailed) as refused:
            newer = make_document(revision=number + 2, base_url=bench.base_url)
            bench.cms.publish(newer, replacing=seen)
        assert refused.value.failure.failure_class is FailureClass.CONFLICT
        assert bench.visible(page.path) == edited
        found = bench.cms.look_up(page.marker.page_id, page.path, seen.remote_id).page
        assert found is not None
        seen = found


def test_a_slug_that_is_taken_is_offered_another_and_nothing_stays_public(
    bench: GhostBench,
) -> None:
    bench.occupy("/austria/")
    theirs = bench.visible("/austria/")
    page = make_document(base_url=bench.base_url)
    draft = bench.cms.create_draft(page)
    assert draft.path == "/austria-2/"
    with pytest.raises(CallFailed) as refused:
        bench.cms.publish(page, replacing=draft)
    assert refused.value.failure.failure_class is FailureClass.CONFLICT
    assert bench.visible("/austria-2/") is None
    assert bench.visible("/austria/") == theirs


def test_a_copy_that_a_person_made_is_no_twin(bench: GhostBench) -> None:
    page = make_document(base_url=bench.base_url)
    published = bench.cms.publish(page, replacing=None)
    assert bench.server.as_person("POST", f"pages/{published.remote_id}/copy/").status == 201
    found = bench.cms.look_up(page.marker.page_id, page.path, None)
    assert (found.page, found.twins) == (published, ())


def test_what_a_person_injects_into_the_head_is_an_edit(bench: GhostBench) -> None:
    page = make_document(base_url=bench.base_url)
    published = bench.cms.publish(page, replacing=None)
    head = bench.server.page_at(page.path)["codeinjection_head"]
    bench.server.change(page.path, codeinjection_head=head + "<style>p {color: red}</style>")
    found = bench.cms.look_up(page.marker.page_id, page.path, None).page
    assert found is not None
    assert found.marker == page.marker
    assert found.fingerprint != published.fingerprint


def test_every_text_that_was_replaced_stays_in_the_history(bench: GhostBench) -> None:
    seen = bench.cms.publish(make_document(base_url=bench.base_url), replacing=None)
    bench.cms.publish(make_document(revision=2, base_url=bench.base_url), replacing=seen)
    route = f"pages/{seen.remote_id}/?include=post_revisions"
    (page,) = bench.server.as_person("GET", route).json()["pages"]
    texts = [json.loads(each["lexical"]) for each in page["post_revisions"]]
    assert any("Revision 1." in json.dumps(text) for text in texts)


@pytest.mark.parametrize("status", ["scheduled", "draft"])
def test_a_page_that_a_person_took_off_the_site_is_hidden_and_can_be_published(
    status: str, bench: GhostBench
) -> None:
    page = make_document(base_url=bench.base_url)
    draft = bench.cms.create_draft(page)
    if status == "scheduled":
        moment = "2199-01-01T00:00:00.000Z"
        bench.server.change(page.path, status=status, published_at=moment)
    found = bench.cms.look_up(page.marker.page_id, page.path, draft.remote_id).page
    assert found is not None
    assert (found.status, found.path) == (RemoteStatus.HIDDEN, page.path)


def test_a_text_with_everything_that_rendering_makes_is_kept_to_the_letter(
    bench: GhostBench,
) -> None:
    body = (
        'A [link](https://a.example/?a=1&b=2), `code <b>`, "quotes" & more.\n\n'
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n3. three\n4. four\n\n> quoted — ünïcödé 漢字 🏔\n\n"
        "    indented\n\n---\n\n<!--kg-card-end: html-->"
    )
    page = make_document(
        base_url=bench.base_url, body=body, title='A "title" & <more>', meta_description="<x> & y"
    )
    published = bench.cms.publish(page, replacing=None)
    assert published.intact
    assert bench.cms.content_of(published).body_html == page.body_html


def test_json_ld_goes_into_the_head(running_ghost: GhostServer) -> None:
    running_ghost.empty()
    cms = connect(running_ghost, json_ld=True)
    page = make_document(base_url=running_ghost.url)
    assert cms.publish(page, replacing=None).intact
    visible = running_ghost.visible(page.path)
    assert visible is not None
    assert '"headline": "Austria"' in visible
    cms.close()


def test_the_recorded_scenarios_hold_on_the_real_ghost(running_ghost: GhostServer) -> None:
    """With CMS_RECORD=1 what is said is kept for the tests that have no Ghost."""
    conversations = {}
    for scenario in SCENARIOS:
        running_ghost.empty()
        with recording(running_ghost.port) as (url, heard):
            cms = connect(running_ghost, url=url, base_url=BASE_URL)
            scenario(cms)
            cms.close()
        conversations[scenario.__name__] = heard
    if environment().get("CMS_RECORD") == "1":
        save("ghost", conversations)
