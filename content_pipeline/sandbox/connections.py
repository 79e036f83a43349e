"""The side of a sandbox server that faces its clients: connections, graceful end, idle end.

What belongs here: the event loop's side of any program with wire behaviour of its own, and a
server in a thread for tests. What is answered is the program's; bytes are in ``wire``.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from content_pipeline.sandbox.control_calls import HOST
from content_pipeline.sandbox.wire import (
    HEAD_LIMIT,
    MalformedRequest,
    Reply,
    Request,
    deliver,
    read_request,
)

BACKLOG = 512
"""Connections waiting to be accepted: more than a burst of runs opens at once."""
DRAIN_S = 0.5
"""How long requests in flight may still be answered when the program ends."""
WATCH_S = 0.5
"""How often is looked whether the program has been idle for too long."""
CONTROL_PREFIX = "/sandbox/"
"""Below it a program answers questions about itself."""


class Program(Protocol):
    """What is served: the imitated service, and the questions about it."""

    token: str
    """Proves an answer to come from this instance."""
    stop: asyncio.Event
    """Set when the program was asked to end."""
    in_flight: int
    """Requests to the imitated service received and not yet answered; kept by the server."""

    @property
    def idle_exit_s(self) -> float:
        """End after so many seconds without a request; 0: never."""
        ...

    def answer(self, request: Request) -> Reply:
        """The reply to a request below ``/sandbox/``."""
        ...

    async def serve(self, request: Request) -> Reply:
        """The reply to any other request."""
        ...


def listen(port: int = 0) -> socket.socket:
    """A socket on loopback, open for connections; port 0 takes any free one. Raises OSError."""
    return socket.create_server((HOST, port), backlog=BACKLOG)


class _Server:
    """The connections of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._used_at = time.monotonic()
        self._busy = 0

    async def run(self, listener: socket.socket, wanted: Callable[[], bool]) -> None:
        """Serve until stopped, idle for too long or no longer ``wanted``."""
        # asyncio sets TCP_NODELAY itself; connections are never closed for being idle, because a
        # client that just sends a request on one could not tell what became of it.
        server = await asyncio.start_server(
            self._converse, sock=listener, limit=HEAD_LIMIT, backlog=BACKLOG
        )
        while not self._program.stop.is_set() and wanted() and not self._is_idle():
            try:
                await asyncio.wait_for(self._program.stop.wait(), WATCH_S)
            except TimeoutError:
                continue
        server.close()
        deadline = time.monotonic() + DRAIN_S
        while self._busy and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    def _is_idle(self) -> bool:
        limit = self._program.idle_exit_s
        unused = not self._busy and time.monotonic() - self._used_at > limit
        return limit > 0 and unused

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.CancelledError):
            # The client is gone, or the loop ends; what was done is in the journal.
            return
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; True when another may follow."""
        try:
            request = await read_request(reader)
        except MalformedRequest as error:
            await deliver(Reply(status=error.status), reader, writer)
            return False
        if request is None:
            return False
        self._used_at = time.monotonic()
        self._busy += 1
        try:
            going_on = await deliver(await self._answer(request), reader, writer)
        finally:
            self._busy -= 1
            self._used_at = time.monotonic()
        return going_on and request.headers.get("connection", "").lower() != "close"

    async def _answer(self, request: Request) -> Reply:
        if request.path.startswith(CONTROL_PREFIX):
            return self._program.answer(request)
        self._program.in_flight += 1
        try:
            return await self._program.serve(request)
        finally:
            self._program.in_flight -= 1


async def serve(
    program: Program, listener: socket.socket, wanted: Callable[[], bool] = lambda: True
) -> None:
    """Serve ``program`` on ``listener`` until its stop is set, it is idle or not ``wanted``."""
    await _Server(program).run(listener, wanted)


@contextmanager
def in_thread(
    program: Program, listener: socket.socket, stop: Callable[[str], None]
) -> Iterator[None]:
    """``program`` in a thread of this process, ended by ``stop``, which is given its token."""
    thread = threading.Thread(
        target=lambda: asyncio.run(serve(program, listener)), name="sandbox-server"
    )
    thread.start()
    try:
        yield
    finally:
        stop(program.token)
        thread.join()
