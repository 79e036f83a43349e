"""The sandbox CMS: what happens to a request, and in which order.

What belongs here: received (journaled) → fault → latency → done (journaled) → delivered. A client
that leaves meanwhile stops nothing of it, as with the real one. What the endpoints do is in
``rest``, ``front`` and ``services``.
"""

import asyncio
import contextlib
import sys
import traceback
from collections.abc import Mapping
from dataclasses import replace
from email.utils import formatdate
from time import monotonic, time
from typing import Any

from content_pipeline.sandbox.cms.deliveries import delivered, refused
from content_pipeline.sandbox.cms.faults import (
    WRITES,
    Fault,
    FaultKind,
    FaultPlan,
    Incoming,
    RunningPlan,
)
from content_pipeline.sandbox.cms.front import visited
from content_pipeline.sandbox.cms.keys import key_of
from content_pipeline.sandbox.cms.refusals import RestError
from content_pipeline.sandbox.cms.rest import (
    Prepared,
    commit,
    new_key,
    prepare,
    read,
    refusal_reply,
)
from content_pipeline.sandbox.cms.routes import SERVICES, Asked, asked, body_fields
from content_pipeline.sandbox.cms.services import told
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.cms.site import Site
from content_pipeline.sandbox.cms.store import Store
from content_pipeline.sandbox.wire import Reply, Request

LOCK_WAIT_S = 5.0
"""For so long the companion plugin waits for its lock before it gives up."""
LOCK_POLL_S = 0.01
PUBLIC = frozenset({"front", "sitemap"})


class CMS:
    """One site behind its web server. Lives on one event loop."""

    def __init__(
        self, settings: CMSSettings, store: Store, faults: FaultPlan | None = None
    ) -> None:
        self.site = Site(settings, store)
        self.plan = RunningPlan(faults or FaultPlan())
        self._late: set[asyncio.Task[None]] = set()

    async def answer(self, request: Request) -> Reply:
        """The reply to a request; every refusal is one, too."""
        try:
            reply = await self._received(request)
        except RestError as error:
            reply = refusal_reply(error)
        except Exception as error:  # noqa: BLE001  # boundary: our own fault is a server's 500
            places = traceback.format_tb(error.__traceback__)
            sys.stderr.write(f"{type(error).__name__}\n{''.join(places)}")
            reply = refusal_reply(RestError(500, "sandbox_failed", "See the sandbox's log."))
        date = formatdate(time() + self.site.settings.clock_offset_s, usegmt=True)
        return replace(reply, headers={"date": date, **reply.headers})

    async def _received(self, request: Request) -> Reply:
        ask = asked(request)
        fields = _fields(request)
        key = key_of(self.site, ask, fields)
        fault = self.plan.fault_for(
            Incoming(operation=ask.operation, key=key, path=request.path, fields=fields)
        )
        self.site.store.note_request(
            ask.operation,
            key,
            {
                "method": request.method,
                "path": request.path,
                "page_id": ask.page_id,
                "by": ask.who.id if ask.who else None,
                "fault": fault.kind if fault else None,
                "wait_s": fault.announced_s if fault else None,
            },
        )
        if fault and fault.kind is FaultKind.ANONYMOUS:
            ask = asked(request, anonymous=True)
        if fault and not fault.is_done:
            return refused(fault, request)
        if ask.operation in WRITES:
            return await self._write(ask, key, fault)
        await self._latency(key, fault)
        return delivered(self._done(ask), fault, request)

    def _done(self, ask: Asked) -> Reply:
        if ask.operation in SERVICES:
            return told(self.site, ask)
        if ask.operation in PUBLIC:
            return visited(self.site, ask)
        try:
            return read(self.site, ask)
        except RestError as error:
            return refusal_reply(error)

    async def _write(self, ask: Asked, key: str, fault: Fault | None) -> Reply:
        if not self.site.settings.racing_writes:
            await self._latency(key, fault)
        await self._until_free(ask)
        filtered = fault is not None and fault.kind is FaultKind.FILTERED
        write = prepare(self.site, ask, filtered=filtered)
        if fault and fault.kind is FaultKind.LATE:
            self._commit_later(write, fault.seconds)
            return refused(fault, ask.request)
        if self.site.settings.racing_writes:
            await self._latency(key, fault)
        return delivered(commit(self.site, write), fault, ask.request)

    async def _until_free(self, ask: Asked) -> None:
        """Wait, like the companion plugin, for another create of the same key to be stored."""
        deadline = monotonic() + LOCK_WAIT_S
        while new_key(self.site, ask) in self.site.busy_keys and monotonic() < deadline:
            await asyncio.sleep(LOCK_POLL_S)

    async def _latency(self, key: str, fault: Fault | None) -> None:
        seconds = self.site.next_latency_s(key)
        if fault and fault.kind is FaultKind.SLOW:
            seconds += fault.seconds
        if seconds:
            await asyncio.sleep(seconds)

    def _commit_later(self, write: Prepared, seconds: float) -> None:
        """As a write that waits for a lock: decided on now, in effect then, whatever is true then.

        A server that is killed before has lost it, like a database without the transaction.
        """

        async def commit_then() -> None:
            await asyncio.sleep(seconds)
            # The page may have been deleted meanwhile, and there is nobody to tell.
            with contextlib.suppress(RestError):
                commit(self.site, write)

        task = asyncio.get_running_loop().create_task(commit_then())
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    def reset(self) -> None:
        """Forget everything that ever happened, all faults, and writes still to come."""
        for task in self._late:
            task.cancel()
        self.plan = RunningPlan(FaultPlan())
        self.site.reset()


def _fields(request: Request) -> Mapping[str, Any]:
    """What a body asks for, as far as it can be read; refusing it is the endpoint's."""
    try:
        return body_fields(request)
    except RestError:
        return {}
