"""A site whose pages go to WordPress, from the command line; the sandbox CMS stands in for it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from content_pipeline.sandbox.cms.accounts import AUTHOR, PIPELINE
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.people import Act
from content_pipeline.sandbox.cms.server import serving_cms
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import TownSite, towns

SECRET = PIPELINE.app_password


@pytest.fixture
def cms() -> Iterator[CMSClient]:
    with serving_cms(CMSSettings(latency_median_s=0, idle_exit_s=0)) as client:
        yield client


@pytest.fixture
def site(make_site: MakeSite, cms: CMSClient) -> TownSite:
    """A site on the CMS, whose account stands in the environment."""
    made = make_site(towns(3), cms={"kind": "wordpress"}, base_url=cms.base_url)
    account = {
        "WORDPRESS_URL": cms.base_url,
        "WORDPRESS_USER": PIPELINE.login,
        "WORDPRESS_APPLICATION_PASSWORD": SECRET,
    }
    workshop = replace(made.workshop, environment={**made.workshop.environment, **account})
    return replace(made, workshop=workshop)


def test_a_run_publishes_to_wordpress_and_a_second_one_nothing(
    site: TownSite, cms: CMSClient
) -> None:
    first = site.workshop.cli("run", "--site", site.name)
    assert first.status == 0, first.out + first.err
    assert f"{cms.base_url}/" in first.out
    live = {change["path"] for change in cms.live()}
    assert live == {"/aarau-0/", "/baden-1/", "/chur-2/"}
    writes = len(cms.history())
    again = site.workshop.cli("run", "--site", site.name)
    assert again.status == 0
    assert len(cms.history()) == writes


def test_a_persons_edit_is_reported_and_left_alone(site: TownSite, cms: CMSClient) -> None:
    site.workshop.cli("run", "--site", site.name)
    page = next(change["page_id"] for change in cms.live() if change["path"] == "/aarau-0/")
    cms.by_hand(Act(act="edit", page_id=page, appended="<p>A person was here.</p>"))
    rows = towns(3)
    rows[0]["people"] = "77,777"
    site.write(rows)
    done = site.workshop.cli("run", "--site", site.name)
    assert done.status != 0
    assert "edited on the site" in done.out + done.err
    held = [change for change in cms.history() if change["page_id"] == page]
    assert held[-1]["cause"] == "person:edit"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("WORDPRESS_URL", "", "the address of the CMS is missing"),
        ("WORDPRESS_URL", "www.example.com", "absolute http(s) URL"),
        ("WORDPRESS_USER", " ", "the user for WordPress is missing"),
        ("WORDPRESS_APPLICATION_PASSWORD", "", "application password is missing"),
        ("WORDPRESS_APPLICATION_PASSWORD", "a\x07b", "copy it again"),
    ],
)
def test_what_is_not_set_is_named_before_anything_is_spent(
    site: TownSite, name: str, value: str, words: str
) -> None:
    before = site.workshop.requests()
    done = site.workshop.cli("run", "--site", site.name, environment={name: value})
    assert done.status != 0
    assert words in done.err
    assert SECRET not in done.out + done.err
    assert site.workshop.requests() == before


def test_wrong_credentials_stop_the_site_and_are_not_shown(site: TownSite, cms: CMSClient) -> None:
    account = {"WORDPRESS_USER": AUTHOR.login, "WORDPRESS_APPLICATION_PASSWORD": "wrong wrong"}
    done = site.workshop.cli("run", "--site", site.name, environment=account)
    assert done.status != 0
    assert "application password" in done.out + done.err
    assert "wrong wrong" not in done.out + done.err
    assert cms.live() == []
    # A new password is a new account with a clean slate.
    assert site.workshop.cli("run", "--site", site.name).status == 0
    assert len(cms.live()) == 3
