"""An HTTP transport whose read timeout bounds the whole exchange, by the wall clock.

The usual ``timeout`` counts per socket operation: a body dripped at one byte per 20 ms took 5 s
under a timeout of 1 s. Here the transport turns the limits of a request into instants once, hands
the instants down where durations are expected, and the network streams below wait for what is
left until then. No watchdog thread, no state shared between requests.

What belongs here: bytes and time. What an answer means is decided elsewhere.
"""

import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpcore2
import httpx2

MAX_BODY_BYTES = 16 * 1024 * 1024
"""A page is about 50 kB and a listing of stored answers under 2 MB: more can only be a fault."""

IDLE_EXPIRY_S = 5.0
"""Idle connections live shorter than at any server: one closed under our feet is an uncertain,
possibly billed call."""

WRITE_BYTES = 16 * 1024
"""Written at a time, one TLS record: the time left is looked at between two writes."""

KEEP_ALIVE: tuple[tuple[str, int], ...] = (
    ("TCP_KEEPIDLE", 30),
    ("TCP_KEEPINTVL", 10),
    ("TCP_KEEPCNT", 3),
)
"""Seconds, seconds, probes. A NAT drops a silent connection after some minutes and a model may
think for longer; the probes keep the entry alive. Not every system has all three options."""


class DeadlineTransport(httpx2.BaseTransport):
    """Sends each request once, over pooled HTTP/1.1 connections; safe for many threads.

    Reads the limits of a request from its ``timeout`` extension, in seconds: ``read`` bounds
    everything from now to the last byte, ``pool`` the wait for a connection, ``connect`` making
    one (per address of the host). All four must be set. Only looking up the host's name is not
    bounded: that time is the system resolver's. Raises httpx2's TransportErrors.
    """

    def __init__(self, *, max_connections: int, proxy_url: str | None = None) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=_tls(),
            proxy=_proxy(proxy_url) if proxy_url is not None else None,
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=IDLE_EXPIRY_S,
            retries=0,
            network_backend=_DeadlineNetwork(),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send ``request``; the answer's body is read through the returned stream."""
        with _httpx2_errors():
            answer = self._pool.handle_request(
                httpcore2.Request(
                    method=request.method,
                    url=_core_url(request.url),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions={
                        **request.extensions,
                        "timeout": _instants(request.extensions["timeout"]),
                    },
                )
            )
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    """The bytes of one answer, refused beyond MAX_BODY_BYTES."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        with _httpx2_errors():
            for part in self._answer.iter_stream():
                size += len(part)
                if size > MAX_BODY_BYTES:
                    raise httpx2.RemoteProtocolError(f"the answer exceeds {MAX_BODY_BYTES} bytes")
                yield part

    def close(self) -> None:
        self._answer.close()


class _DeadlineNetwork(httpcore2.NetworkBackend):
    """Opens TCP connections; ``timeout`` is an instant of the monotonic clock."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        stream = httpcore2.SyncBackend().connect_tcp(
            host,
            port,
            timeout=_left(timeout, httpcore2.ConnectTimeout),
            local_address=local_address,
            socket_options=[*(socket_options or ()), *_keep_alive_options()],
        )
        return _DeadlineStream(stream)


class _DeadlineStream(httpcore2.NetworkStream):
    """A connection whose ``timeout`` arguments are instants of the monotonic clock."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, timeout=_left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), WRITE_BYTES):
            self._stream.write(
                buffer[start : start + WRITE_BYTES],
                timeout=_left(timeout, httpcore2.WriteTimeout),
            )

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        left = _left(timeout, httpcore2.ConnectTimeout)
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, timeout=left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _instants(limits: dict[str, float]) -> dict[str, float]:
    """The request's limits as instants, except ``pool``, which the pool itself waits for."""
    now = time.monotonic()
    end = now + limits["read"]
    pool = min(limits["pool"], limits["read"])
    return {
        "pool": pool,
        "connect": min(now + pool + limits["connect"], end),
        "write": end,
        "read": end,
    }


def _left(instant: float | None, expired: type[httpcore2.TimeoutException]) -> float | None:
    if instant is None:
        return None
    left = instant - time.monotonic()
    if left <= 0:
        raise expired("the deadline of the request has passed")
    return left


@cache
def _tls() -> ssl.SSLContext:
    """One for the process: loading the system's certificates takes 0.1 s."""
    return httpx2.create_ssl_context()


def _keep_alive_options() -> list[httpcore2.SOCKET_OPTION]:
    options: list[httpcore2.SOCKET_OPTION] = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    options += [
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in KEEP_ALIVE
        if hasattr(socket, name)
    ]
    return options


def _core_url(url: httpx2.URL) -> httpcore2.URL:
    return httpcore2.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def _proxy(url: str) -> httpcore2.Proxy:
    proxy = httpx2.Proxy(url)
    return httpcore2.Proxy(url=_core_url(proxy.url), auth=proxy.raw_auth)


@contextmanager
def _httpx2_errors() -> Iterator[None]:
    """The errors of the connection pool as httpx2's of the same name, which the SDK knows."""
    try:
        yield
    except (
        httpcore2.TimeoutException,
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.ProxyError,
        httpcore2.UnsupportedProtocol,
    ) as error:
        same: type[httpx2.TransportError] = getattr(httpx2, type(error).__name__)
        raise same(str(error)) from error
