"""The file of redirects: one line for each page of a retired topic."""

from dataclasses import replace
from pathlib import Path

import pytest

from content_pipeline.adapters.hooks.redirects import REDIRECTS_FILE, RedirectsFile
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import SiteListing
from content_pipeline_tests.adapters.hooks.listings import listed, listing


def without(*withdrawn: str) -> SiteListing:
    return replace(listing([listed("Austria")]), withdrawn=withdrawn)


def test_every_retired_page_leads_to_the_target(tmp_path: Path) -> None:
    hook = RedirectsFile(tmp_path, target="/all/")
    told = hook.announce(without("/belgium/", "/chile/"))
    assert told.changed
    lines = Path(told.location).read_text().splitlines()
    assert lines[1:] == ["/belgium/ /all/ 301", "/chile/ /all/ 301"]
    assert lines[0].startswith("# Written by content-pipeline")
    assert not hook.announce(without("/belgium/", "/chile/")).changed


def test_a_folder_that_is_not_there_yet_is_made(tmp_path: Path) -> None:
    hook = RedirectsFile(tmp_path / "new", target="https://example.org/")
    hook.announce(without("/belgium/"))
    text = (tmp_path / "new" / REDIRECTS_FILE).read_text()
    assert text.endswith("/belgium/ https://example.org/ 301\n")


def test_the_file_goes_when_nobody_is_to_be_led(tmp_path: Path) -> None:
    hook = RedirectsFile(tmp_path, target="/all/")
    hook.announce(without("/belgium/"))
    assert hook.announce(without()).changed
    assert not (tmp_path / REDIRECTS_FILE).exists()


def test_a_file_written_by_hand_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / REDIRECTS_FILE
    file.write_text("/mine/ /elsewhere/ 302\n")
    hook = RedirectsFile(tmp_path, target="/all/")
    assert not hook.announce(without()).changed
    with pytest.raises(CallFailed) as failed:
        hook.announce(without("/belgium/"))
    assert failed.value.failure.failure_class is FailureClass.CONFLICT
    assert file.read_text() == "/mine/ /elsewhere/ 302\n"
