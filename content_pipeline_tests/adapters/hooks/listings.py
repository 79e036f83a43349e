"""Listings for tests of anything that is told about a site's pages."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from content_pipeline.core.ports import ListedPage, SiteListing

FIRST_MODIFIED_AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def listed(
    title: str,
    *,
    path: str | None = None,
    url: str | None = None,
    modified_at: datetime = FIRST_MODIFIED_AT,
) -> ListedPage:
    path = path or f"/{title.lower()}/"
    return ListedPage(
        path=path,
        url=url or f"https://example.com{path}",
        title=title,
        meta_description=f"About {title}.",
        modified_at=modified_at,
    )


def listing(pages: Iterable[ListedPage], *, site_title: str = "Countries") -> SiteListing:
    return SiteListing(
        site="countries",
        site_title=site_title,
        base_url="https://example.com",
        language="en",
        pages=tuple(sorted(pages, key=lambda page: page.path)),
    )


def numbered(count: int) -> list[ListedPage]:
    """Pages /p000/, /p001/, … each changed a day after the one before."""
    return [
        listed(f"P{number:03}", modified_at=FIRST_MODIFIED_AT + timedelta(days=number))
        for number in range(count)
    ]


def renames(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the names that files are moved to from now on, in order."""
    renamed: list[str] = []
    rename = os.rename

    def recording(source: str, target: str, **folders: Any) -> None:
        rename(source, target, **folders)
        renamed.append(target)

    monkeypatch.setattr(os, "rename", recording)
    return renamed
