"""What becomes of a push, whatever stands in its way. The judge is the bare repository."""

import fcntl
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from content_pipeline.adapters.cms import git_writer
from content_pipeline.adapters.cms.git import GitCMS
from content_pipeline.adapters.cms.git_clone import LOCK_FILE
from content_pipeline.adapters.cms.git_command import GitRemote
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.git_repository import (
    Repository,
    clone_of,
    cms_of,
    git,
    git_before,
    lost,
    publish,
    refused,
)

MAIN = "refs/heads/main"


# --- commits ------------------------------------------------------------------------------------


def test_a_commit_says_what_it_does_and_by_whom(cms: GitCMS, repository: Repository) -> None:
    page = publish(cms)
    cms.remove(page)
    log = git(repository.bare, "log", "--format=%an <%ae> %at %ct %s", "main").decode()
    who = "Content pipeline <content-pipeline@localhost> 1767323045 1767323045"
    assert log.splitlines()[:2] == [
        f"{who} Remove /austria/",
        f"{who} Publish /austria/ revision 1",
    ]


def test_equal_changes_at_equal_times_are_the_same_commit(tmp_path: Path) -> None:
    heads = []
    for name in ("one", "two"):
        repository = Repository.new(tmp_path / name)
        publish(cms_of(clone_of(tmp_path / name / "ours", GitRemote(url=str(repository.bare)))))
        heads.append(repository.head())
    assert heads[0] == heads[1]


def test_publishing_what_is_there_makes_no_commit(cms: GitCMS, repository: Repository) -> None:
    page = publish(cms)
    head = repository.head()
    assert cms.publish(make_document(), replacing=page) == page
    assert repository.head() == head


def test_pages_that_arrive_together_share_commits(cms: GitCMS, repository: Repository) -> None:
    paths = [f"/land-{number}/" for number in range(40)]
    with ThreadPoolExecutor(len(paths)) as pool:
        pages = list(pool.map(lambda path: publish(cms, path), paths))
    assert [page.path for page in pages] == paths
    assert len(repository.names()) == len(paths)
    assert len(repository.history()) < len(paths) / 2


def test_of_equal_addresses_in_one_commit_one_wins(
    cms: GitCMS, repository: Repository, tmp_path: Path
) -> None:
    publish(cms, "/belgium/")
    lock = os.open(tmp_path / "ours.git" / LOCK_FILE, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(publish, cms, "/croatia/")
        writer = cms._writer
        while not writer._is_busy:
            time.sleep(0.001)
        racers = [pool.submit(publish, cms, revision=number + 1) for number in range(8)]
        while len(writer._queue) < len(racers):
            time.sleep(0.001)
        os.close(lock)
        failures = [racer.exception() for racer in racers]
    assert first.exception() is None
    assert failures.count(None) == 1
    lost = [failure for failure in failures if isinstance(failure, CallFailed)]
    assert {failure.failure.failure_class for failure in lost} == {FailureClass.CONFLICT}
    text = repository.read("content/austria.html")
    assert text is not None
    assert f"cp_rev: {failures.index(None) + 1}\n".encode() in text


def test_a_copy_that_is_deleted_is_made_anew(
    cms: GitCMS, repository: Repository, tmp_path: Path
) -> None:
    publish(cms)
    subprocess.run(["rm", "-r", str(tmp_path / "ours.git")], check=True)
    publish(cms, "/belgium/")
    assert repository.names() == ["content/austria.html", "content/belgium.html"]


# --- other people at the same time --------------------------------------------------------------


def test_a_strangers_commit_on_another_file_does_not_matter(
    cms: GitCMS, repository: Repository
) -> None:
    page = publish(cms)
    repository.commit({"content/theirs.md": b"---\ntitle: Theirs\n---\n", "README": b"x"})
    newer = cms.publish(make_document(revision=2), replacing=page)
    assert newer.marker == make_document(revision=2).marker
    assert repository.read("content/theirs.md") is not None


def push_of_theirs(repository: Repository, counter: Path, *, name: str, times: int) -> None:
    """Let somebody else's commit arrive just before each of the next pushes of ours."""
    script = f"""
count=$(cat {counter} 2>/dev/null || echo 0)
test "$count" -ge {times} && exit 0
echo $((count + 1)) > {counter}
unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
cd {repository.bare} && export GIT_DIR=.
old=$(git rev-parse main)
blob=$(echo "by a person $count" | git hash-object -w --stdin)
export GIT_INDEX_FILE={counter}.index GIT_AUTHOR_NAME=p GIT_AUTHOR_EMAIL=p GIT_COMMITTER_NAME=p
export GIT_COMMITTER_EMAIL=p
git read-tree main && git update-index --add --cacheinfo "100644,$blob,{name}"
git update-ref refs/heads/main "$(git commit-tree -p main -m Theirs "$(git write-tree)")" "$old"
"""
    repository.hook("pre-receive", script)


def test_a_push_that_is_overtaken_is_made_again_on_top(
    cms: GitCMS, repository: Repository, tmp_path: Path
) -> None:
    push_of_theirs(repository, tmp_path / "n", name="content/theirs.md", times=3)
    publish(cms)
    assert repository.history() == [
        "Seed",
        "Theirs",
        "Theirs",
        "Theirs",
        "Publish /austria/ revision 1",
    ]
    assert repository.read("content/theirs.md") == b"by a person 2\n"


def test_a_page_that_is_edited_in_the_last_moment_is_not_overwritten(
    cms: GitCMS, repository: Repository, tmp_path: Path
) -> None:
    page = publish(cms)
    push_of_theirs(repository, tmp_path / "n", name="content/austria.html", times=1)
    with pytest.raises(CallFailed) as conflict:
        cms.publish(make_document(revision=2), replacing=page)
    assert conflict.value.failure.failure_class is FailureClass.CONFLICT
    assert repository.read("content/austria.html") == b"by a person 0\n"


def test_a_branch_that_never_stands_still_is_left_for_later(
    cms: GitCMS, repository: Repository, tmp_path: Path
) -> None:
    push_of_theirs(repository, tmp_path / "n", name="theirs", times=1000)
    failure = refused(cms)
    assert failure.failure_class is FailureClass.TRANSIENT
    assert f"moved {git_writer.TRIES} times" in failure.message
    assert repository.names() == []


def test_a_branch_that_was_set_back_is_not_pushed_forward_again(
    cms: GitCMS, repository: Repository
) -> None:
    before = repository.head()
    publish(cms, "/belgium/")
    git(repository.bare, "update-ref", "refs/heads/main", before)
    publish(cms)
    assert repository.names() == ["content/austria.html"]
    assert cms.look_up(make_document("/belgium/").marker.page_id, "/belgium/", None).page is None


def test_a_branch_that_is_set_back_in_the_last_moment_stays_set_back(
    cms: GitCMS, repository: Repository, tmp_path: Path
) -> None:
    """Our commit would still be a fast-forward, and would bring back what somebody took away."""
    seed = repository.head()
    publish(cms, "/belgium/")
    once = tmp_path / "once"
    once.touch()
    back = f"rm {once} 2>/dev/null && git --git-dir={repository.bare} update-ref {MAIN} {seed}"
    path = git_before(tmp_path, "fast-import", back)
    remote = GitRemote(url=str(repository.bare))
    publish(cms_of(clone_of(tmp_path / "late.git", remote, path=path)))
    assert not once.exists()
    assert repository.names() == ["content/austria.html"]


def test_a_history_that_was_rewritten_is_told_in_full(cms: GitCMS, repository: Repository) -> None:
    publish(cms)
    assert cms.recent_changes("f" * 40).pages == (
        cms.look_up(make_document().marker.page_id, "/austria/", None).page,
    )


# --- whose address is it ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "content/austria.md",
        "content/austria/index.md",
        "content/Austria/_index.html",
        "content/elsewhere.md",
        "content/slugged.md",
    ],
)
def test_a_page_of_anothers_is_seen_under_whatever_name_it_has(
    name: str, cms: GitCMS, repository: Repository
) -> None:
    said = {"elsewhere": "url: /austria/", "slugged": "slug: austria"}
    line = next((line for word, line in said.items() if word in name), "weight: 1")
    repository.commit({name: f"---\ntitle: Mine\n{line}\n---\n".encode()})
    assert refused(cms).failure_class is FailureClass.CONFLICT
    found = cms.look_up("x", "/austria/", None).page
    assert found is not None
    assert (found.remote_id, found.path, found.marker) == (name, "/austria/", None)


def test_below_a_page_that_takes_all_for_its_attachments_nothing_is_published(
    cms: GitCMS, repository: Repository
) -> None:
    repository.commit({"content/index.md": b"---\ntitle: Home\n---\n"})
    failure = refused(cms)
    assert failure.failure_class is FailureClass.TERMINAL
    assert "content/_index.md" in failure.message


def test_a_copy_that_a_person_made_is_theirs_and_no_twin_of_ours(
    cms: GitCMS, repository: Repository
) -> None:
    page = publish(cms)
    text = repository.read("content/austria.html")
    assert text is not None
    copy = text.replace(b'url: "/austria/"', b'url: "/copy/"')
    repository.commit({"content/copy.html": copy, "content/a-copy.html": copy})
    found = cms.look_up(make_document().marker.page_id, "/austria/", None)
    assert found.page == page
    assert found.twins == ()
    by_id = cms.look_up(make_document().marker.page_id, "/austria/", "content/copy.html")
    assert by_id.page is not None
    assert by_id.page.path == "/copy/"


# --- what the remote refuses --------------------------------------------------------------------


@pytest.mark.parametrize("lock", ["HEAD.lock", "refs/heads/main.lock"])
def test_a_lock_that_a_crash_left_in_the_remote_is_named_with_what_to_do(
    lock: str, cms: GitCMS, repository: Repository
) -> None:
    (repository.bare / lock).touch()
    failure = refused(cms)
    assert failure.failure_class is FailureClass.THROTTLED
    assert failure.retry_after_s == 60, "no other page finds the lock by using up a try"
    assert lock in failure.message
    assert "remove that lock file" in failure.message
    assert repository.names() == []
    (repository.bare / lock).unlink()
    publish(cms)


def test_a_hooks_refusal_is_told_in_its_own_words(cms: GitCMS, repository: Repository) -> None:
    repository.hook("pre-receive", 'echo "No pages on https://u:pw@x/ today"; echo more; exit 1')
    failure = refused(cms)
    assert failure.failure_class is FailureClass.REQUEST
    assert failure.message.endswith("refuses the commit: No pages on https://***@x/ today")


def test_a_page_that_a_hook_declines_does_not_stand_in_the_way_of_others(
    cms: GitCMS, repository: Repository
) -> None:
    declines = "while read old new ref; do git diff --name-only $old $new | grep -q bad- && exit 1;"
    repository.hook("pre-receive", f"{declines} done; exit 0")
    paths = [f"/{kind}-{number}/" for number in range(10) for kind in ("good", "bad")]
    outcomes: dict[str, FailureClass | None] = {}

    def one(path: str) -> None:
        try:
            publish(cms, path)
            outcomes[path] = None
        except CallFailed as failed:
            outcomes[path] = failed.failure.failure_class

    with ThreadPoolExecutor(len(paths)) as pool:
        list(pool.map(one, paths))
    assert {path for path, why in outcomes.items() if why is None} == {
        path for path in paths if "good" in path
    }
    assert {why for why in outcomes.values() if why} == {FailureClass.REQUEST}
    assert len(repository.names()) == 10


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("http://127.0.0.1:1/site.git", FailureClass.NOT_SENT),
        ("git://127.0.0.1:1/site.git", FailureClass.NOT_SENT),
        ("/nowhere/site.git", FailureClass.AUTH),
    ],
)
def test_a_repository_that_is_not_there_is_unknown_and_nothing_was_sent(
    remote: str, expected: FailureClass, tmp_path: Path
) -> None:
    cms = cms_of(clone_of(tmp_path / "ours.git", GitRemote(url=remote)))
    assert lost(cms).failure_class is expected
    assert refused(cms).failure_class is expected
    assert len(cms.check().problems) == 1


def test_a_branch_that_does_not_exist_is_named(repository: Repository, tmp_path: Path) -> None:
    clone = clone_of(tmp_path / "ours.git", GitRemote(url=str(repository.bare)))
    cms = cms_of(replace(clone, branch="live"))
    assert refused(cms).failure_class is FailureClass.REQUEST
    assert "cms.branch" in lost(cms).message
    (problem,) = cms.check().problems
    assert "cms.branch" in problem
