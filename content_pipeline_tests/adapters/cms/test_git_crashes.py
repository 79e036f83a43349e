"""Workers, git and machines that go down. The judge is the bare repository."""

import fcntl
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from content_pipeline.adapters.cms.git import GitCMS
from content_pipeline.adapters.cms.git_clone import LOCK_FILE
from content_pipeline.adapters.cms.git_command import GitRemote
from content_pipeline.core.failures import FailureClass
from content_pipeline_tests.adapters.cms.git_http import GitServer
from content_pipeline_tests.adapters.cms.git_repository import (
    Repository,
    clone_of,
    cms_of,
    git,
    git_before,
    publish,
    refused,
)

REPOSITORY = Path(__file__).parents[3]


def test_git_locks_that_a_crash_left_in_our_copy_are_taken_away(
    cms: GitCMS, repository: Repository, tmp_path: Path
) -> None:
    publish(cms)
    ours = tmp_path / "ours.git"
    left = [ours / "packed-refs.lock", ours / "refs/outgoing.lock"]
    left.append(ours / "refs/remotes/site/main.lock")
    for lock in left:
        lock.touch()
    repository.commit({"README": b"x"})
    publish(cms, "/belgium/")
    assert repository.names() == ["content/austria.html", "content/belgium.html"]
    assert not [lock for lock in left if lock.exists()]


def test_a_copy_that_another_process_keeps_is_waited_for_in_vain(
    repository: Repository, tmp_path: Path
) -> None:
    clone = clone_of(tmp_path / "ours.git", GitRemote(url=str(repository.bare)))
    cms = cms_of(replace(clone, lock_timeout_s=0.05))
    publish(cms)
    lock = os.open(tmp_path / "ours.git" / LOCK_FILE, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        assert refused(cms, "/belgium/").failure_class is FailureClass.TRANSIENT
    finally:
        os.close(lock)
    publish(cms, "/belgium/")


@pytest.mark.parametrize("command", ["fast-import", "init"])
def test_a_full_local_disk_is_told_and_nothing_is_pushed(
    command: str, repository: Repository, tmp_path: Path
) -> None:
    script = "echo 'fatal: write error: No space left on device' >&2; exit 128"
    path = git_before(tmp_path, command, script)
    cms = cms_of(clone_of(tmp_path / "ours.git", GitRemote(url=str(repository.bare)), path=path))
    failure = refused(cms)
    assert failure.failure_class is FailureClass.STORAGE
    assert "free space on the local disk" in failure.message
    assert repository.names() == []


def test_a_copy_that_can_be_no_folder_is_told(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    remote = GitRemote(url=str(repository.bare))
    failure = refused(cms_of(clone_of(tmp_path / "file" / "ours.git", remote)))
    assert failure.failure_class is FailureClass.STORAGE


WORKER = """
import sys
from pathlib import Path
from content_pipeline.adapters.cms.git_command import GitRemote
from content_pipeline.core.errors import CallFailed
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.git_repository import clone_of, cms_of

bare, copy, name, first, last = sys.argv[1:]
cms = cms_of(clone_of(Path(copy), GitRemote(url=bare)))
for number in range(int(first), int(last)):
    document = make_document(f"/page-{number}/")
    print("begins", number, flush=True)
    try:
        page = cms.look_up(document.marker.page_id, document.path, None).page
        if page is None:
            cms.publish(document, replacing=None)
    except CallFailed as failed:
        print(name, number, failed.failure.failure_class, failed, file=sys.stderr)
        if failed.failure.failure_class not in ("conflict", "transient", "storage"):
            raise
"""


def worker(
    remote: Repository | GitServer, copy: Path, name: str, first: int, last: int
) -> "subprocess.Popen[str]":
    where = str(remote.bare) if isinstance(remote, Repository) else remote.url
    arguments = [where, str(copy), name, str(first), str(last)]
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_eight_processes_that_publish_the_same_pages_leave_one_of_each(
    repository: Repository, tmp_path: Path
) -> None:
    """Four share a copy; four have one each, as on other machines."""
    copies = [tmp_path / "shared.git"] * 4 + [tmp_path / f"own-{n}.git" for n in range(4)]
    workers = [worker(repository, copy, f"w{n}", 0, 5) for n, copy in enumerate(copies)]
    for process in workers:
        process.communicate(timeout=150)
    assert [process.returncode for process in workers] == [0] * 8
    published = [subject for subject in repository.history() if subject.startswith("Publish")]
    assert sorted(published) == [f"Publish /page-{number}/ revision 1" for number in range(5)]
    assert repository.names() == [f"content/page-{number}.html" for number in range(5)]


def test_workers_that_are_killed_in_the_middle_lose_and_double_nothing(
    repository: Repository, tmp_path: Path
) -> None:
    theirs = b"---\ntitle: Theirs\n---\nBy a person\n"
    repository.commit({"content/page-3.md": theirs})
    copy = tmp_path / "shared.git"
    for kills in range(6):
        process = worker(repository, copy, f"k{kills}", kills, 12)
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        threading.Event().wait(0.02 * kills)
        process.kill()
        process.communicate()
    last = worker(repository, copy, "last", 0, 12)
    last.communicate(timeout=100)
    assert last.returncode == 0
    ours = {f"content/page-{number}.html" for number in range(12) if number != 3}
    assert set(repository.names()) == ours | {"content/page-3.md"}
    assert repository.read("content/page-3.md") == theirs
    published = [subject for subject in repository.history() if subject.startswith("Publish")]
    assert len(published) == len(set(published)) == 11
    git(repository.bare, "fsck", "--strict")


def test_workers_that_are_killed_with_their_git_lose_and_double_nothing(
    repository: Repository, server: GitServer, tmp_path: Path
) -> None:
    """As when a machine goes down: the push itself is cut off, wherever it is."""
    copy = tmp_path / "shared.git"
    for kills in range(8):
        process = worker(server, copy, f"k{kills}", kills, 12)
        assert process.stdout is not None
        for _ in range(2):
            process.stdout.readline()
        threading.Event().wait(0.03 * kills)
        of_git = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for child in of_git:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        process.communicate()
    last = worker(server, copy, "last", 0, 12)
    last.communicate(timeout=100)
    assert last.returncode == 0
    assert repository.names() == sorted(f"content/page-{number}.html" for number in range(12))
    published = [subject for subject in repository.history() if subject.startswith("Publish")]
    assert len(published) == len(set(published)) == 12
    git(repository.bare, "fsck", "--strict")
