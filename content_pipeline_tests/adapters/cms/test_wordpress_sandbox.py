"""The sandbox CMS keeps the same laws as the real WordPress it imitates."""

import base64
import http.client
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.sandbox.cms.accounts import ACCOUNTS, PERSON
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.server import serving_cms
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline_tests.adapters.cms.conformance import LAWS, Law, law_name
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.real_cms.wordpress_bench import WordPressBench, connect

WAIT_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSite:
    """The hands of people on a sandbox CMS."""

    client: CMSClient

    @property
    def url(self) -> str:
        return self.client.base_url

    @property
    def users(self) -> Mapping[str, str]:
        return {account.login: account.app_password for account in ACCOUNTS}

    def as_person(self, method: str, route: str, document: Mapping[str, Any] | None = None) -> Any:
        credentials = base64.b64encode(f"{PERSON.login}:{PERSON.app_password}".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
        status, text = self._ask(method, f"/wp-json/wp/v2/{route}", headers, document)
        assert status < 300, f"{method} {route} is answered {status}: {text!r}"
        return json.loads(text)

    def id_at(self, path: str) -> int:
        slug = path.strip("/").rpartition("/")[2]
        route = f"pages?slug={slug}&status=publish,draft,trash&context=edit&orderby=id&order=asc"
        pages = self.as_person("GET", route)
        return int(min(pages, key=lambda page: page["status"] != "publish")["id"])

    def visible(self, path: str) -> str | None:
        status, text = self._ask("GET", path, {}, None)
        return re.sub(r"<!--.*?-->", "", text.decode(), flags=re.DOTALL) if status == 200 else None

    def _ask(
        self, method: str, path: str, headers: Mapping[str, str], document: object
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.client.port, timeout=WAIT_S)
        try:
            body = None if document is None else json.dumps(document)
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


Bench = WordPressBench[SandboxSite]


@pytest.fixture(scope="module")
def running_cms() -> Iterator[CMSClient]:
    with serving_cms(CMSSettings(latency_median_s=0, idle_exit_s=0)) as client:
        yield client


@pytest.fixture
def bench(running_cms: CMSClient) -> Iterator[Bench]:
    running_cms.reset()
    site = SandboxSite(client=running_cms)
    cms = connect(site)
    yield WordPressBench(server=site, cms=cms)
    cms.close()


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_the_sandbox_cms_keeps_the_law(law: Law, bench: Bench) -> None:
    law(bench)


def test_wrong_credentials_never_read_as_absent(bench: Bench) -> None:
    page = make_document(base_url=bench.base_url)
    bench.cms.publish(page, replacing=bench.cms.create_draft(page))
    stranger = connect(bench.server, password="wrong")
    try:
        for known in (None, "1", "999"):
            found = stranger.look_up(page.marker.page_id, page.path, known)
            assert found.verdict is Verdict.UNKNOWN
            assert found.failure is not None
            assert found.failure.failure_class is FailureClass.AUTH
        with pytest.raises(CallFailed) as refused:
            stranger.create_draft(page)
        assert refused.value.failure.failure_class is FailureClass.AUTH
    finally:
        stranger.close()


def test_a_draft_that_lists_do_not_show_yet_is_found_by_its_id(bench: Bench) -> None:
    behind = CMSSettings(latency_median_s=0, idle_exit_s=0, listing_lag_s=30)
    bench.server.client.set_settings(behind)
    page = make_document(base_url=bench.base_url)
    draft = bench.cms.create_draft(page)
    by_mark = bench.cms.look_up(page.marker.page_id, page.path, None)
    by_id = bench.cms.look_up(page.marker.page_id, page.path, draft.remote_id)
    bench.server.client.set_settings(CMSSettings(latency_median_s=0, idle_exit_s=0))
    assert by_mark.verdict is Verdict.ABSENT
    assert by_id.page == draft
    assert by_id.twins == ()


def test_a_draft_that_is_known_does_not_hide_its_twin(bench: Bench) -> None:
    page = make_document(base_url=bench.base_url)
    first, second = bench.cms.create_draft(page), bench.cms.create_draft(page)
    found = bench.cms.look_up(page.marker.page_id, page.path, first.remote_id)
    assert found.page == first
    assert [twin.remote_id for twin in found.twins] == [second.remote_id]
