"""What a write makes of a page: from a request's fields to the row that will be stored.

What belongs here: validation, the rules for status, date and slug, and trash and deletion. Nothing
is stored here: the row is worked out first and stored later, which is what lets writes race.
"""

import html
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from content_pipeline.sandbox.cms.filtering import filtered_html
from content_pipeline.sandbox.cms.pages import (
    META_KEYS,
    TRASHED_SUFFIX,
    UNSLUGGED,
    Page,
    Status,
)
from content_pipeline.sandbox.cms.refusals import RestError, invalid_parameter, not_in
from content_pipeline.sandbox.cms.slugs import LONGEST, sanitised_slug, unique_slug
from content_pipeline.sandbox.cms.store import Store

GMT = "%Y-%m-%dT%H:%M:%S"
WRITABLE = ("publish", "future", "draft", "pending", "private")
TEMPLATES = ("", "blog-alternative", "blank")
LONGEST_TITLE = 65_535
"""Bytes of the column; a longer title is a database error that repeats for ever."""
FUTURE_S = 60
"""A publish date this far ahead makes a published page a planned one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The checked fields of a request; None: not given."""

    title: str | None = None
    content: str | None = None
    excerpt: str | None = None
    slug: str | None = None
    status: Status | None = None
    date_gmt: str | None = None
    parent: int | None = None
    menu_order: int | None = None
    template: str | None = None
    meta: Mapping[str, str] | None = None


def checked_fields(body: Mapping[str, Any]) -> Fields:
    """The fields of a JSON body; unknown ones are ignored. Raises RestError."""
    status = body.get("status")
    if status is not None and status not in WRITABLE:
        raise not_in("status", "status", WRITABLE)
    template = body.get("template")
    if template is not None and template not in TEMPLATES:
        raise not_in("template", "template", TEMPLATES)
    slug = body.get("slug")
    if slug is not None and not isinstance(slug, str):
        data = {"param": "slug"}
        raise invalid_parameter("slug", "slug is not of type string.", "rest_invalid_type", data)
    meta = body.get("meta")
    return Fields(
        title=_text(body.get("title")),
        content=_text(body.get("content")),
        excerpt=_text(body.get("excerpt")),
        slug=None if slug is None else sanitised_slug(slug),
        status=None if status is None else Status(status),
        date_gmt=_date(body, "date_gmt") or _date(body, "date"),
        parent=_integer(body, "parent"),
        menu_order=_integer(body, "menu_order"),
        template=template,
        meta={k: str(v) for k, v in meta.items() if k in META_KEYS}
        if isinstance(meta, dict)
        else None,
    )


def _text(value: object) -> str | None:
    """A text given plainly or as ``raw``; anything else counts as not given, as measured."""
    if isinstance(value, dict):
        value = value.get("raw")
    return value if isinstance(value, str) else None


def _integer(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        message, data = f"{name} is not of type integer.", {"param": name}
        raise invalid_parameter(name, message, "rest_invalid_type", data) from None


def _date(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise invalid_parameter(name, "Invalid date.", "rest_invalid_date") from None
    return (moment.astimezone(UTC) if moment.tzinfo else moment).strftime(GMT)


def changed(
    store: Store, old: Page | None, fields: Fields, *, author: int, now_gmt: str, unfiltered: bool
) -> Page:
    """The row after a write over ``old``; a new page has the id 0 until it is stored.

    Raises RestError for a parent that does not exist and for a title that does not fit.
    """
    page = old or Page(id=0, author=author)
    page = _with_texts(page, fields, unfiltered=unfiltered)
    if len(page.title.encode(errors="replace")) > LONGEST_TITLE:
        raise _refused_by_database(is_new=old is None)
    page = _dated(replace(page, status=fields.status or _kept_status(old)), fields, now_gmt)
    page = replace(
        page,
        modified_gmt=now_gmt if old else page.date_gmt,
        parent=_parent(store, page, fields.parent),
        menu_order=page.menu_order if fields.menu_order is None else fields.menu_order,
        template=page.template if fields.template is None else fields.template,
        meta=page.meta if fields.meta is None else {**page.meta, **fields.meta},
    )
    return _slugged(store, old, page, fields.slug)


def _kept_status(old: Page | None) -> Status:
    return old.status if old else Status.DRAFT


def _with_texts(page: Page, fields: Fields, *, unfiltered: bool) -> Page:
    def text(given: str | None, held: str) -> str:
        if given is None:
            return held
        return given if unfiltered else filtered_html(given)

    return replace(
        page,
        title=text(fields.title, page.title),
        content=text(fields.content, page.content),
        excerpt=text(fields.excerpt, page.excerpt),
    )


def _dated(page: Page, fields: Fields, now_gmt: str) -> Page:
    """The page with its date, and with the status that follows from a date ahead."""
    if fields.date_gmt is not None:
        page = replace(page, date_gmt=fields.date_gmt, date_is_set=True)
    elif not page.date_is_set:
        page = replace(page, date_gmt=now_gmt, date_is_set=page.status not in UNSLUGGED)
    if page.status in {Status.PUBLISH, Status.FUTURE}:
        ahead = datetime.strptime(page.date_gmt, GMT) - datetime.strptime(now_gmt, GMT)  # noqa: DTZ007  # both are UTC
        is_ahead = ahead.total_seconds() >= FUTURE_S
        page = replace(page, status=Status.FUTURE if is_ahead else Status.PUBLISH)
    return page


def _parent(store: Store, page: Page, asked: int | None) -> int:
    """The parent's id; one that would close a circle is silently none."""
    if asked is None or asked == page.parent:
        return page.parent
    if asked and asked not in store.pages:
        raise RestError(400, "rest_post_invalid_id", "Invalid post parent ID.")
    above, seen = asked, set[int]()
    while above in store.pages and above not in seen:
        if above == page.id:
            return 0
        seen.add(above)
        above = store.pages[above].parent
    return asked


def _slugged(store: Store, old: Page | None, page: Page, asked: str | None) -> Page:
    slug = page.slug if asked is None else asked
    if old and old.status is Status.TRASH and page.status is not Status.TRASH:
        slug = old.desired_slug or slug
        page = replace(page, desired_slug="")
    if not slug and page.status not in UNSLUGGED:
        slug = sanitised_slug(html.unescape(page.title))[:LONGEST]
    return replace(page, slug=_free_slug(store, page, slug))


def _free_slug(store: Store, page: Page, slug: str) -> str:
    """Unique among the pages below one parent, in whatever status they are."""

    def is_taken(candidate: str) -> bool:
        return any(
            other.id != page.id and other.parent == page.parent
            for other in store.slugged(candidate)
        )

    return unique_slug(slug, is_taken)


def trashed(store: Store, page: Page, now_gmt: str) -> Page:
    """The page as the trash keeps it: its slug is given free. Raises RestError if it is there."""
    if page.status is Status.TRASH:
        raise RestError(410, "rest_already_trashed", "The post has already been deleted.")
    slug = page.slug[: LONGEST - len(TRASHED_SUFFIX)] + TRASHED_SUFFIX
    page = replace(page, status=Status.TRASH, desired_slug=page.slug, modified_gmt=now_gmt)
    return replace(page, slug=_free_slug(store, page, slug))


def numbered(page: Page, new_id: int) -> Page:
    """A new page with its id, which is its slug as well when its title yields none."""
    needs_slug = not page.slug and page.status not in UNSLUGGED
    return replace(page, id=new_id, slug=str(new_id) if needs_slug else page.slug)


def _refused_by_database(*, is_new: bool) -> RestError:
    verb = "insert" if is_new else "update"
    reason = (
        "WordPress database error: Processing the value for the following field failed: "
        "post_title. The supplied value may be too long or contains invalid data."
    )
    message = f"Could not {verb} post {'into' if is_new else 'in'} the database."
    return RestError(500, f"db_{verb}_error", message, additional_data=[reason])
