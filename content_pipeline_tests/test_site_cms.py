from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.adapters.cms.directus import DirectusCMS
from content_pipeline.adapters.cms.folder import FolderCMS
from content_pipeline.adapters.cms.ghost import GhostCMS
from content_pipeline.adapters.cms.webhook import WebhookCMS
from content_pipeline.adapters.cms.wordpress import WordPressCMS
from content_pipeline.config import Project
from content_pipeline.core.cms import capabilities_of
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.sandbox.cms.supervisor import cms_status, stop_cms
from content_pipeline.site_cms import cms_route, open_cms, published_folder, where_to_look
from content_pipeline.site_files import Site
from content_pipeline_tests.operations.small_site import clock, settings_of, site_of

ACCOUNT = {
    "WORDPRESS_URL": "https://cms.example/blog/",
    "WORDPRESS_USER": "pipeline",
    "WORDPRESS_APPLICATION_PASSWORD": "abcd efgh",
}


def site_on(cms: dict[str, Any]) -> Site:
    settings = settings_of("towns")
    return site_of(settings.model_validate(settings.model_dump() | {"cms": cms}))


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(root=tmp_path)


def test_a_folder_is_opened_with_the_files_beside_its_pages(project: Project) -> None:
    site = site_on({"folder": "public/towns"})
    cms, hooks = open_cms(site, project, clock=clock)
    assert isinstance(cms, FolderCMS)
    assert {hook.kind for hook in hooks} == {"sitemap", "index_page"}
    assert published_folder(site, project) == project.root / "public/towns"
    assert where_to_look(site, project).endswith("public/towns/index.html")
    assert cms_route(site) == "folder:towns"


def test_wordpress_is_opened_with_the_account_of_the_environment(
    project: Project, account: pytest.MonkeyPatch
) -> None:
    site = site_on({"kind": "wordpress"})
    cms, hooks = open_cms(site, project, clock=clock)
    assert isinstance(cms, WordPressCMS)
    cms.close()
    assert hooks == ()
    assert published_folder(site, project) is None
    assert where_to_look(site, project) == "https://towns.example/"


@pytest.mark.parametrize("name", ACCOUNT)
def test_what_the_environment_lacks_is_named(
    name: str, project: Project, account: pytest.MonkeyPatch
) -> None:
    account.delenv(name)
    with pytest.raises(ConfigurationError, match=name):
        open_cms(site_on({"kind": "wordpress"}), project, clock=clock)


def test_an_address_in_the_file_needs_none_in_the_environment(
    project: Project, account: pytest.MonkeyPatch
) -> None:
    account.delenv("WORDPRESS_URL")
    site = site_on({"kind": "wordpress", "url": "https://cms.example"})
    cms, _ = open_cms(site, project, clock=clock)
    assert isinstance(cms, WordPressCMS)
    cms.close()


@pytest.mark.parametrize("url", ["cms.example", "https://pipeline:secret@cms.example"])
def test_an_address_of_the_environment_is_checked_and_not_repeated(
    url: str, project: Project, account: pytest.MonkeyPatch
) -> None:
    account.setenv("WORDPRESS_URL", url)
    with pytest.raises(ConfigurationError, match="WORDPRESS_URL") as refused:
        open_cms(site_on({"kind": "wordpress"}), project, clock=clock)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WORDPRESS_USER", "pipe:line"),
        ("WORDPRESS_USER", "pipe\nline"),
        ("WORDPRESS_APPLICATION_PASSWORD", "secret\x07"),
    ],
)
def test_credentials_that_none_can_be_are_refused_and_not_repeated(
    name: str, value: str, project: Project, account: pytest.MonkeyPatch
) -> None:
    account.setenv(name, value)
    with pytest.raises(ConfigurationError, match="copy it again") as refused:
        open_cms(site_on({"kind": "wordpress"}), project, clock=clock)
    assert value not in str(refused.value)


def test_a_route_names_the_account_and_shows_nothing_of_it(account: pytest.MonkeyPatch) -> None:
    site = site_on({"kind": "wordpress"})
    before = cms_route(site)
    assert before.startswith("wordpress:")
    assert cms_route(site) == before
    for name, value in ACCOUNT.items():
        account.setenv(name, f"{value}x")
        assert cms_route(site) != before, f"another {name} is another account"
        account.setenv(name, value)
    assert "abcd" not in before


GHOST = {"GHOST_URL": "https://ghost.example/", "GHOST_ADMIN_API_KEY": f"{'a' * 24}:{'b' * 64}"}


def test_ghost_is_opened_with_the_key_of_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in GHOST.items():
        monkeypatch.setenv(name, value)
    site = site_on({"kind": "ghost", "content_type": "posts", "below": "/land/"})
    cms, hooks = open_cms(site, project, clock=clock)
    assert isinstance(cms, GhostCMS)
    cms.close()
    assert hooks == ()
    before = cms_route(site)
    assert before.startswith("ghost:")
    monkeypatch.setenv("GHOST_ADMIN_API_KEY", f"{'c' * 24}:{'b' * 64}")
    assert cms_route(site) != before


@pytest.mark.parametrize("name", GHOST)
def test_what_ghost_needs_and_the_environment_lacks_is_named(
    name: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each, value in GHOST.items():
        monkeypatch.setenv(each, value)
    monkeypatch.delenv(name)
    with pytest.raises(ConfigurationError, match=name):
        open_cms(site_on({"kind": "ghost"}), project, clock=clock)


WEBHOOK = {
    "CONTENT_WEBHOOK_URL": "https://towns.example/content",
    "CONTENT_WEBHOOK_SIGNING_KEY": f"whsec_{'A' * 32}",
}


def test_a_webhook_is_opened_with_the_key_of_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in WEBHOOK.items():
        monkeypatch.setenv(name, value)
    site = site_on({"kind": "webhook", "capabilities": ["drafts", "client_id"]})
    cms, hooks = open_cms(site, project, clock=clock)
    assert isinstance(cms, WebhookCMS)
    assert cms.capabilities == capabilities_of({"drafts", "client_id"})
    cms.close()
    assert hooks == ()
    before = cms_route(site)
    monkeypatch.setenv("CONTENT_WEBHOOK_SIGNING_KEY", f"whsec_{'B' * 32}")
    assert before.startswith("webhook:")
    assert cms_route(site) != before


@pytest.mark.parametrize("name", WEBHOOK)
def test_what_a_webhook_needs_and_the_environment_lacks_is_named(
    name: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each, value in WEBHOOK.items():
        monkeypatch.setenv(each, value)
    monkeypatch.delenv(name)
    with pytest.raises(ConfigurationError, match=name):
        open_cms(site_on({"kind": "webhook"}), project, clock=clock)


DIRECTUS = {"DIRECTUS_URL": "https://directus.example", "DIRECTUS_TOKEN": "secret-token"}


def test_directus_is_opened_with_the_token_of_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in DIRECTUS.items():
        monkeypatch.setenv(name, value)
    site = site_on({"kind": "directus", "collection": "articles", "fields": {"path": "slug"}})
    cms, hooks = open_cms(site, project, clock=clock)
    assert isinstance(cms, DirectusCMS)
    cms.close()
    assert hooks == ()
    before = cms_route(site)
    assert before.startswith("directus:")
    monkeypatch.setenv("DIRECTUS_TOKEN", "another-token")
    assert cms_route(site) != before


@pytest.mark.parametrize("name", DIRECTUS)
def test_what_directus_needs_and_the_environment_lacks_is_named(
    name: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each, value in DIRECTUS.items():
        monkeypatch.setenv(each, value)
    monkeypatch.delenv(name)
    with pytest.raises(ConfigurationError, match=name):
        open_cms(site_on({"kind": "directus"}), project, clock=clock)


@pytest.fixture
def own_cms(project: Project) -> Iterator[Project]:
    """A project whose CMS ends with the test."""
    yield project
    stop_cms(project.data_home)


def test_the_sandbox_is_started_and_needs_no_account(own_cms: Project) -> None:
    site = site_on({"kind": "sandbox", "listing_lag_s": 2})
    assert where_to_look(site, own_cms) == "https://towns.example/"  # nothing runs there yet
    cms, hooks = open_cms(site, own_cms, clock=clock)
    assert isinstance(cms, WordPressCMS)
    check = cms.check()
    cms.close()
    assert check.problems == ()
    assert check.identity.startswith("pipeline (editor)")
    assert hooks == ()
    running = cms_status(own_cms.data_home, site.settings.site)
    assert running is not None
    assert running.settings.listing_lag_s == 2
    assert where_to_look(site, own_cms) == f"{running.base_url}/"
    assert published_folder(site, own_cms) is None


def test_the_sandbox_of_a_site_is_a_route_of_its_own() -> None:
    assert cms_route(site_on({"kind": "sandbox"})) == "sandbox:towns"
