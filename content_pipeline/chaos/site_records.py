"""What the site recorded itself: the folder's files and log, or the sandbox CMS's truth.

What belongs here: reading and parsing. What the records mean is ``site_truth``'s.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

from content_pipeline.adapters.atomic_files import PRIVATE_FOLDER, WRITES_LOG
from content_pipeline.adapters.cms.folder_paths import PAGE_FILE
from content_pipeline.adapters.cms.page_marker import mark_of, parse_marker
from content_pipeline.chaos.project import BASE_URL, Arena
from content_pipeline.chaos.site_truth import (
    CMSRecords,
    FolderRecords,
    LivePage,
    SiteRecords,
    Write,
)
from content_pipeline.chaos.waits import Received
from content_pipeline.sandbox.cms.accounts import PIPELINE
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.pages import Status

SITEMAP = "sitemap.xml"


def pages_out(arena: Arena) -> int:
    """How many pages the site holds already, by its own count."""
    if arena.cms is None:
        return len(writes_in(arena.public))
    return int(arena.cms.health()["live"])


def site_records(arena: Arena) -> SiteRecords:
    """Everything that the site recorded."""
    return folder_records(arena.public) if arena.cms is None else cms_records(arena.cms)


# --- a folder -----------------------------------------------------------------------------------


def folder_records(folder: Path) -> FolderRecords:
    """What ``folder`` holds."""
    return FolderRecords(
        live=live_pages(folder), writes=writes_in(folder), sitemap=listed_in(folder)
    )


def writes_in(folder: Path) -> list[Write]:
    """Every write that the folder itself logged, in order."""
    log = folder / PRIVATE_FOLDER / WRITES_LOG
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    fields = (line.split("\t") for line in lines)
    return [Write(path=path, revision=int(revision)) for _, path, revision in fields]


def live_pages(folder: Path) -> list[LivePage]:
    """Every page of ours below ``folder``, by its own mark."""
    found = []
    for file in sorted(folder.glob(f"*/**/{PAGE_FILE}")):
        marker = parse_marker(mark_of(file.read_bytes()))
        if marker is not None:
            path = f"/{file.parent.relative_to(folder).as_posix()}/"
            found.append(LivePage(path=path, page_id=marker.page_id, revision=marker.revision))
    return found


def listed_in(folder: Path) -> list[str]:
    """The paths that the sitemap lists."""
    file = folder / SITEMAP
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return [url.removeprefix(BASE_URL) for url in re.findall(r"<loc>([^<]*)</loc>", text)]


# --- the CMS ------------------------------------------------------------------------------------


def cms_records(cms: CMSClient) -> CMSRecords:
    """What the CMS says of itself."""
    truth = cms.truth()
    return CMSRecords(
        live=list(_live(cms)),
        pages_by_key={key: _standing(pages) for key, pages in truth["pages"].items()},
        public_doubles=len(truth["public_doubles"]),
        stale_overwrites=len(truth["stale_overwrites"]),
        edits_overwritten=len(truth["edits_overwritten"]),
        received=[_received(each) for each in cms.requests()],
        changed_at=_changed_at(cms),
        deployed_at=[
            datetime.fromisoformat(told["at"])
            for told in cms.deliveries()
            if told["kind"] == "deploy" and told["status"] < HTTPStatus.BAD_REQUEST
        ],
    )


def _changed_at(cms: CMSClient) -> datetime | None:
    ours = [
        datetime.fromisoformat(change["at"])
        for change in cms.history()
        if change["by"] == PIPELINE.id and change["status"] == Status.PUBLISH
    ]
    return max(ours, default=None)


def _live(cms: CMSClient) -> Iterator[LivePage]:
    """Every public page; one without our mark is known by its id."""
    for change in cms.live():
        mark = change["mark"] or {"key": f"id:{change['page_id']}", "revision": 0}
        yield LivePage(path=change["path"], page_id=mark["key"], revision=mark["revision"])


def _standing(pages: Mapping[str, Any]) -> int:
    return sum(len(pages[name]) for name in ("live", "drafts", "trashed"))


def _received(line: Mapping[str, Any]) -> Received:
    return Received(
        at=datetime.fromisoformat(line["at"]),
        operation=line["operation"],
        attempt_id=None,
        page=line["key"],
        fault=line["fault"],
        wait_s=line["wait_s"],
    )
