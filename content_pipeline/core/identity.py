"""Identity: the same wish gives the same key, from wherever and however often it is asked.

What belongs here: digests and keys, all derived; no random number, clock or counter enters one.
An idempotency key names the business operation and never the attempt.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

ID_LENGTH = 32
"""Hex digits of an id: 128 bits, so 10^9 pages collide with a chance below 10^-20."""


def digest(*parts: Any) -> str:
    """A stable hex digest of JSON-serialisable ``parts``; key order and spacing do not matter."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]


def input_hash(path: str, columns: Mapping[str, str]) -> str:
    """Identity of what a page is made from: its target path and the columns its site uses."""
    return digest("input", path, dict(columns))


def page_id(site: str, path: str) -> str:
    """Identity of a publish target: one canonical path of one site."""
    return digest("page", site, path)


def page_job_id(site: str, topic: str, input_hash: str, generation_version: str, nonce: str) -> str:
    """Identity of one logical request. ``nonce`` is empty but for a deliberate regeneration."""
    return digest("page-job", site, topic, input_hash, generation_version, nonce)


def publish_key(page_id: str, revision: int) -> str:
    """Idempotency key of publishing one revision of one page."""
    return f"page:{page_id}:rev:{revision}:publish"


def content_hash(title: str, meta_description: str, body_html: str) -> str:
    """Identity of what a visitor gets to read."""
    return digest("content", title, meta_description, body_html)
