"""Signing a request as Standard Webhooks does, and binding the signature to where it was sent.

What belongs here: the key that both sides hold, and the three headers. The id of a request is made
from its method, target and body, so equal requests have equal ids, and a receiver that makes the
id again knows that the signature was made for this very request.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import datetime

from content_pipeline.core.errors import ConfigurationError

PREFIX = "whsec_"

SHORTEST = 24
"""Bytes of a key, as Standard Webhooks wants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """The key that a site shares with its receiver."""

    secret: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "SigningKey":
        """The key as Standard Webhooks writes it. Raises ConfigurationError, without the key."""
        try:
            secret = base64.b64decode(text.removeprefix(PREFIX), validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if not text.startswith(PREFIX) or len(secret) < SHORTEST:
            raise ConfigurationError(
                f"the webhook's signing key must be {PREFIX} and at least {SHORTEST} bytes in "
                f"base64; make one with: echo {PREFIX}$(openssl rand -base64 32)"
            )
        return cls(secret=secret)

    def headers(self, method: str, target: str, body: bytes, *, now: datetime) -> dict[str, str]:
        """The headers of one request; ``target`` is its path and query below the endpoint."""
        request_id, sent_at_s = request_id_of(method, target, body), int(now.timestamp())
        return {
            "webhook-id": request_id,
            "webhook-timestamp": str(sent_at_s),
            "webhook-signature": self.signature(request_id, sent_at_s, body),
        }

    def signature(self, request_id: str, sent_at_s: int, body: bytes) -> str:
        """The signature of Standard Webhooks; ``sent_at_s`` counts from 1970."""
        signed = f"{request_id}.{sent_at_s}.".encode() + body
        mac = hmac.new(self.secret, signed, hashlib.sha256).digest()
        return f"v1,{base64.b64encode(mac).decode()}"


def request_id_of(method: str, target: str, body: bytes) -> str:
    """The id of a request: the same for the same request, whenever and however often it is sent."""
    told = f"{method} {target}\n".encode() + body
    return f"msg_{hashlib.sha256(told).hexdigest()[:32]}"
