"""What becomes of a push, whatever stands in its way. The judge is the bare repository."""

import fcntl
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from content_pipeline.adapters.cms import git_writer
from content_pipeline.adapters.cms.git import GitCMS
from content_pipeline.adapters.cms.git_clone import LOCK_FILE
from content_pipeline.adapters.cms.git_command import GitRemote
from content_pipeline.core.cms import RemotePage
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.cms import git_http
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.git_http import PASSWORD, USER, GitServer
from content_pipeline_tests.adapters.cms.git_repository import Repository, clone_of, cms_of, git

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.new(tmp_path)


@pytest.fixture
def cms(repository: Repository, tmp_path: Path) -> GitCMS:
    return cms_of(clone_of(tmp_path / "ours.git", GitRemote(url=str(repository.bare))))


@pytest.fixture
def server(repository: Repository, tmp_path: Path) -> Iterator[GitServer]:
    git(repository.bare, "config", "http.receivepack", "true")
    with git_http.serving(tmp_path) as served:
        yield served


def over_http(server: GitServer, tmp_path: Path, *, password: str = PASSWORD) -> GitCMS:
    remote = GitRemote(url=server.url, username=USER, password=password)
    return cms_of(clone_of(tmp_path / "over-http.git", remote))


def publish(cms: GitCMS, path: str = "/austria/", *, revision: int = 1) -> RemotePage:
    return cms.publish(make_document(path, revision=revision), replacing=None)


def refused(cms: GitCMS, path: str = "/austria/") -> Failure:
    with pytest.raises(CallFailed) as failed:
        publish(cms, path)
    return failed.value.failure


def lost(cms: GitCMS) -> Failure:
    found = cms.look_up("x", "/austria/", None)
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    return found.failure


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


def test_a_copy_that_is_deleted_is_made_anew(cms: GitCMS, tmp_path: Path) -> None:
    publish(cms)
    subprocess.run(["rm", "-r", str(tmp_path / "ours.git")], check=True)
    publish(cms, "/belgium/")


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
    assert failure.failure_class is FailureClass.STORAGE
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


# --- over HTTP ----------------------------------------------------------------------------------


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


# --- crashes of ours ----------------------------------------------------------------------------


def test_git_locks_that_a_crash_left_in_our_copy_are_taken_away(
    cms: GitCMS, repository: Repository, tmp_path: Path
) -> None:
    publish(cms)
    ours = tmp_path / "ours.git"
    for name in ("packed-refs.lock", "refs/outgoing.lock", "refs/remotes/site/main.lock"):
        (ours / name).touch()
    repository.commit({"README": b"x"})
    publish(cms, "/belgium/")


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
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    real = shutil.which("git")
    says = "fatal: write error: No space left on device"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *{command}*) echo "{says}" >&2; exit 128;; esac\n'
        f'exec {real} "$@"\n'
    )
    program.chmod(0o755)
    remote = GitRemote(url=str(repository.bare))
    cms = cms_of(clone_of(tmp_path / "ours.git", remote, path=str(program.parent)))
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
