"""The git adapter keeps every law, over a local repository and over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from content_pipeline.adapters.cms.git_command import GitRemote
from content_pipeline_tests.adapters.cms import git_http
from content_pipeline_tests.adapters.cms.conformance import LAWS, Law, law_name
from content_pipeline_tests.adapters.cms.git_repository import (
    GitBench,
    Repository,
    clone_of,
    cms_of,
    git,
)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.new(tmp_path)


@pytest.fixture
def bench(repository: Repository, tmp_path: Path) -> GitBench:
    clone = clone_of(tmp_path / "ours.git", GitRemote(url=str(repository.bare)))
    return GitBench(repository=repository, cms=cms_of(clone))


@pytest.fixture
def http_bench(repository: Repository, tmp_path: Path) -> Iterator[GitBench]:
    git(repository.bare, "config", "http.receivepack", "true")
    with git_http.serving(tmp_path) as server:
        server.needs_password = True
        remote = GitRemote(url=server.url, username=git_http.USER, password=git_http.PASSWORD)
        yield GitBench(repository=repository, cms=cms_of(clone_of(tmp_path / "ours.git", remote)))


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_a_repository_keeps_the_law(law: Law, bench: GitBench) -> None:
    law(bench)


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_a_repository_over_http_keeps_the_law(law: Law, http_bench: GitBench) -> None:
    law(http_bench)
