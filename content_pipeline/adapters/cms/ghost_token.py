"""The credentials of a Ghost: an Admin API key, and the short-lived token made of it.

What belongs here: reading the key that people copy, and signing. A token is made for each request:
it lives five minutes, so a clock of ours that is further off than that is refused.
"""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from content_pipeline.core.errors import ConfigurationError

LIFETIME_S = 300
"""Ghost refuses a token that was made longer ago, whatever it says of itself."""

_KEY = re.compile(r"([0-9a-f]{24}):([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminKey:
    """An Admin API key of a custom integration."""

    key_id: str
    secret: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "AdminKey":
        """The key as Ghost shows it. Raises ConfigurationError, which does not repeat it."""
        found = _KEY.fullmatch(text)
        if found is None:
            raise ConfigurationError(
                "the Admin API key for Ghost is not 24 and 64 hexadecimal digits with a colon "
                "between; copy it again from Settings, Integrations (a Content API key is shorter)"
            )
        return cls(key_id=found[1], secret=bytes.fromhex(found[2]))

    def authorization(self, now: datetime) -> str:
        """The header of one request at ``now``, aware and UTC."""
        made_s = int(now.timestamp())
        header = {"alg": "HS256", "typ": "JWT", "kid": self.key_id}
        claims = {"iat": made_s, "exp": made_s + LIFETIME_S, "aud": "/admin/"}
        signed = f"{_part(header)}.{_part(claims)}"
        mac = hmac.new(self.secret, signed.encode(), hashlib.sha256).digest()
        return f"Ghost {signed}.{_base64url(mac)}"


def _part(value: Mapping[str, Any]) -> str:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
