"""The look-up endpoints: stored completions by metadata or id, their messages, deleting one.

What belongs here: queries, pages and documents over a journal. None of them bills anything.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from content_pipeline.sandbox.chat_requests import ApiError
from content_pipeline.sandbox.journal import Generation, Journal, Stored

DEFAULT_LIMIT = 20
MOST = 100
"""Entries on one page of a list."""
COMPLETION_ID = "chatcmpl-"
"""How the id of a chat completion begins; the journal holds responses as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """What a list request asks for."""

    metadata: Mapping[str, str]
    model: str | None
    order: str
    limit: int
    after: str | None


def metadata_of(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The metadata in a query's ``metadata[key]=value`` pairs."""
    return {
        name.removeprefix("metadata[").removesuffix("]"): value
        for name, value in pairs
        if name.startswith("metadata[")
    }


def parse_list_query(pairs: Sequence[tuple[str, str]]) -> ListQuery:
    """The query of a list request. Raises ApiError."""
    plain = {name: value for name, value in pairs if not name.startswith("metadata[")}
    order, limit = plain.get("order", "asc"), plain.get("limit", str(DEFAULT_LIMIT))
    if order not in ("asc", "desc"):
        raise ApiError(400, "Invalid 'order': must be 'asc' or 'desc'.", param="order")
    if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit) <= MOST:
        raise ApiError(400, f"Invalid 'limit': must be 1 to {MOST}.", param="limit")
    return ListQuery(
        metadata=metadata_of(pairs),
        model=plain.get("model") or None,
        order=order,
        limit=int(limit),
        after=plain.get("after") or None,
    )


def list_stored(journal: Journal, query: ListQuery, delay_s: float) -> dict[str, Any]:
    """One page of stored completions; those younger than ``delay_s`` are not listed yet."""
    kept = journal.find(query.metadata, query.model)
    found = [generation for generation in kept if generation.id.startswith(COMPLETION_ID)]
    if delay_s:
        limit = datetime.fromtimestamp(time.time() - delay_s, UTC).isoformat()
        found = [generation for generation in found if generation.at <= limit]
    if query.order == "desc":
        found.reverse()
    page = list(islice(_following(found, query.after), query.limit + 1))
    documents = [
        stored.completion
        for generation in page[: query.limit]
        if (stored := journal.stored(generation.id)) is not None
    ]
    return _list(documents, has_more=len(page) > query.limit)


def _following(found: list[Generation], after: str | None) -> Sequence[Generation]:
    if after is None:
        return found
    for position, generation in enumerate(found, start=1):
        if generation.id == after:
            return found[position:]
    raise _not_found(after)


def retrieve_stored(journal: Journal, completion_id: str) -> Mapping[str, Any]:
    """A stored completion. Raises ApiError."""
    return _kept(journal, completion_id).completion


def messages_of_stored(journal: Journal, completion_id: str) -> dict[str, Any]:
    """The messages a stored completion was asked with. Raises ApiError."""
    messages = _kept(journal, completion_id).messages
    documents = [
        {"id": f"{completion_id}-{position}", "content_parts": None, **message}
        for position, message in enumerate(messages)
    ]
    return _list(documents, has_more=False)


def delete_stored(journal: Journal, completion_id: str) -> dict[str, Any]:
    """Take a stored completion out of the look-ups. Raises ApiError."""
    _kept(journal, completion_id)
    journal.forget(completion_id)
    return {"object": "chat.completion.deleted", "id": completion_id, "deleted": True}


LOOK_UPS: Mapping[tuple[str, ...], tuple[str, Callable[[Journal, str], Mapping[str, Any]]]] = {
    ("GET",): ("retrieve", retrieve_stored),
    ("GET", "messages"): ("messages", messages_of_stored),
    ("DELETE",): ("delete", delete_stored),
}
"""Method and what follows the id in the path → the operation's name and what it does."""


def _kept(journal: Journal, completion_id: str) -> Stored:
    kept = journal.stored(completion_id)
    if kept is None or not completion_id.startswith(COMPLETION_ID):
        raise _not_found(completion_id)
    return kept


def _not_found(completion_id: str) -> ApiError:
    return ApiError(404, f"Chat completion '{completion_id}' not found.", param="completion_id")


def _list(documents: Sequence[Mapping[str, Any]], *, has_more: bool) -> dict[str, Any]:
    return {
        "object": "list",
        "data": documents,
        "first_id": documents[0]["id"] if documents else None,
        "last_id": documents[-1]["id"] if documents else None,
        "has_more": has_more,
    }
