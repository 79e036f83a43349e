"""The laws on a real Directus, and what only a real one can show: with ``CMS_REAL=directus``."""

from collections.abc import Iterator

import pytest

from content_pipeline.config import environment
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.cms.conformance import LAWS, Law, law_name
from content_pipeline_tests.adapters.cms.directus_scenarios import BASE_URL, SCENARIOS
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.recorded import recording, save
from content_pipeline_tests.real_cms.chosen import chosen_folder
from content_pipeline_tests.real_cms.directus_server import (
    ADMIN,
    DirectusBench,
    DirectusServer,
    connect,
    serving_directus,
)

pytestmark = pytest.mark.timeout(600)  # the first test waits for migrations and the set-up


@pytest.fixture(scope="module")
def running_directus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DirectusServer]:
    installed = chosen_folder("directus")
    with serving_directus(installed, tmp_path_factory.mktemp("directus")) as server:
        yield server


@pytest.fixture(params=["pipeline", "administrator"])
def bench(
    request: pytest.FixtureRequest, running_directus: DirectusServer
) -> Iterator[DirectusBench]:
    """To an administrator Directus says other things of what does not exist."""
    running_directus.empty()
    rights = {"token": ADMIN} if request.param == "administrator" else {}
    cms = connect(running_directus.url, **rights)
    yield DirectusBench(server=running_directus, cms=cms)
    cms.close()


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_directus_keeps_the_law(law: Law, bench: DirectusBench) -> None:
    law(bench)


def test_wrong_credentials_never_read_as_absent(bench: DirectusBench) -> None:
    page = make_document(base_url=bench.base_url)
    published = bench.cms.publish(page, replacing=None)
    stranger = connect(bench.server.url, token="wrong")
    for known in (None, published.remote_id):
        found = stranger.look_up(page.marker.page_id, page.path, known)
        assert found.verdict is Verdict.UNKNOWN
        assert found.failure is not None
        assert found.failure.failure_class is FailureClass.AUTH
    assert len(stranger.check().problems) == 1
    stranger.close()


@pytest.mark.parametrize("fields", [{"key": "nosuch"}, {"id": "nosuch"}])
def test_a_field_that_does_not_exist_is_told_apart_from_an_absent_page(
    fields: dict[str, str], running_directus: DirectusServer
) -> None:
    cms = connect(running_directus.url, fields=fields)
    found = cms.look_up("a" * 32, "/austria/", None)
    assert found.failure is not None
    assert "cms.fields" in found.failure.message
    assert cms.check().problems
    cms.close()


def test_the_check_finds_fields_that_would_let_two_items_claim_one_page(
    running_directus: DirectusServer,
) -> None:
    cms = connect(running_directus.url, token=ADMIN, fields={"key": "cp_hash", "path": "title"})
    problems = cms.check().problems
    assert len(problems) == 2
    assert all("not unique" in problem for problem in problems)
    cms.close()


@pytest.mark.parametrize("token", [ADMIN, None])
def test_an_item_that_a_person_deletes_while_we_write_is_a_conflict(
    token: str | None, running_directus: DirectusServer
) -> None:
    running_directus.empty()
    cms = connect(running_directus.url, **({"token": token} if token else {}))
    page = make_document(base_url=running_directus.url)
    seen = cms.publish(page, replacing=None)
    api, written = cms._api, cms._form.written(page, status="published")
    running_directus.empty()
    assert api.update(seen.remote_id, written, doing="publishing /austria/") is None
    assert running_directus.items({}) == []
    with pytest.raises(CallFailed) as refused:
        cms._updated(seen, written, "publishing /austria/")
    assert refused.value.failure.failure_class is FailureClass.CONFLICT
    cms.close()


def test_a_collection_without_status_and_archive_keeps_the_pages_too(
    running_directus: DirectusServer,
) -> None:
    running_directus.empty()
    cms = connect(running_directus.url, fields={"status": None, "updated": None})
    assert not cms.capabilities.drafts
    assert not cms.capabilities.trash
    page = make_document(base_url=running_directus.url)
    published = cms.publish(page, replacing=None)
    cms.withdraw(published)
    assert running_directus.items({}) == []
    cms.close()


def test_a_field_of_slugs_holds_the_path_without_slashes(
    running_directus: DirectusServer,
) -> None:
    running_directus.empty()
    cms = connect(running_directus.url, slashes=False)
    page = make_document("/austria/vienna/", base_url=running_directus.url)
    published = cms.publish(page, replacing=None)
    assert published.path == page.path
    assert [item["path"] for item in running_directus.items({})] == ["austria/vienna"]
    cms.close()


def test_the_recorded_scenarios_hold_on_the_real_directus(
    running_directus: DirectusServer,
) -> None:
    """With CMS_RECORD=1 what is said is kept for the tests that have no Directus."""
    conversations = {}
    for scenario in SCENARIOS:
        running_directus.empty()
        with recording(running_directus.port) as (url, heard):
            cms = connect(url, base_url=BASE_URL)
            scenario(cms)
            cms.close()
        conversations[scenario.__name__] = heard
    if environment().get("CMS_RECORD") == "1":
        save("directus", conversations)
