"""HTTP/1.1 on asyncio streams: reading a request, and writing an answer whole or broken.

What belongs here: bytes of the protocol, keep-alive included. It is written out rather than taken
from a framework because a provider that fails on purpose must be able to close a connection
without a word, stop in the middle of a body or fall silent; and because it shares two cores with
the pipeline (measured: 0.08 ms of CPU per exchange, http.server 0.21 ms).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

HEAD_LIMIT = 64 * 1024
"""Bytes of a request's head; also the stream's buffer."""
BODY_LIMIT = 16 * 1024 * 1024
"""Bytes of a request's body: ten times the longest context a model takes."""
DRIP_CHUNKS = 20


class Delivery(StrEnum):
    """How much of an answer reaches the client."""

    WHOLE = "whole"
    NONE = "none"
    """The connection is closed instead, after ``seconds`` of silence."""
    HALF = "half"
    """The head and half of the body, then the connection is closed."""
    DRIPPED = "dripped"
    """Everything, in small pieces over ``seconds``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it came; header names are in lower case."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer and how it is delivered."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)
    delivery: Delivery = Delivery.WHOLE
    seconds: float = 0.0


class MalformedRequest(ValueError):
    """The bytes are not a request this server understands; the connection ends."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request, or None when the client is done. Raises MalformedRequest."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise MalformedRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise MalformedRequest(HTTPStatus.BAD_REQUEST)
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise MalformedRequest(HTTPStatus.BAD_REQUEST)
        headers[name.strip().lower()] = value.strip()
    if parts[2] == "HTTP/1.0":
        headers.setdefault("connection", "close")
    target = urlsplit(parts[1])
    return Request(
        method=parts[0],
        path=unquote(target.path),
        query=tuple(parse_qsl(target.query, keep_blank_values=True)),
        headers=headers,
        body=await _read_body(reader, headers),
    )


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if "transfer-encoding" in headers:
        raise MalformedRequest(HTTPStatus.LENGTH_REQUIRED)
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise MalformedRequest(HTTPStatus.BAD_REQUEST)
    if int(length) > BODY_LIMIT:
        raise MalformedRequest(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    try:
        return await reader.readexactly(int(length))
    except asyncio.IncompleteReadError:
        raise MalformedRequest(HTTPStatus.BAD_REQUEST) from None


async def deliver(reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send ``reply`` as its delivery says; True when the connection may go on."""
    if reply.delivery is Delivery.NONE:
        if reply.seconds:
            await _until_gone(reader, reply.seconds)
        return False
    head = _head(reply)
    if reply.delivery is Delivery.HALF:
        writer.write(head + reply.body[: len(reply.body) // 2])
    elif reply.delivery is Delivery.DRIPPED:
        writer.write(head)
        size = max(1, -(-len(reply.body) // DRIP_CHUNKS))
        for start in range(0, len(reply.body), size):
            writer.write(reply.body[start : start + size])
            await writer.drain()
            await asyncio.sleep(reply.seconds / DRIP_CHUNKS)
    else:
        writer.write(head + reply.body)
    await writer.drain()
    return reply.delivery is not Delivery.HALF


def _head(reply: Reply) -> bytes:
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Unknown"
    headers = {**reply.headers, "content-length": str(len(reply.body))}
    lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _until_gone(reader: asyncio.StreamReader, seconds: float) -> None:
    """Wait until the client gives up, at most ``seconds``."""
    try:
        await asyncio.wait_for(reader.read(1), seconds)
    except TimeoutError:
        return
