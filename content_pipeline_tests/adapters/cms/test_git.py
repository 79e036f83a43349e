"""The git adapter keeps every law, over a local repository and over HTTP."""

from pathlib import Path

import pytest

from content_pipeline.adapters.cms.git import GitCMS
from content_pipeline.adapters.cms.git_command import GitRemote
from content_pipeline_tests.adapters.cms.conformance import LAWS, Law, law_name
from content_pipeline_tests.adapters.cms.git_http import PASSWORD, USER, GitServer
from content_pipeline_tests.adapters.cms.git_repository import (
    GitBench,
    Repository,
    clone_of,
    cms_of,
)


@pytest.fixture
def bench(repository: Repository, cms: GitCMS) -> GitBench:
    return GitBench(repository=repository, cms=cms)


@pytest.fixture
def http_bench(repository: Repository, server: GitServer, tmp_path: Path) -> GitBench:
    server.needs_password = True
    remote = GitRemote(url=server.url, username=USER, password=PASSWORD)
    return GitBench(repository=repository, cms=cms_of(clone_of(tmp_path / "ours.git", remote)))


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_a_repository_keeps_the_law(law: Law, bench: GitBench) -> None:
    law(bench)


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_a_repository_over_http_keeps_the_law(law: Law, http_bench: GitBench) -> None:
    law(http_bench)
