"""``run`` and ``status`` of a site whose changes are told to others: what is sent, what is said."""

import re

import pytest

from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import TownSite, Workshop, towns

SECRET = "s3cr3t-build-hook"


@pytest.fixture
def address(sandbox_cms: CMSClient) -> dict[str, str]:
    """The environment of a site with a deploy hook."""
    return {"DEPLOY_HOOK_URL": f"{sandbox_cms.base_url}/hooks/deploy/{SECRET}"}


def status(workshop: Workshop, site: TownSite, address: dict[str, str]) -> str:
    shown = workshop.cli("status", "--site", site.name, environment=address).out
    assert SECRET not in shown
    return re.sub(r"\s+", " ", shown)


def deploy(debounce_s: float) -> list[dict[str, object]]:
    return [{"kind": "deploy_hook", "debounce_s": debounce_s}]


def test_a_run_calls_a_hook_once_for_all_its_pages_and_not_at_all_for_none(
    make_site: MakeSite, workshop: Workshop, sandbox_cms: CMSClient, address: dict[str, str]
) -> None:
    site = make_site(towns(4), announce=deploy(1), lane__patience_s=30)
    done = site.run(**address)
    assert (done.status, done.count("published")) == (0, 4)
    assert done.row("deploy hook")[1].startswith("build ")
    assert len(sandbox_cms.deliveries()) == 1
    shown = status(workshop, site, address)
    assert re.search(r"hook deploy hook\W+told of 4 pages; last call .*; build \w+", shown)
    again = site.run(**address)
    assert again.status == 0
    assert len(sandbox_cms.deliveries()) == 1


def test_a_hook_that_gathers_for_longer_than_a_run_is_left_to_a_later_one(
    make_site: MakeSite, workshop: Workshop, sandbox_cms: CMSClient, address: dict[str, str]
) -> None:
    site = make_site(towns(2), announce=deploy(3600))
    done = site.run(**address)
    assert done.status == 0, "every page is out"
    assert re.search(
        r"waits [0-9a-z ]+ for more; a later run or the sensor", done.row("deploy hook")[1]
    )
    assert sandbox_cms.deliveries() == []
    shown = status(workshop, site, address)
    assert re.search(r"hook deploy hook\W+gathers until [\d :-]+; never called", shown)


def test_a_hook_that_fails_is_told_and_tried_again_by_the_next_run(
    make_site: MakeSite, workshop: Workshop, sandbox_cms: CMSClient, address: dict[str, str]
) -> None:
    rule = {"fault": {"kind": "status", "status": 404}, "match": {"operation": "deploy"}}
    sandbox_cms.set_faults(FaultPlan.model_validate({"rules": [rule | {"times": 1}]}))
    site = make_site(towns(1), announce=deploy(0))
    failed = site.run(**address)
    assert failed.status == 1
    said = failed.row("deploy hook")[1]
    assert "failed: The deploy hook, told of 1 page: answered HTTP 404: there is no such" in said
    assert SECRET not in failed.out
    shown = status(workshop, site, address)
    assert re.search(r"hook deploy hook\W+failed, given up: request: The deploy hook", shown)
    assert site.run(**address).status == 0
    assert len(sandbox_cms.deliveries()) == 1


def test_a_hook_without_its_address_is_told_before_anything_is_paid(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(1), announce=deploy(0))
    before = workshop.requests().get("create", 0)
    refused = site.run()
    assert refused.status == 2
    assert "environment variable DEPLOY_HOOK_URL" in refused.err
    assert workshop.requests().get("create", 0) == before
