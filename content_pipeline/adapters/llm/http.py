"""The HTTP client the SDK runs on: no redirects, no environment, only the headers we decide on.

What belongs here: everything about an outgoing request that is not its body.
"""

from collections.abc import Callable, Mapping

import httpx2

from content_pipeline.adapters.deadline_transport import DeadlineTransport

CONNECT_S = 10.0
"""Seconds for TCP and TLS together; nothing has been paid yet, so waiting longer buys nothing."""

POOL_S = 10.0
"""Seconds a thread waits for a free connection; there is one per thread, so this is a fault."""

MAX_CONNECTIONS = 128
"""Twice the 64 threads that may share one client, so that look-ups never wait for calls."""

SENT_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "idempotency-key",
        "transfer-encoding",
        "user-agent",
        "x-client-request-id",
    }
)
"""What may leave. The SDK adds the headers named in OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID and
OPENAI_PROJECT_ID of the environment; whatever is not listed here or fixed by us is dropped."""

SENT_PREFIX = "x-stainless-"
"""The SDK's own description of itself."""


def http_client(*, fixed_headers: Mapping[str, str], proxy_url: str | None) -> httpx2.Client:
    """A client for one provider that sends ``fixed_headers`` whatever else is asked for."""
    return httpx2.Client(
        transport=DeadlineTransport(max_connections=MAX_CONNECTIONS, proxy_url=proxy_url),
        event_hooks={"request": [_header_rule(fixed_headers)]},
        follow_redirects=False,
        trust_env=False,
    )


def call_timeout(deadline_s: float) -> httpx2.Timeout:
    """The limits of one call that must be over after ``deadline_s`` seconds."""
    return httpx2.Timeout(connect=CONNECT_S, pool=POOL_S, write=deadline_s, read=deadline_s)


def _header_rule(fixed_headers: Mapping[str, str]) -> Callable[[httpx2.Request], None]:
    def rule(request: httpx2.Request) -> None:
        for name in list(request.headers):
            if name not in SENT_HEADERS and not name.startswith(SENT_PREFIX):
                del request.headers[name]
        request.headers.update(fixed_headers)

    return rule
