"""Webhook: tells a receiver of our own what was published and taken off, signed.

What belongs here: the body and the signature. It is signed as standardwebhooks.com says, so that
receivers have libraries for it. The body:

    {"type": "pages.changed", "timestamp": "2026-03-01T12:00:00Z", "data": {
        "site": "countries", "base_url": "https://www.example.com",
        "changed": [{"url": ..., "path": ..., "title": ..., "meta_description": ...,
                     "modified_at": "2026-03-01T11:59:58Z"}],
        "withdrawn": [{"url": ..., "path": ...}]}}

``webhook-id`` is the same when the very same news is sent again, so a receiver may drop what it
knows.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime

from content_pipeline.adapters.hooks.told_by_http import ToldByHTTP
from content_pipeline.core.ports import Announcement, HookTerms, SiteNews

SECRET_PREFIX = "whsec_"  # noqa: S105 - marks a secret, is none
LEAST_SECRET_BYTES = 24
"""By the standard."""

ADVICE = {
    401: "it refuses the signature; set the secret that the receiver has in the environment",
    403: "it refuses the call; check the secret, and what stands before the receiver",
    404: "there is nothing at its address; correct it in the environment",
    410: "it wants no more calls; remove the hook from the site's file",
    413: "it takes no such long body; lower `batch`",
}


def signing_key(secret: str) -> bytes:
    """The key in ``secret``, which is Base64 after whsec_. Raises ValueError without quoting it."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < LEAST_SECRET_BYTES:
        raise ValueError(
            f"a secret is {SECRET_PREFIX} and the Base64 of at least {LEAST_SECRET_BYTES} bytes"
        ) from None
    return key


class Webhook:
    """Calls one receiver."""

    def __init__(
        self,
        told: ToldByHTTP,
        *,
        kind: str,
        terms: HookTerms,
        key: bytes,
        clock: Callable[[], datetime],
    ) -> None:
        self.kind = kind
        self.terms = terms
        self._told = told
        self._key = key
        self._clock = clock

    def tell(self, news: SiteNews) -> Announcement:
        """One call. Raises CallFailed."""
        now = self._clock()
        message_id = f"msg_{news.delivery_id}"
        timestamp = str(int(now.timestamp()))
        content = _body(news, now)
        headers = {
            "webhook-id": message_id,
            "webhook-timestamp": timestamp,
            "webhook-signature": _signature(self._key, message_id, timestamp, content),
        }
        self._told.post(news, content=content, headers=headers)
        return Announcement(location=message_id, changed=True)

    def close(self) -> None:
        """Close every connection."""
        self._told.close()


def _signature(key: bytes, message_id: str, timestamp: str, content: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode() + content
    mac = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(mac).decode()}"


def _body(news: SiteNews, now: datetime) -> bytes:
    document = {
        "type": "pages.changed",
        "timestamp": _moment(now),
        "data": {
            "site": news.site,
            "base_url": news.base_url,
            "changed": [
                {
                    "url": page.url,
                    "path": page.path,
                    "title": page.title,
                    "meta_description": page.meta_description,
                    "modified_at": _moment(page.modified_at),
                }
                for page in news.changed
            ],
            "withdrawn": [{"url": page.url, "path": page.path} for page in news.withdrawn],
        },
    }
    return json.dumps(document, ensure_ascii=False).encode()


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
