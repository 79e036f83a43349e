"""The whole lane onto a receiver of the webhook: what it holds is the judge."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from content_pipeline.core.cms import RemoteStatus
from content_pipeline_tests.adapters.cms.webhook_site import (
    EVERYTHING,
    EXAMPLE,
    THE_LEAST,
    WebhookSite,
    connect,
    receiving,
)
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.small_site import BASE_URL


@pytest.fixture(params=[EVERYTHING, THE_LEAST], ids=["everything", "the least"])
def site(request: pytest.FixtureRequest) -> Iterator[WebhookSite]:
    with receiving(request.param) as running:
        yield running


def published(site: WebhookSite) -> list[str]:
    return [page.path for page in site.pages.all() if page.status == RemoteStatus.PUBLISHED]


def test_every_page_is_held_once_and_a_second_run_writes_nothing(
    site: WebhookSite, make_bench: MakeBench
) -> None:
    with closing(connect(site.url, base_url=BASE_URL)) as cms:
        bench = make_bench(3, cms=cms)
        bench.submit_and_run()
        assert set(bench.states().values()) == {"published"}
        assert len(site.pages.all()) == len(set(published(site))) == 3
        writes = [sent for _, sent, _ in site.said if sent is not None]
        bench.submit_and_run()
        assert [sent for _, sent, _ in site.said if sent is not None] == writes


def test_a_write_that_the_receiver_did_and_called_a_failure_is_found_and_not_repeated(
    site: WebhookSite, make_bench: MakeBench
) -> None:
    create, lost = site.pages.create, []

    def stored_and_lost(*told: Any) -> Any:
        page = create(*told)
        if page.path in lost:
            return page
        lost.append(page.path)
        raise EXAMPLE.Refused(500, "oops", "the answer is lost")

    site.pages.create = stored_and_lost
    with closing(connect(site.url, base_url=BASE_URL)) as cms:
        bench = make_bench(3, cms=cms)
        bench.submit_and_run()
        for _ in range(3):
            bench.make_due()
            bench.run()
        assert set(bench.states().values()) == {"published"}
    assert len(lost) == 3
    assert len(site.pages.all()) == len(set(published(site))) == 3
