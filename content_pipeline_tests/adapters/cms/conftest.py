"""The repository that the tests of the git adapter publish to, and who serves it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from content_pipeline.adapters.cms.git import GitCMS
from content_pipeline.adapters.cms.git_command import GitRemote
from content_pipeline_tests.adapters.cms import git_http
from content_pipeline_tests.adapters.cms.git_http import GitServer
from content_pipeline_tests.adapters.cms.git_repository import Repository, clone_of, cms_of, git


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.new(tmp_path)


@pytest.fixture
def cms(repository: Repository, tmp_path: Path) -> GitCMS:
    """The adapter with its copy in ``ours.git``."""
    return cms_of(clone_of(tmp_path / "ours.git", GitRemote(url=str(repository.bare))))


@pytest.fixture
def server(repository: Repository, tmp_path: Path) -> Iterator[GitServer]:
    """The repository over HTTP."""
    git(repository.bare, "config", "http.receivepack", "true")
    with git_http.serving(tmp_path) as served:
        yield served
