"""Lists of pages: what can be asked of ``GET /pages``, who may ask it, and what is found.

What belongs here: parameters, their checks in WordPress's words, and the selection.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from content_pipeline.sandbox.cms.accounts import Account
from content_pipeline.sandbox.cms.pages import Page, Status
from content_pipeline.sandbox.cms.refusals import (
    RestError,
    forbidden,
    invalid_parameter,
    lacking_rights,
    not_in,
)
from content_pipeline.sandbox.cms.searching import search_terms

MOST_PER_PAGE = 100
CONTEXTS = ("view", "embed", "edit")
ORDERS = ("asc", "desc")
STATUSES = (
    "publish", "future", "draft", "pending", "private", "trash", "auto-draft", "inherit",
    "request-pending", "request-confirmed", "request-failed", "request-completed", "any",
)  # fmt: skip
ANY = frozenset(Status) - {Status.TRASH}
"""What ``status=any`` means: it never shows the trash."""

SORTED_BY: Mapping[str, Callable[[Page], Any]] = {
    "author": lambda page: page.author,
    "date": lambda page: page.date_gmt,
    "id": lambda page: page.id,
    "include": lambda page: page.id,
    "modified": lambda page: page.modified_gmt,
    "parent": lambda page: page.parent,
    "relevance": lambda page: page.date_gmt,
    "slug": lambda page: page.slug,
    "include_slugs": lambda page: page.slug,
    "title": lambda page: page.title.lower(),
    "menu_order": lambda page: page.menu_order,
}

Parameters = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """A checked question."""

    context: str
    page: int
    per_page: int
    offset: int | None
    statuses: frozenset[Status]
    wanted: tuple[str, ...]
    """Terms that must all occur."""
    unwanted: tuple[str, ...]
    conditions: tuple[Callable[[Page], bool], ...]
    order_by: str
    descending: bool
    listed_ids: tuple[int, ...]
    """As given by ``include``, for its order."""
    cp_key: str
    """The companion plugin's look-up; empty: none."""


def parameters(query: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """All values by name; ``name[]`` and ``name[0]`` are ``name``."""
    found: dict[str, tuple[str, ...]] = {}
    for name, value in query:
        bare, bracket, _ = name.partition("[")
        found[bare] = (*found.get(bare, ()), value) if bracket else (value,)
    return found


def context_of(given: Parameters) -> str:
    """The asked context. Raises RestError."""
    return _one_of(given, "context", CONTEXTS, "view")


def checked_query(given: Parameters, who: Account | None, *, companion: bool) -> ListQuery:
    """The question in ``given`` as ``who`` may ask it. Raises RestError."""
    context = context_of(given)
    statuses = _statuses(given, who)
    page, per_page = _number(given, "page", 1), _number(given, "per_page", 10)
    if page < 1:
        raise _out_of_bounds("page", "page must be greater than or equal to 1")
    if not 1 <= per_page <= MOST_PER_PAGE:
        bounds = f"per_page must be between 1 (inclusive) and {MOST_PER_PAGE} (inclusive)"
        raise _out_of_bounds("per_page", bounds)
    if context == "edit" and not (who and who.edits_pages):
        raise forbidden(who, "rest_forbidden_context", "edit posts in this post type")
    wanted, unwanted = search_terms(" ".join(given.get("search", ())))
    return ListQuery(
        context=context,
        page=page,
        per_page=per_page,
        offset=_number(given, "offset", 0) if "offset" in given else None,
        statuses=statuses,
        wanted=wanted,
        unwanted=unwanted,
        conditions=tuple(_conditions(given)),
        order_by=_one_of(given, "orderby", tuple(SORTED_BY), "date"),
        descending=_one_of(given, "order", ORDERS, "desc") == "desc",
        listed_ids=_numbers(given, "include"),
        cp_key=given.get("cp_key", ("",))[0] if companion else "",
    )


def _statuses(given: Parameters, who: Account | None) -> frozenset[Status]:
    names = _several(given, "status") or ("publish",)
    for name in names:
        if name not in STATUSES:
            raise not_in("status", "status[0]", STATUSES)
    if names != ("publish",) and not (who and who.edits_pages):
        data = {"status": lacking_rights(who)}
        raise invalid_parameter("status", "Status is forbidden.", "rest_forbidden_status", data)
    if "any" in names:
        return ANY
    return frozenset(Status(name) for name in names if name in set(Status))


def _conditions(given: Parameters) -> Iterable[Callable[[Page], bool]]:
    if slugs := _several(given, "slug"):
        yield lambda page: page.slug in slugs
    if included := _numbers(given, "include"):
        yield lambda page: page.id in included
    if excluded := _numbers(given, "exclude"):
        yield lambda page: page.id not in excluded
    if "parent" in given:
        parents = _numbers(given, "parent")
        yield lambda page: page.parent in parents
    if authors := _numbers(given, "author"):
        yield lambda page: page.author in authors
    if "menu_order" in given:
        position = _number(given, "menu_order", 0)
        yield lambda page: page.menu_order == position
    yield from _times(given)


def _times(given: Parameters) -> Iterable[Callable[[Page], bool]]:
    if after := _moment(given, "modified_after"):
        yield lambda page: page.modified_gmt > after
    if before := _moment(given, "modified_before"):
        yield lambda page: page.modified_gmt < before
    if since := _moment(given, "after"):
        yield lambda page: page.date_gmt > since
    if until := _moment(given, "before"):
        yield lambda page: page.date_gmt < until


def selected(pages: Iterable[Page], query: ListQuery) -> list[Page]:
    """All pages that the question finds, in its order."""
    found = [page for page in pages if _found(page, query)]
    if query.order_by == "include" and query.listed_ids:
        return sorted(found, key=lambda page: query.listed_ids.index(page.id))
    by = SORTED_BY[query.order_by]
    return sorted(found, key=lambda page: (by(page), page.id), reverse=query.descending)


def _found(page: Page, query: ListQuery) -> bool:
    if query.cp_key:
        # The plugin replaces the asked statuses by all, trash included.
        if page.meta.get("_cp_key") != query.cp_key:
            return False
    elif page.status not in query.statuses:
        return False
    if not all(holds(page) for holds in query.conditions):
        return False
    if not (query.wanted or query.unwanted):
        return True
    text = page.searchable
    return all(term in text for term in query.wanted) and not any(
        term in text for term in query.unwanted
    )


def page_of(found: list[Page], query: ListQuery) -> tuple[list[Page], int]:
    """The asked page of the list and the number of pages. Raises RestError beyond the last."""
    pages = -(-len(found) // query.per_page)
    if query.page > max(pages, 1):
        message = "The page number requested is larger than the number of pages available."
        raise RestError(400, "rest_post_invalid_page_number", message)
    start = (query.page - 1) * query.per_page if query.offset is None else query.offset
    return found[start : start + query.per_page], pages


def _one_of(given: Parameters, name: str, allowed: tuple[str, ...], default: str) -> str:
    value = given.get(name, (default,))[-1]
    if value not in allowed:
        raise not_in(name, name, allowed)
    return value


def _several(given: Parameters, name: str) -> tuple[str, ...]:
    values = (part.strip() for value in given.get(name, ()) for part in value.split(","))
    return tuple(filter(None, values))


def _number(given: Parameters, name: str, default: int) -> int:
    if name not in given:
        return default
    return _integer(name, given[name][-1], name)


def _numbers(given: Parameters, name: str) -> tuple[int, ...]:
    return tuple(_integer(name, each, f"{name}[0]") for each in _several(given, name))


def _integer(name: str, text: str, place: str) -> int:
    try:
        return int(text)
    except ValueError:
        message, data = f"{place} is not of type integer.", {"param": place}
        raise invalid_parameter(name, message, "rest_invalid_type", data) from None


def _moment(given: Parameters, name: str) -> str | None:
    if name not in given:
        return None
    try:
        moment = datetime.fromisoformat(given[name][-1])
    except ValueError:
        raise invalid_parameter(name, "Invalid date.", "rest_invalid_date") from None
    if moment.tzinfo:
        moment = moment.astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def _out_of_bounds(name: str, message: str) -> RestError:
    return invalid_parameter(name, message, "rest_out_of_bounds")
