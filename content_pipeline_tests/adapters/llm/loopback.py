"""A small HTTP/1.1 server on loopback that misbehaves on purpose and counts what reaches it."""

import gzip
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

NEVER_S = 60.0
"""A server that hangs does so for longer than any test may take; ``stop`` ends it."""

DRIP_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it came over the wire."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """What a behaviour may do to the connection a request came on."""

    def __init__(self, connection: socket.socket, stopping: threading.Event) -> None:
        self._connection = connection
        self._stopping = stopping

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def hang(self) -> None:
        self._stopping.wait(NEVER_S)

    def drip(self, data: bytes) -> None:
        for value in data:
            self.send(bytes([value]))
            if self._stopping.wait(DRIP_S):
                return

    def reset(self) -> None:
        """Close with an RST instead of a FIN."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        """Close at once: the file object reading requests would keep the socket open."""
        socket.close(self._connection.detach())


Behaviour = Callable[[Wire, Received], None]


class Server:
    """Listens on a free port; every request is recorded before its behaviour runs."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.received: list[Received] = []
        self._behaviour = behaviour
        self._stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def posts(self) -> int:
        return sum(request.method == "POST" for request in self.received)

    def stop(self) -> None:
        self._stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        wire = Wire(connection, self._stopping)
        with connection, connection.makefile("rb") as stream:
            try:
                for request in _requests(stream):
                    self.received.append(request)
                    self._behaviour(wire, request)
            except (OSError, ValueError):
                return  # the behaviour closed it, or the client went away


def _requests(stream: Any) -> Iterator[Received]:
    while True:
        first = stream.readline().decode()
        if not first.strip():
            return
        method, target, _ = first.split(" ", 2)
        headers: dict[str, str] = {}
        while line := stream.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers.get("content-length", "0")))
        yield Received(method=method, target=target, headers=headers, body=body)


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[Server]:
    """A running server for a ``with`` block."""
    server = Server(behaviour)
    try:
        yield server
    finally:
        server.stop()


def free_port() -> int:
    """A port nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Reason", *(f"{name}: {text}" for name, text in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def answer(
    status: int, body: bytes | object, headers: Mapping[str, str] | None = None
) -> Behaviour:
    """Answer properly: ``body`` is bytes, or anything JSON can hold."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "application/json" if not data.startswith(b"<") else "text/html"
    whole = {"Content-Type": kind, "Content-Length": str(len(data)), **(headers or {})}

    def behaviour(wire: Wire, _request: Received) -> None:
        wire.send(head(status, whole) + data)

    return behaviour


def reset_at_once(wire: Wire, _request: Received) -> None:
    wire.reset()


def close_at_once(wire: Wire, _request: Received) -> None:
    wire.close()


def garbage(wire: Wire, _request: Received) -> None:
    wire.send(b"\x00\x01\x02 this is not HTTP\r\n\r\n")
    wire.close()


def hang_before_headers(wire: Wire, _request: Received) -> None:
    wire.hang()


def hang_after_headers(wire: Wire, _request: Received) -> None:
    wire.send(head(200, {"Content-Type": "application/json", "Content-Length": "1000"}))
    wire.hang()


def drip_headers(wire: Wire, _request: Received) -> None:
    wire.drip(b"HTTP/1.1 200 OK\r\nX-Filler: " + b"x" * 3000)


def drip_interim_answers(wire: Wire, _request: Received) -> None:
    wire.drip(b"HTTP/1.1 102 Processing\r\n\r\n" * 200)


def drip_body(wire: Wire, _request: Received) -> None:
    wire.send(head(200, {"Content-Type": "application/json", "Content-Length": "3000"}))
    wire.drip(b" " * 3000)


def cut_body(wire: Wire, _request: Received) -> None:
    wire.send(head(200, {"Content-Type": "application/json", "Content-Length": "1000"}))
    wire.send(b'{"id": "chatcmpl-1", "choices": [')
    wire.close()


def reset_in_body(wire: Wire, _request: Received) -> None:
    wire.send(head(200, {"Content-Type": "application/json", "Content-Length": "1000"}))
    wire.send(b'{"id": "chatcmpl-1"')
    wire.reset()


def bad_gzip(wire: Wire, _request: Received) -> None:
    whole = gzip.compress(b'{"id": "chatcmpl-1"}')
    broken = whole[:10] + b"\xff" * (len(whole) - 10)  # a good header, then nonsense
    fields = {"Content-Encoding": "gzip", "Content-Length": str(len(broken))}
    wire.send(head(200, fields) + broken)


def huge_body(wire: Wire, request: Received) -> None:
    """A whole and well-formed answer of 20 MB."""
    answer(200, b" " * 20_000_000)(wire, request)


def redirect_to_itself(wire: Wire, request: Received) -> None:
    wire.send(head(308, {"Location": request.target, "Content-Length": "0"}))
