from pathlib import Path

import pytest

from content_pipeline.adapters.cms.git_command import GitRemote
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.git_repository import (
    HUGO_CONFIGURATION,
    Repository,
    clone_of,
    cms_of,
)

NOT_SET = "cms.deployed_url is not set"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "ours.git"


def notes_of(repository: Repository, copy: Path, deployed: Path | None = None) -> tuple[str, ...]:
    clone = clone_of(copy, GitRemote(url=str(repository.bare)))
    check = cms_of(clone, deployed=None if deployed is None else str(deployed)).check()
    assert check.problems == ()
    assert check.identity.startswith(f"{repository.bare} branch main (git version")
    return check.notes


def test_a_repository_that_works_is_told_from_what_it_lacks(tmp_path: Path, copy: Path) -> None:
    repository = Repository.new(tmp_path, {"hugo.toml": "enableEmoji = true"})
    notes = " ".join(notes_of(repository, copy))
    for word in ("no files in content/", "allowContent", "enableEmoji", NOT_SET):
        assert word in notes


def test_nothing_is_said_of_a_site_in_order(tmp_path: Path, copy: Path) -> None:
    files = {"config/_default/hugo.toml": HUGO_CONFIGURATION, "content/_index.md": "---\n---\n"}
    repository = Repository.new(tmp_path, files)
    deployed = tmp_path / "deployed.txt"
    deployed.write_text(repository.head())
    assert notes_of(repository, copy, deployed) == ()
    (note,) = notes_of(repository, copy)
    assert NOT_SET in note


def test_how_far_a_site_is_behind_is_told(tmp_path: Path, copy: Path) -> None:
    repository = Repository.new(tmp_path)
    deployed = tmp_path / "deployed.txt"
    deployed.write_text(repository.head())
    for number in range(3):
        repository.commit({f"content/{number}.md": b"---\n---\n"})
    (note,) = notes_of(repository, copy, deployed)
    assert "3 behind the branch" in note
    deployed.write_text("e" * 40)
    (note,) = notes_of(repository, copy, deployed)
    assert "never on the branch" in note


def test_a_deployment_that_cannot_be_read_is_a_problem(tmp_path: Path, copy: Path) -> None:
    clone = clone_of(copy, GitRemote(url=str(Repository.new(tmp_path).bare)))
    (problem,) = cms_of(clone, deployed=str(tmp_path / "none")).check().problems
    assert "let the deployment write the commit's id there" in problem


def test_a_check_changes_nothing_on_the_branch(tmp_path: Path, copy: Path) -> None:
    repository = Repository.new(tmp_path)
    clone = clone_of(copy, GitRemote(url=str(repository.bare)))
    cms = cms_of(clone)
    cms.publish(make_document(), replacing=None)
    head = repository.head()
    repository.hook("pre-receive", f"touch {tmp_path}/asked")
    cms.check()
    assert repository.head() == head
    assert not (tmp_path / "asked").exists()


def test_an_older_git_is_a_problem(tmp_path: Path, copy: Path) -> None:
    repository = Repository.new(tmp_path)
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho git version 2.20.1\n")
    program.chmod(0o755)
    clone = clone_of(copy, GitRemote(url=str(repository.bare)), path=str(program.parent))
    assert "too old; install 2.31" in cms_of(clone).check().problems[0]
