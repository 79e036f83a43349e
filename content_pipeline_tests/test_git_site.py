"""A site whose file says ``kind: git`` is opened on a repository."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.config import Project
from content_pipeline.core.cms import CMS
from content_pipeline.core.cms_settings import GitCMSSettings
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.site_cms import cms_route, open_cms, published_folder, where_to_look
from content_pipeline.site_files import Site
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.git_repository import Repository
from content_pipeline_tests.operations.small_site import BASE_URL, settings_of, site_of


def a_site(**cms: Any) -> Site:
    settings = settings_of("towns")
    return site_of(settings.model_copy(update={"cms": GitCMSSettings(kind="git", **cms)}))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(root=tmp_path / "project")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.new(tmp_path / "server")


def opened(site: Site, project: Project) -> CMS:
    cms, hooks = open_cms(site, project, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))
    assert hooks == ()
    return cms


def test_pages_go_to_the_repository_and_the_copy_stays_with_the_project(
    project: Project, repository: Repository
) -> None:
    site = a_site(
        remote="../server/site.git",
        content_folder="content/towns",
        front_matter={"layout": "town"},
        author_name="Town hall",
    )
    page = opened(site, project).publish(make_document(), replacing=None)
    assert page.url == f"{BASE_URL}/austria/"
    assert repository.names() == ["content/towns/austria.html"]
    text = repository.read("content/towns/austria.html")
    assert text is not None
    assert b'\nlayout: "town"\n' in text
    (copy,) = (project.data_home / "git").iterdir()
    assert copy.stat().st_mode & 0o777 == 0o700
    assert published_folder(site, project) is None
    assert where_to_look(site, project) == f"{BASE_URL}/"


def test_what_is_deployed_is_read_beside_the_project(
    project: Project, repository: Repository
) -> None:
    site = a_site(remote=str(repository.bare), deployed_url="../server/deployed.txt")
    cms = opened(site, project)
    document = make_document()
    assert cms.publish(document, replacing=None).status == "accepted"
    (repository.bare.parent / "deployed.txt").write_text(repository.head())
    found = cms.look_up(document.marker.page_id, document.path, None).page
    assert found is not None
    assert found.status == "published"


def test_an_address_may_come_from_the_environment(
    project: Project, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="CONTENT_REPOSITORY_URL"):
        opened(a_site(), project)
    monkeypatch.setenv("CONTENT_REPOSITORY_URL", str(repository.bare))
    assert opened(a_site(), project).check().problems == ()


def test_credentials_are_never_shown(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTENT_REPOSITORY_URL", "http://me:pa55word@127.0.0.1:1/x.git")
    monkeypatch.setenv("CONTENT_REPOSITORY_PASSWORD", "another-pa55word")
    check = opened(a_site(), project).check()
    assert check.problems
    assert "pa55word" not in repr(check)
    assert check.identity.startswith("http://127.0.0.1:1/x.git branch main")


@pytest.mark.parametrize(
    "name", ["CONTENT_REPOSITORY_URL", "CONTENT_REPOSITORY_USERNAME", "CONTENT_REPOSITORY_PASSWORD"]
)
def test_a_new_credential_is_a_new_account(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cms_route(a_site())
    assert before.startswith("git:")
    monkeypatch.setenv(name, "new")
    assert cms_route(a_site()) != before


def test_another_branch_is_another_account() -> None:
    assert cms_route(a_site(branch="live")) != cms_route(a_site())
    assert cms_route(a_site(remote="x")) != cms_route(a_site())
