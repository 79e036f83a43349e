"""A site on the offline CMS: no account, no address, and a URL to look at in the end."""

import re
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from content_pipeline.sandbox.cms.supervisor import FOLDER, CMSStatus, cms_status, stop_cms
from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import TownSite, Workshop, towns

SANDBOX = {"kind": "sandbox", "latency_median_s": 0, "companion": True, "seed": 7}


@pytest.fixture
def home(workshop: Workshop) -> Iterator[Path]:
    """Where the project's CMSs work; whatever a test started is ended, and its pages are gone."""
    home = workshop.root / ".content_pipeline"
    yield home
    stop_cms(home)
    shutil.rmtree(home / FOLDER, ignore_errors=True)


@pytest.fixture
def site(make_site: MakeSite, home: Path) -> TownSite:
    return make_site(towns(3), cms=SANDBOX)


def visit(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read().decode())


def running(home: Path, site: TownSite) -> CMSStatus:
    found = cms_status(home, site.name)
    assert found is not None
    return found


def test_a_run_starts_the_cms_and_tells_where_to_look(site: TownSite, home: Path) -> None:
    assert cms_status(home, site.name) is None
    done = site.workshop.cli("run", "--site", site.name)
    assert done.status == 0, done.out + done.err
    cms = running(home, site)
    assert f"{cms.base_url}/" in done.out
    paths = {page["path"] for page in cms.client().live()}
    assert paths == {"/aarau-0/", "/baden-1/", "/chur-2/"}
    front = visit(f"{cms.base_url}/")
    links = set(re.findall(r'href="([^"]+)"', front))
    assert f"{cms.base_url}/aarau-0/" in links
    assert "Aarau 0" in visit(f"{cms.base_url}/aarau-0/")


def test_the_cms_behaves_as_the_site_says(site: TownSite, home: Path) -> None:
    site.workshop.cli("run", "--site", site.name)
    settings = running(home, site).settings
    assert settings.companion
    assert (settings.latency_median_s, settings.seed) == (0, 7)


def test_a_cms_that_was_stopped_comes_back_with_its_pages(site: TownSite, home: Path) -> None:
    site.workshop.cli("run", "--site", site.name)
    changes = len(running(home, site).client().history())
    stop_cms(home)
    again = site.workshop.cli("run", "--site", site.name)
    assert again.status == 0
    assert len(running(home, site).client().history()) == changes


def test_a_path_that_the_cms_would_change_is_refused_before_anything_starts(
    make_site: MakeSite, home: Path
) -> None:
    site = make_site(towns(1), cms=SANDBOX, topics__path="/Guide/{name}/")
    done = site.workshop.cli("run", "--site", site.name)
    assert done.status == 2
    assert "topics.path" in done.err
    assert cms_status(home, site.name) is None


def test_two_sites_on_the_sandbox_share_neither_paths_nor_pages(
    make_site: MakeSite, home: Path
) -> None:
    one, other = (make_site(towns(2), cms=SANDBOX) for _ in range(2))
    for site in (one, other):
        done = site.workshop.cli("run", "--site", site.name)
        assert done.status == 0, done.out + done.err
    paths = {"/aarau-0/", "/baden-1/"}
    for site in (one, other):
        client = running(home, site).client()
        assert {page["path"] for page in client.live()} == paths
        assert {page["most_live_at_once"] for page in client.truth()["pages"].values()} == {1}
    assert running(home, one).base_url != running(home, other).base_url
    done = one.workshop.cli("sandbox", "status")
    for site in (one, other):
        assert f"CMS of {site.name} {running(home, site).base_url}: 2 pages live" in done.out
