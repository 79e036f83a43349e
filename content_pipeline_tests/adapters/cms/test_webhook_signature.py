import base64
import hashlib
import hmac
from datetime import UTC, datetime

import pytest

from content_pipeline.adapters.cms.webhook_signature import SigningKey, request_id_of
from content_pipeline.core.errors import ConfigurationError

SECRET = b"0123456789abcdef0123456789abcdef"
TEXT = f"whsec_{base64.b64encode(SECRET).decode()}"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_the_headers_are_those_of_standard_webhooks() -> None:
    body = '{"title": "Größe"}'.encode()
    headers = SigningKey.parse(TEXT).headers("PUT", "pages/a", body, now=NOW)
    assert set(headers) == {"webhook-id", "webhook-timestamp", "webhook-signature"}
    assert headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = hmac.new(SECRET, signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(mac).decode()}"


def test_an_id_names_method_target_and_body_and_nothing_else() -> None:
    one = request_id_of("PUT", "pages/a", b"{}")
    assert one == request_id_of("PUT", "pages/a", b"{}")
    others = {
        request_id_of("GET", "pages/a", b"{}"),
        request_id_of("PUT", "pages/b", b"{}"),
        request_id_of("PUT", "pages/a", b"{ }"),
    }
    assert len(others | {one}) == 4
    assert one.startswith("msg_")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        f"whsec_{base64.b64encode(SECRET[:20]).decode()}",
        f"{TEXT}!",
        "whsec_not base64 at all, but long enough",
    ],
)
def test_what_is_no_key_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigurationError, match="openssl") as refused:
        SigningKey.parse(text)
    assert not text.removeprefix("whsec_") or text.removeprefix("whsec_") not in str(refused.value)


def test_a_key_does_not_show_itself() -> None:
    assert "0123" not in repr(SigningKey.parse(TEXT))
