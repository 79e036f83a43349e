"""Signing a request of the webhook so that the signature holds for where it was sent as well.

What belongs here: the key that both sides hold, and what the id of a request is made from: its
method, target and body. Equal requests have equal ids, and a receiver that makes the id again knows
that the signature was made for this very request.
"""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from content_pipeline.adapters.standard_webhooks import SECRET_PREFIX, signed_headers, signing_key
from content_pipeline.core.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """The key that a site shares with its receiver."""

    secret: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "SigningKey":
        """The key as Standard Webhooks writes it. Raises ConfigurationError, without the key."""
        try:
            return cls(secret=signing_key(text))
        except ValueError as error:
            raise ConfigurationError(
                f"the webhook's signing key is none: {error}; make one with: "
                f"echo {SECRET_PREFIX}$(openssl rand -base64 32)"
            ) from None

    def headers(self, method: str, target: str, body: bytes, *, now: datetime) -> dict[str, str]:
        """The headers of one request; ``target`` is its path and query below the endpoint."""
        request_id = request_id_of(method, target, body)
        return signed_headers(self.secret, request_id, int(now.timestamp()), body)


def request_id_of(method: str, target: str, body: bytes) -> str:
    """The id of a request: the same for the same request, whenever and however often it is sent."""
    told = f"{method} {target}\n".encode() + body
    return f"msg_{hashlib.sha256(told).hexdigest()[:32]}"
