"""What people do to pages by hand, past the pipeline: edit, rename, trash, unpublish, restore.

What belongs here: acts under a person's name. They go through the same rules as requests.
"""

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from content_pipeline.sandbox.cms.accounts import PERSON
from content_pipeline.sandbox.cms.pages import Page, Status
from content_pipeline.sandbox.cms.refusals import invalid_id
from content_pipeline.sandbox.cms.site import Site
from content_pipeline.sandbox.cms.slugs import sanitised_slug
from content_pipeline.sandbox.cms.writing import Fields, changed, trashed


class Act(BaseModel):
    """One thing a person does to the page with ``page_id``, or else to the oldest with ``key``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    act: Literal["edit", "rename", "trash", "unpublish", "restore", "delete"]
    page_id: int | None = None
    key: str | None = None
    title: str | None = None
    content: str | None = None
    appended: str | None = None
    """Of an edit: text that is added to the content."""
    slug: str | None = None
    """Of a renaming."""

    @model_validator(mode="after")
    def _says_which_page(self) -> "Act":
        if (self.page_id is None) == (self.key is None):
            raise ValueError("give either page_id or key")
        if self.act == "rename" and not self.slug:
            raise ValueError("a renaming needs a slug")
        return self


def done_by_hand(site: Site, act: Act) -> Page:
    """Do it; the page as it stands afterwards, or stood before its deletion. Raises RestError."""
    page = _meant(site, act)
    cause = f"person:{act.act}"
    if act.act == "delete":
        site.store.delete(page.id, by=PERSON.id, cause=cause)
        return page
    if act.act == "trash":
        return site.stored(trashed(site.store, page, site.now_gmt), by=PERSON.id, cause=cause)
    row = changed(
        site.store,
        page,
        _FIELDS[act.act](act, page),
        author=PERSON.id,
        now_gmt=site.now_gmt,
        unfiltered=True,
    )
    return site.stored(row, by=PERSON.id, cause=cause)


_FIELDS: dict[str, Callable[[Act, Page], Fields]] = {
    "edit": lambda act, page: Fields(title=act.title, content=_edited(act, page)),
    "rename": lambda act, _: Fields(slug=sanitised_slug(act.slug or "")),
    "unpublish": lambda *_: Fields(status=Status.DRAFT),
    "restore": lambda *_: Fields(status=Status.PUBLISH),
}


def _edited(act: Act, page: Page) -> str | None:
    if act.appended is None:
        return act.content
    return (page.content if act.content is None else act.content) + act.appended


def _meant(site: Site, act: Act) -> Page:
    if act.page_id is not None:
        found = site.store.pages.get(act.page_id)
    else:
        pages = site.store.pages.values()
        marked = (page for page in pages if site.store.key_of(page.id) == act.key)
        found = min(marked, key=lambda page: page.id, default=None)
    if found is None:
        raise invalid_id()
    return found
