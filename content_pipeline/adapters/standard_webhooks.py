"""The signature of Standard Webhooks, so that receivers have libraries for it.

What belongs here: the key as it is written, and the three headers. What is sent, and what its id is
made from, is the sender's to say.
"""

import base64
import binascii
import hashlib
import hmac

SECRET_PREFIX = "whsec_"  # noqa: S105 - marks a secret, is none
LEAST_SECRET_BYTES = 24
"""By the standard."""


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


def signed_headers(key: bytes, message_id: str, sent_at_s: int, content: bytes) -> dict[str, str]:
    """The headers of one message; ``sent_at_s`` counts from 1970."""
    signed = f"{message_id}.{sent_at_s}.".encode() + content
    mac = hmac.new(key, signed, hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(sent_at_s),
        "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
    }
