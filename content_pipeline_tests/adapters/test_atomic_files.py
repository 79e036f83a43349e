import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from content_pipeline.adapters.atomic_files import (
    INCOMING,
    MAX_FILE_BYTES,
    PRIVATE_FOLDER,
    WRITES_LOG,
    SiteFolder,
)
from content_pipeline.config import environment
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

REPOSITORY = Path(__file__).parents[2]
NOBODY = 65534
"""The user id without rights on every common Unix."""

OLD = b"old" * 50_000
NEW = b"new" * 60_000

WRITE_UNTIL_KILLED = """
import os, signal, sys
from pathlib import Path
from content_pipeline.adapters.atomic_files import SiteFolder

left = int(sys.argv[2])

def count(event, arguments):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
with SiteFolder(root=Path(sys.argv[1])).writing() as writer:
    writer.replace("a/page.html", b"new" * 60_000)
os._exit(0)
"""
"""Writes once, and is killed right before its n-th call into the operating system."""

WRITE_FOR_EVER = """
import sys
from pathlib import Path
from content_pipeline.adapters.atomic_files import SiteFolder

print("ready", flush=True)
while True:
    for data in (b"new" * 60_000, b"old" * 50_000):
        with SiteFolder(root=Path(sys.argv[1])).writing() as writer:
            writer.replace("a/page.html", data)
"""

WRITE_WITH_LIMIT = """
import resource, sys
from pathlib import Path
from content_pipeline.adapters.atomic_files import SiteFolder
from content_pipeline.core.errors import CallFailed

resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    with SiteFolder(root=Path(sys.argv[1])).writing() as writer:
        writer.replace("a/page.html", b"x" * 20_000)
except CallFailed as error:
    print(error.failure.failure_class, error.failure.code)
"""


def python(script: str, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )


def write(root: Path, name: str, data: bytes) -> None:
    with SiteFolder(root=root).writing() as writer:
        writer.replace(name, data)


def failure_of(error: pytest.ExceptionInfo[CallFailed]) -> Failure:
    return error.value.failure


def left_behind(root: Path) -> list[str]:
    return [path.name for path in (root / PRIVATE_FOLDER).iterdir() if path.name != "lock"]


@contextmanager
def without_rights() -> Iterator[None]:
    """Run as a user whom file permissions bind; root passes them all."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_root(tmp_path: Path) -> Path:
    """A folder whose parents everybody may enter."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder.is_relative_to("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    root = tmp_path / "site"
    root.mkdir()
    root.chmod(0o777)
    return root


# --- reading and writing ------------------------------------------------------------------------


def test_a_file_is_read_back_as_written_and_absent_before(tmp_path: Path) -> None:
    folder = SiteFolder(root=tmp_path / "deep" / "site")
    assert folder.read("a/b/page.html") is None
    write(folder.root, "a/b/page.html", OLD)
    assert folder.read("a/b/page.html") == OLD
    write(folder.root, "a/b/page.html", NEW)
    assert folder.read("a/b/page.html") == NEW
    assert left_behind(folder.root) == []


def test_a_new_file_has_the_rights_the_process_gives_and_the_private_folder_none(
    tmp_path: Path,
) -> None:
    umask = os.umask(0o022)
    try:
        write(tmp_path, "a/page.html", OLD)
    finally:
        os.umask(umask)
    assert (tmp_path / "a" / "page.html").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / PRIVATE_FOLDER).stat().st_mode & 0o777 == 0o700


def test_replacing_never_writes_into_the_old_file(tmp_path: Path) -> None:
    write(tmp_path, "page.html", OLD)
    with (tmp_path / "page.html").open("rb") as reader:
        start = reader.read(10)
        write(tmp_path, "page.html", NEW)
        assert start + reader.read() == OLD


def test_a_removed_file_is_gone_and_its_neighbour_stays(tmp_path: Path) -> None:
    write(tmp_path, "one.xml", OLD)
    write(tmp_path, "two.xml", OLD)
    with SiteFolder(root=tmp_path).writing() as writer:
        writer.remove("one.xml")
    assert SiteFolder(root=tmp_path).names() == (PRIVATE_FOLDER, "two.xml")


def test_removing_what_is_not_there_is_a_storage_failure(tmp_path: Path) -> None:
    with SiteFolder(root=tmp_path).writing() as writer, pytest.raises(CallFailed) as error:
        writer.remove("one.xml")
    assert failure_of(error).failure_class is FailureClass.STORAGE
    assert failure_of(error).code == "ENOENT"


def test_listing_a_root_that_is_not_there_is_a_storage_failure(tmp_path: Path) -> None:
    with pytest.raises(CallFailed) as error:
        SiteFolder(root=tmp_path / "none").names()
    assert failure_of(error).failure_class is FailureClass.STORAGE


def test_records_are_appended_line_by_line(tmp_path: Path) -> None:
    for line in ("one", "zwö"):
        with SiteFolder(root=tmp_path).writing() as writer:
            writer.record(line)
    assert (tmp_path / PRIVATE_FOLDER / WRITES_LOG).read_text() == "one\nzwö\n"


def test_a_log_that_cannot_be_written_leaves_the_write_uncertain(tmp_path: Path) -> None:
    (tmp_path / PRIVATE_FOLDER / WRITES_LOG).mkdir(parents=True)
    with SiteFolder(root=tmp_path).writing() as writer, pytest.raises(CallFailed) as error:
        writer.record("one")
    assert failure_of(error).failure_class is FailureClass.UNCERTAIN


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", ".", "a/\0"])
def test_a_name_that_leaves_the_folder_is_a_programming_error(tmp_path: Path, name: str) -> None:
    with SiteFolder(root=tmp_path).writing() as writer:
        for call in (SiteFolder(root=tmp_path).read, writer.remove):
            with pytest.raises(ValueError, match="not the name of a file"):
                call(name)
        with pytest.raises(ValueError, match="not the name of a file"):
            writer.replace(name, OLD)


# --- what stands in the way ---------------------------------------------------------------------


def test_a_link_out_of_the_root_is_never_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "site"
    outside.mkdir()
    root.mkdir()
    (outside / "page.html").write_bytes(OLD)
    (root / "a").symlink_to(outside)
    (root / "b.html").symlink_to(outside / "page.html")
    for name in ("a/page.html", "b.html"):
        with pytest.raises(CallFailed) as error:
            SiteFolder(root=root).read(name)
        assert failure_of(error).failure_class is FailureClass.STORAGE
        assert "symbolic link" in failure_of(error).message
    with pytest.raises(CallFailed):
        write(root, "a/page.html", NEW)
    assert (outside / "page.html").read_bytes() == OLD
    assert left_behind(root) == []


def test_a_private_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "site"
    outside.mkdir()
    root.mkdir()
    (root / PRIVATE_FOLDER).symlink_to(outside)
    with pytest.raises(CallFailed) as error:
        write(root, "page.html", NEW)
    assert failure_of(error).failure_class is FailureClass.STORAGE
    assert list(outside.iterdir()) == []


def test_a_root_that_is_a_link_is_its_owners_choice(tmp_path: Path) -> None:
    (tmp_path / "releases").mkdir()
    (tmp_path / "current").symlink_to(tmp_path / "releases")
    write(tmp_path / "current", "page.html", OLD)
    assert (tmp_path / "releases" / "page.html").read_bytes() == OLD


def test_writing_over_a_link_to_a_file_replaces_the_link_only(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "other.html").write_bytes(OLD)
    (tmp_path / "site" / "page.html").symlink_to(tmp_path / "other.html")
    write(tmp_path / "site", "page.html", NEW)
    assert (tmp_path / "other.html").read_bytes() == OLD
    assert not (tmp_path / "site" / "page.html").is_symlink()


def test_a_folder_where_a_file_should_be_is_a_storage_failure(tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    with pytest.raises(CallFailed) as reading:
        SiteFolder(root=tmp_path).read("page.html")
    with pytest.raises(CallFailed) as writing:
        write(tmp_path, "page.html", NEW)
    for error in (reading, writing):
        assert failure_of(error).failure_class is FailureClass.STORAGE
        assert failure_of(error).code == "EISDIR"
    assert left_behind(tmp_path) == []


def test_a_file_where_a_folder_should_be_is_a_storage_failure(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(OLD)
    with pytest.raises(CallFailed) as reading:
        SiteFolder(root=tmp_path).read("a/page.html")
    with pytest.raises(CallFailed) as writing:
        write(tmp_path, "a/page.html", NEW)
    for error in (reading, writing):
        assert failure_of(error).code == "ENOTDIR"
    assert (tmp_path / "a").read_bytes() == OLD
    assert left_behind(tmp_path) == []


def test_a_named_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "page.html")
    with pytest.raises(CallFailed) as error:
        SiteFolder(root=tmp_path).read("page.html")
    assert failure_of(error).failure_class is FailureClass.STORAGE


def test_a_file_too_large_for_a_site_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "page.html").open("wb") as sparse:
        sparse.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(CallFailed) as error:
        SiteFolder(root=tmp_path).read("page.html")
    assert failure_of(error).code == "EFBIG"


def test_missing_rights_are_a_storage_failure_that_names_the_remedy(open_root: Path) -> None:
    write(open_root, "a/page.html", OLD)
    (open_root / "a").chmod(0)
    try:
        with without_rights(), pytest.raises(CallFailed) as error:
            SiteFolder(root=open_root).read("a/page.html")
    finally:
        (open_root / "a").chmod(0o755)
    assert failure_of(error).failure_class is FailureClass.STORAGE
    assert failure_of(error).code == "EACCES"
    assert "give the pipeline's user the right" in failure_of(error).message


def test_a_folder_without_write_rights_keeps_its_file(open_root: Path) -> None:
    with without_rights():
        write(open_root, "a/page.html", OLD)
        (open_root / "a").chmod(0o555)
        with pytest.raises(CallFailed) as error:
            write(open_root, "a/page.html", NEW)
        (open_root / "a").chmod(0o755)
    assert failure_of(error).failure_class is FailureClass.STORAGE
    assert (open_root / "a" / "page.html").read_bytes() == OLD
    assert left_behind(open_root) == []


def test_a_write_beyond_the_file_size_limit_leaves_nothing_behind(tmp_path: Path) -> None:
    write(tmp_path, "a/page.html", OLD)
    process = python(WRITE_WITH_LIMIT, tmp_path)
    output, _ = process.communicate(timeout=30)
    assert output.split() == ["storage", "EFBIG"]
    assert (tmp_path / "a" / "page.html").read_bytes() == OLD
    assert left_behind(tmp_path) == []


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 kB; only root may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        if environment().get("REQUIRE_SERVICES") == "1":
            pytest.fail("REQUIRE_SERVICES=1 wants a full disk, and no file system can be mounted")
        pytest.skip("mounting a file system is not possible here")
    yield disk
    # Lazily, so that the mount goes even when a failing test left a file of it open.
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk_keeps_the_old_file_and_says_so(tiny_disk: Path) -> None:
    write(tiny_disk, "a/page.html", OLD)
    with pytest.raises(CallFailed) as error:
        write(tiny_disk, "a/page.html", b"x" * 1_000_000)
    assert failure_of(error).failure_class is FailureClass.STORAGE
    assert failure_of(error).code == "ENOSPC"
    assert "the disk is full; free space" in failure_of(error).message
    assert (tiny_disk / "a" / "page.html").read_bytes() == OLD
    assert left_behind(tiny_disk) == []
    write(tiny_disk, "a/page.html", NEW)


# --- crashes ------------------------------------------------------------------------------------


def test_a_writer_killed_at_any_step_leaves_a_whole_file(tmp_path: Path) -> None:
    seen = []
    for step in range(1, 100):
        root = tmp_path / str(step)
        write(root, "a/page.html", OLD)
        process = python(WRITE_UNTIL_KILLED, root, step)
        process.communicate(timeout=30)
        seen.append(SiteFolder(root=root).read("a/page.html"))
        assert seen[-1] in (OLD, NEW)
        write(root, "a/page.html", OLD + NEW)
        assert SiteFolder(root=root).read("a/page.html") == OLD + NEW
        assert left_behind(root) == []
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
    assert step > 10
    assert seen[0] == OLD
    assert seen[-1] == NEW


def test_a_writer_killed_at_random_leaves_a_whole_file(tmp_path: Path) -> None:
    for round_number in range(8):
        process = python(WRITE_FOR_EVER, tmp_path)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.011 * round_number)
        process.kill()
        process.communicate(timeout=30)
        assert SiteFolder(root=tmp_path).read("a/page.html") in (None, OLD, NEW)
    write(tmp_path, "a/page.html", OLD)
    assert left_behind(tmp_path) == []


def test_what_a_dead_writer_left_is_not_published(tmp_path: Path) -> None:
    write(tmp_path, "page.html", OLD)
    (tmp_path / PRIVATE_FOLDER / INCOMING).write_bytes(b"half a pa")
    write(tmp_path, "page.html", NEW)
    assert SiteFolder(root=tmp_path).read("page.html") == NEW
    assert left_behind(tmp_path) == []


# --- turns --------------------------------------------------------------------------------------


def test_writers_take_turns(tmp_path: Path) -> None:
    inside: list[int] = []
    crowded: list[int] = []

    def enter(number: int) -> None:
        with SiteFolder(root=tmp_path).writing() as writer:
            inside.append(number)
            writer.replace("page.html", b"%d" % number)
            if len(inside) > 1:
                crowded.append(number)
            inside.remove(number)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(enter, range(64)))
    assert crowded == []


def test_readers_see_whole_files_while_writers_work(tmp_path: Path) -> None:
    write(tmp_path, "page.html", OLD)
    done = threading.Event()
    seen: set[bytes | None] = set()

    def read() -> None:
        while not done.is_set():
            seen.add(SiteFolder(root=tmp_path).read("page.html"))

    reader = threading.Thread(target=read)
    reader.start()
    for data in (NEW, OLD) * 20:
        write(tmp_path, "page.html", data)
    done.set()
    reader.join()
    assert seen <= {OLD, NEW}
    assert seen


@pytest.mark.parametrize("is_of_this_process", [False, True])
def test_a_lock_that_another_keeps_is_a_passing_failure(
    is_of_this_process: bool, tmp_path: Path
) -> None:
    here = SiteFolder(root=tmp_path, lock_timeout_s=0.02)
    there = here if is_of_this_process else SiteFolder(root=tmp_path)
    with there.writing(), pytest.raises(CallFailed) as error:  # noqa: SIM117
        with here.writing():
            pass
    assert failure_of(error).failure_class is FailureClass.TRANSIENT
    assert "nothing was written" in failure_of(error).message
    write(tmp_path, "page.html", OLD)


def test_the_lock_is_given_back_when_writing_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyError), SiteFolder(root=tmp_path).writing():
        raise KeyError
    with SiteFolder(root=tmp_path, lock_timeout_s=0).writing() as writer:
        writer.replace("page.html", OLD)
    assert SiteFolder(root=tmp_path).read("page.html") == OLD


def test_a_child_process_forked_meanwhile_does_not_keep_the_lock(tmp_path: Path) -> None:
    with SiteFolder(root=tmp_path).writing():
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
    try:
        with SiteFolder(root=tmp_path, lock_timeout_s=0).writing() as writer:
            writer.replace("page.html", OLD)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert SiteFolder(root=tmp_path).read("page.html") == OLD


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    def count() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    write(tmp_path, "a/b/page.html", OLD)
    before = count()
    for _ in range(20):
        write(tmp_path, "a/b/page.html", NEW)
        SiteFolder(root=tmp_path).read("a/b/page.html")
        with pytest.raises(CallFailed):
            SiteFolder(root=tmp_path).read("a/b")
    assert count() == before


def test_files_of_one_name_are_found_below_the_root_and_not_behind_links(tmp_path: Path) -> None:
    root, outside = tmp_path / "site", tmp_path / "outside"
    for folder in (root / "a" / "b", root / "c", root / ".content-pipeline", outside):
        folder.mkdir(parents=True)
        (folder / "index.html").write_text("a page")
    (root / "link").symlink_to(outside)
    (root / "c" / "other.html").write_text("not asked for")
    assert sorted(SiteFolder(root=root).files_called("index.html")) == [
        "a/b/index.html",
        "c/index.html",
    ]


def test_only_files_written_since_a_time_are_found(tmp_path: Path) -> None:
    for name, written_s in (("old", 1_000.0), ("new", 2_000.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("a page")
        os.utime(tmp_path / name / "index.html", (written_s, written_s))
    found = SiteFolder(root=tmp_path).files_called("index.html", written_since_s=2_000.0)
    assert found == ["new/index.html"]


def test_a_folder_that_could_be_written_has_no_problem(tmp_path: Path) -> None:
    assert SiteFolder(root=tmp_path / "not" / "there" / "yet").problem() is None
    (tmp_path / "file").write_text("in the way")
    problem = SiteFolder(root=tmp_path / "file" / "site").problem()
    assert problem is not None
    assert "is a file" in problem
