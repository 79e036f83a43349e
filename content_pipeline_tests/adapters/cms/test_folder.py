import errno
import itertools
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from content_pipeline.adapters.cms.folder import FolderCMS
from content_pipeline.adapters.cms.page_html import render_page
from content_pipeline.core.cms import CMS, Document, RemotePage
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import Baseline, PublishAction, ReactionPolicy, decide_publish
from content_pipeline_tests.adapters.cms.conformance import LAWS, Law, law_name
from content_pipeline_tests.adapters.cms.documents import BASE_URL, make_document

REPOSITORY = Path(__file__).parents[3]
STARTED_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderBench:
    """A folder and a person with a text editor."""

    root: Path
    cms: CMS
    base_url: str = BASE_URL

    def file(self, path: str) -> Path:
        return self.root / path.strip("/") / "index.html"

    def edit(self, path: str) -> None:
        text = self.file(path).read_text()
        assert "Austria lies" in text
        self.file(path).write_text(text.replace("Austria lies", "Austria surely lies"))

    def occupy(self, path: str) -> None:
        self.file(path).parent.mkdir(parents=True)
        self.file(path).write_text("<!doctype html><title>Mine</title><p>Hands off.")

    def delete(self, path: str) -> None:
        shutil.rmtree(self.file(path).parent)

    def trash(self, path: str) -> None:
        raise AssertionError(f"{path}: a folder has no trash")

    def hide(self, path: str) -> None:
        raise AssertionError(f"{path}: a folder hides nothing")

    def rename(self, path: str, to: str) -> None:
        raise AssertionError(f"{path} to {to}: the path is the id")

    def visible(self, path: str) -> str | None:
        return self.file(path).read_text() if self.file(path).exists() else None

    def writes(self) -> list[tuple[str, int]]:
        """Path and revision of every write so far, from the folder's own log."""
        log = self.root / ".content-pipeline" / "writes.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [(path, int(revision)) for _, path, revision in (line.split("\t") for line in lines)]


def ticking() -> Callable[[], datetime]:
    seconds = itertools.count()
    return lambda: STARTED_AT + timedelta(seconds=next(seconds))


@pytest.fixture
def bench(tmp_path: Path) -> FolderBench:
    root = tmp_path / "site"
    return FolderBench(root=root, cms=FolderCMS(root, base_url=BASE_URL, clock=ticking()))


def publish(bench: FolderBench, document: Document) -> RemotePage:
    return bench.cms.publish(document, replacing=None)


def refused(bench: FolderBench, document: Document, replacing: RemotePage | None) -> FailureClass:
    with pytest.raises(CallFailed) as error:
        bench.cms.publish(document, replacing=replacing)
    return error.value.failure.failure_class


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_the_folder_keeps_the_law(law: Law, bench: FolderBench) -> None:
    law(bench)


# --- what is written ----------------------------------------------------------------------------


def test_a_page_is_a_file_below_its_path(bench: FolderBench) -> None:
    document = make_document("/countries/austria/")
    page = publish(bench, document)
    assert bench.file("/countries/austria/").read_bytes() == render_page(document)
    assert (page.remote_id, page.url) == (document.path, BASE_URL + document.path)


def test_nothing_exists_before_the_first_page(bench: FolderBench) -> None:
    assert bench.cms.look_up("x", "/austria/", None).verdict is Verdict.ABSENT
    assert not bench.root.exists()


def test_every_write_is_logged_with_its_time_path_and_revision(bench: FolderBench) -> None:
    first = publish(bench, make_document())
    bench.cms.publish(make_document(revision=2), replacing=first)
    assert (bench.root / ".content-pipeline" / "writes.log").read_text() == (
        "2026-01-02T03:04:05+00:00\t/austria/\t1\n2026-01-02T03:04:06+00:00\t/austria/\t2\n"
    )


def test_publishing_what_stands_there_touches_nothing(bench: FolderBench) -> None:
    page = publish(bench, make_document())
    before = bench.file("/austria/").stat()
    assert bench.cms.publish(make_document(), replacing=page) == page
    after = bench.file("/austria/").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert bench.writes() == [("/austria/", 1)]


def test_a_refused_write_is_not_logged(bench: FolderBench) -> None:
    page = publish(bench, make_document())
    bench.edit("/austria/")
    assert refused(bench, make_document(revision=2), page) is FailureClass.CONFLICT
    assert refused(bench, make_document(revision=2), None) is FailureClass.CONFLICT
    assert bench.writes() == [("/austria/", 1)]


@pytest.mark.parametrize("law_of_race", [law for law in LAWS if "racing" in law_name(law)])
def test_a_race_writes_the_file_once(law_of_race: Law, bench: FolderBench) -> None:
    law_of_race(bench)
    prepared = 1 if "replacers" in law_name(law_of_race) else 0
    assert len(bench.writes()) == prepared + 1


def test_many_publishers_of_many_pages_lose_none(bench: FolderBench) -> None:
    script = (
        "import sys; from pathlib import Path; from datetime import datetime\n"
        "from content_pipeline.adapters.cms.folder import FolderCMS\n"
        "from content_pipeline_tests.adapters.cms.documents import BASE_URL, make_document\n"
        "root, clock = Path(sys.argv[1]), lambda: datetime(2026, 1, 2)\n"
        "cms = FolderCMS(root, base_url=BASE_URL, clock=clock)\n"
        "for n in range(10):\n"
        "    cms.publish(make_document(f'/by-{sys.argv[2]}/{n}/'), replacing=None)\n"
    )
    command = [sys.executable, "-c", script, str(bench.root)]
    processes = [subprocess.Popen([*command, str(number)], cwd=REPOSITORY) for number in range(3)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    expected = [(f"/by-{number}/{n}/", 1) for number in range(3) for n in range(10)]
    assert sorted(bench.writes()) == sorted(expected)
    for path, _ in expected:
        assert bench.file(path).read_bytes() == render_page(make_document(path))


# --- people -------------------------------------------------------------------------------------


def test_a_person_who_removes_our_mark_owns_the_page(bench: FolderBench) -> None:
    page = publish(bench, make_document())
    text = bench.file("/austria/").read_text()
    bench.file("/austria/").write_text(text.replace('name="content-pipeline"', 'name="mine"'))
    found = bench.cms.look_up("x", "/austria/", page.remote_id)
    assert found.page is not None
    assert found.page.marker is None
    assert refused(bench, make_document(revision=2), page) is FailureClass.CONFLICT


def test_a_persons_edit_is_a_conflict_for_the_publish_decision(bench: FolderBench) -> None:
    page = publish(bench, make_document())
    baseline = Baseline(revision=1, fingerprint=page.fingerprint)
    wanted = make_document(revision=2).marker

    def action() -> PublishAction:
        return decide_publish(
            bench.cms.look_up(wanted.page_id, "/austria/", page.remote_id),
            wanted=wanted,
            path="/austria/",
            baseline=baseline,
            policy=ReactionPolicy(),
        ).action

    assert action() is PublishAction.REPLACE
    bench.edit("/austria/")
    assert action() is PublishAction.CONFLICT


def test_a_page_is_replaced_over_a_strangers_only_when_that_was_seen(bench: FolderBench) -> None:
    bench.occupy("/austria/")
    theirs = bench.cms.look_up("x", "/austria/", None).page
    assert theirs is not None
    document = make_document()
    assert bench.cms.publish(document, replacing=theirs).marker == document.marker


def test_a_stored_id_that_means_nothing_does_not_hide_the_page(bench: FolderBench) -> None:
    page = publish(bench, make_document())
    assert bench.cms.look_up("x", "/austria/", "no such id").page == page


# --- what stands in the way ---------------------------------------------------------------------


def a_folder_as_page(bench: FolderBench) -> None:
    bench.file("/austria/").mkdir(parents=True)


def a_file_as_folder(bench: FolderBench) -> None:
    bench.root.mkdir()
    (bench.root / "austria").write_text("x")


def a_link_out_of_the_root(bench: FolderBench) -> None:
    outside = bench.root.parent / "outside"
    outside.mkdir()
    (outside / "index.html").write_text("outside")
    bench.root.mkdir()
    (bench.root / "austria").symlink_to(outside)


def a_link_in_a_circle(bench: FolderBench) -> None:
    bench.root.mkdir()
    (bench.root / "austria").symlink_to(bench.root / "austria")


def a_page_that_is_a_link(bench: FolderBench) -> None:
    bench.file("/austria/").parent.mkdir(parents=True)
    bench.file("/austria/").symlink_to("/etc/passwd")


def a_pipe_as_page(bench: FolderBench) -> None:
    bench.file("/austria/").parent.mkdir(parents=True)
    os.mkfifo(bench.file("/austria/"))


def a_root_that_is_a_file(bench: FolderBench) -> None:
    bench.root.write_text("x")


@pytest.mark.parametrize(
    "obstacle",
    [
        a_folder_as_page,
        a_file_as_folder,
        a_link_out_of_the_root,
        a_link_in_a_circle,
        a_page_that_is_a_link,
        a_pipe_as_page,
        a_root_that_is_a_file,
    ],
)
def test_what_cannot_be_read_as_a_page_is_unknown_and_not_written(
    obstacle: Callable[[FolderBench], None], bench: FolderBench
) -> None:
    obstacle(bench)
    before = tree(bench.root.parent)
    found = bench.cms.look_up("x", "/austria/", None)
    assert found.verdict is Verdict.UNKNOWN
    assert found.page is None
    assert found.failure is not None
    assert found.failure.failure_class is FailureClass.STORAGE
    assert str(bench.root) in found.failure.message
    assert refused(bench, make_document(), None) is FailureClass.STORAGE
    assert tree(bench.root.parent) == before


def tree(folder: Path) -> list[str]:
    """Everything below, the folder's private one left aside."""
    paths = sorted(str(path) for path in folder.rglob("*"))
    return [path for path in paths if ".content-pipeline" not in path]


@pytest.mark.parametrize("path", ["/../escape/", "/a\0b/", "/.content-pipeline/", "/sitemap.xml/"])
def test_a_path_that_cannot_be_a_page_is_refused_everywhere(path: str, bench: FolderBench) -> None:
    found = bench.cms.look_up("x", path, None)
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    assert found.failure.failure_class is FailureClass.INVALID_INPUT
    assert refused(bench, make_document(path), None) is FailureClass.INVALID_INPUT
    assert not bench.root.exists()


def fail_to_flush(monkeypatch: pytest.MonkeyPatch, is_kind: Callable[[int], bool]) -> None:
    """Let the operating system report a broken disk for files of one kind."""
    flush = os.fsync

    def fsync(descriptor: int) -> None:
        if is_kind(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_page_that_reached_no_disk_is_not_published(
    bench: FolderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = publish(bench, make_document())
    fail_to_flush(monkeypatch, stat.S_ISREG)
    assert refused(bench, make_document(revision=2), page) is FailureClass.STORAGE
    assert bench.cms.look_up("x", "/austria/", None).page == page


def test_a_page_whose_name_may_not_have_reached_the_disk_is_uncertain_and_can_be_looked_up(
    bench: FolderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = publish(bench, make_document())
    fail_to_flush(monkeypatch, stat.S_ISDIR)
    newer = make_document(revision=2)
    assert refused(bench, newer, page) is FailureClass.UNCERTAIN
    found = bench.cms.look_up("x", "/austria/", None)
    assert found.page is not None
    assert found.page.marker == newer.marker


def test_a_failure_never_quotes_the_page(bench: FolderBench) -> None:
    a_file_as_folder(bench)
    document = make_document(title="Secret title", body="Secret body.")
    with pytest.raises(CallFailed) as error:
        bench.cms.publish(document, replacing=None)
    assert "Secret" not in str(error.value)
