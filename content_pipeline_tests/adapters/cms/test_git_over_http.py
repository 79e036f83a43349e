"""A repository elsewhere: credentials, servers that fail, answers that are lost."""

import threading
from pathlib import Path

import pytest

from content_pipeline.adapters.cms.git import GitCMS
from content_pipeline.adapters.cms.git_command import GitRemote
from content_pipeline.core.failures import FailureClass
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.git_http import PASSWORD, USER, GitServer
from content_pipeline_tests.adapters.cms.git_repository import (
    Repository,
    clone_of,
    cms_of,
    lost,
    publish,
    refused,
)


def over_http(server: GitServer, tmp_path: Path, *, password: str = PASSWORD) -> GitCMS:
    remote = GitRemote(url=server.url, username=USER, password=password)
    return cms_of(clone_of(tmp_path / "over-http.git", remote))


def test_a_wrong_password_is_refused_and_never_shown(server: GitServer, tmp_path: Path) -> None:
    server.needs_password = True
    cms = over_http(server, tmp_path, password="wr0ng-secret")
    for failure in (lost(cms), refused(cms)):
        assert failure.failure_class is FailureClass.AUTH
        assert "wr0ng" not in failure.message
    assert "wr0ng" not in repr(cms.check())


@pytest.mark.parametrize(
    ("status", "expected"),
    [(403, FailureClass.AUTH), (404, FailureClass.AUTH), (502, FailureClass.TRANSIENT)],
)
def test_a_server_that_answers_with_an_error_is_unknown(
    status: int, expected: FailureClass, server: GitServer, tmp_path: Path
) -> None:
    server.status = status
    assert lost(over_http(server, tmp_path)).failure_class is expected


def test_a_push_whose_answer_was_lost_is_found_on_the_branch(
    server: GitServer, repository: Repository, tmp_path: Path
) -> None:
    cms = over_http(server, tmp_path)
    cms.look_up("x", "/austria/", None)
    server.loses_answers = 1
    publish(cms)
    assert repository.history() == ["Seed", "Publish /austria/ revision 1"]


def test_a_push_of_which_nobody_knows_is_uncertain(
    server: GitServer, repository: Repository, tmp_path: Path
) -> None:
    repository.hook(
        "post-receive",
        f"touch {tmp_path}/received; while test -e {tmp_path}/received; do sleep 0.05; done",
    )
    clone = clone_of(tmp_path / "over-http.git", GitRemote(url=server.url), deadline_s=4)
    cms = cms_of(clone)
    cms.look_up("x", "/austria/", None)
    # From the moment that the push was taken on, nobody gets an answer.
    received = tmp_path / "received"
    watcher = threading.Thread(target=fail_once_there, args=(received, server))
    watcher.start()
    failure = refused(cms)
    watcher.join()
    assert failure.failure_class is FailureClass.UNCERTAIN
    server.status = None
    received.unlink()
    found = cms.look_up(make_document().marker.page_id, "/austria/", None)
    assert found.page is not None
    assert refused(cms).failure_class is FailureClass.CONFLICT


def fail_once_there(file: Path, server: GitServer) -> None:
    while not file.exists():
        threading.Event().wait(0.01)
    server.status = 503
