"""Running a provider on a loopback socket: connections, graceful end, idle end.

What belongs here: the event loop's side, and a server in a thread for tests. The background
process and its files are in ``__main__`` and ``supervisor``.
"""

import asyncio
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from content_pipeline.sandbox.client import HOST, SandboxClient
from content_pipeline.sandbox.controls import Controls
from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline.sandbox.journal import Journal
from content_pipeline.sandbox.provider import Provider
from content_pipeline.sandbox.settings import ProviderSettings
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
"""How long requests in flight may still be answered when the provider ends."""
WATCH_S = 0.5
"""How often is looked whether the provider has been idle for too long."""


def listen(port: int = 0) -> socket.socket:
    """A socket on loopback, open for connections; port 0 takes any free one. Raises OSError."""
    return socket.create_server((HOST, port), backlog=BACKLOG)


class _Server:
    """The connections of one provider."""

    def __init__(self, controls: Controls) -> None:
        self._controls = controls
        self._provider = controls.provider
        self._used_at = time.monotonic()
        self._busy = 0

    async def run(self, listener: socket.socket, wanted: Callable[[], bool]) -> None:
        """Serve until stopped, idle for too long or no longer ``wanted``."""
        # asyncio sets TCP_NODELAY itself; connections are never closed for being idle, because a
        # client that just sends a paid request on one could not tell what became of it.
        server = await asyncio.start_server(
            self._converse, sock=listener, limit=HEAD_LIMIT, backlog=BACKLOG
        )
        while not self._controls.stop.is_set() and wanted() and not self._is_idle():
            try:
                await asyncio.wait_for(self._controls.stop.wait(), WATCH_S)
            except TimeoutError:
                continue
        server.close()
        deadline = time.monotonic() + DRAIN_S
        while self._busy and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    def _is_idle(self) -> bool:
        limit = self._provider.settings.idle_exit_s
        unused = not self._busy and time.monotonic() - self._used_at > limit
        return limit > 0 and unused

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.CancelledError):
            # The client is gone, or the loop ends; what was billed is in the journal.
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
        if request.path.startswith("/sandbox/"):
            return self._controls.answer(request)
        self._controls.in_flight += 1
        try:
            return await self._provider.answer(request)
        finally:
            self._controls.in_flight -= 1


async def serve(
    controls: Controls, listener: socket.socket, wanted: Callable[[], bool] = lambda: True
) -> None:
    """Serve the provider of ``controls`` on ``listener`` until its stop is set or it is idle."""
    await _Server(controls).run(listener, wanted)


@contextmanager
def serving(
    settings: ProviderSettings | None = None,
    *,
    folder: Path | None = None,
    faults: FaultPlan | None = None,
    port: int = 0,
) -> Iterator[SandboxClient]:
    """A provider in a thread of this process; without ``folder`` it remembers in memory only."""
    journal = Journal.in_folder(folder) if folder else Journal.in_memory()
    provider = Provider(settings or ProviderSettings(idle_exit_s=0), journal, faults)
    controls = Controls(provider, secrets.token_hex(16))
    listener = listen(port)
    client = SandboxClient(listener.getsockname()[1])
    thread = threading.Thread(
        target=lambda: asyncio.run(serve(controls, listener)), name="sandbox-provider"
    )
    thread.start()
    try:
        yield client
    finally:
        client.stop(controls.token)
        thread.join()
        journal.close()
