"""The companion plugin: keys that cannot be created twice, and updates with a precondition.

What belongs here: what a site adds to its WordPress so that a pipeline need not guess. Without the
setting ``companion`` none of it happens, and the same requests are served as if never asked.
"""

from collections.abc import Mapping, Set

from content_pipeline.sandbox.cms.pages import META_KEYS, Page
from content_pipeline.sandbox.cms.refusals import RestError
from content_pipeline.sandbox.cms.store import Store


def refuse_known_key(store: Store, key: str, busy: Set[str]) -> None:
    """Raise RestError when a page with the new one's key exists, or is just being made."""
    if key in busy:
        raise RestError(503, "cp_busy", "another create of this key is running")
    for page in store.pages.values():
        if page.meta.get(META_KEYS[0]) == key:
            raise RestError(409, "cp_exists", "key exists", {"existing_id": page.id})


def refuse_mistyped(meta: object) -> None:
    """Raise RestError for a field of ours that is not a text; WordPress does not convert it."""
    for name in META_KEYS:
        if isinstance(meta, dict) and not isinstance(meta.get(name, ""), str):
            place = f"meta.{name}"
            message = f"{place} is not of type string."
            raise RestError(400, "rest_invalid_type", message, additional_data=[{"param": place}])


def refuse_changed(page: Page, headers: Mapping[str, str]) -> None:
    """Raise RestError when the page is not what the caller names in If-Match."""
    wanted = headers.get("if-match")
    if wanted is not None and wanted != page.etag:
        raise RestError(412, "cp_changed", "page changed since", {"etag": page.etag})
