import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime

import pytest

from content_pipeline.adapters.cms.ghost_token import LIFETIME_S, AdminKey
from content_pipeline.core.errors import ConfigurationError

KEY_ID, SECRET = "0123456789abcdef01234567", "00ff" * 16
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def part(text: str) -> dict[str, object]:
    padded = text + "=" * (-len(text) % 4)
    found = json.loads(base64.urlsafe_b64decode(padded))
    assert isinstance(found, dict)
    return found


def test_a_token_names_the_key_and_lives_five_minutes() -> None:
    scheme, token = AdminKey.parse(f"{KEY_ID}:{SECRET}").authorization(NOW).split(" ")
    header, claims, _ = token.split(".")
    assert scheme == "Ghost"
    assert part(header) == {"alg": "HS256", "typ": "JWT", "kid": KEY_ID}
    made_s = int(NOW.timestamp())
    assert part(claims) == {"iat": made_s, "exp": made_s + LIFETIME_S, "aud": "/admin/"}


def test_a_token_is_signed_with_the_bytes_that_the_secret_spells() -> None:
    token = AdminKey.parse(f"{KEY_ID}:{SECRET}").authorization(NOW).removeprefix("Ghost ")
    signed, _, signature = token.rpartition(".")
    mac = hmac.new(bytes.fromhex(SECRET), signed.encode(), hashlib.sha256).digest()
    assert signature == base64.urlsafe_b64encode(mac).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        "",
        SECRET,
        f"{KEY_ID}:",
        f"{KEY_ID}:{SECRET[:-2]}",
        f"{KEY_ID}{SECRET}",
        f"{KEY_ID}:{SECRET}\n",
        f"{KEY_ID}:{SECRET[:-1]}g",
        "0123456789abcdef0123456789",
    ],
)
def test_what_is_no_admin_key_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigurationError, match="copy it again") as refused:
        AdminKey.parse(text)
    assert SECRET[:-2] not in str(refused.value)


def test_a_key_does_not_show_its_secret() -> None:
    assert "255" not in repr(AdminKey.parse(f"{KEY_ID}:{SECRET}"))
    assert "\\xff" not in repr(AdminKey.parse(f"{KEY_ID}:{SECRET}"))
