"""The CMS's endpoints about itself, below ``/sandbox/``: truth, faults, people, settings.

What belongs here: what tests, benches and the supervisor ask. None of it is part of WordPress, and
faults never reach it.
"""

import asyncio
import os
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from content_pipeline.sandbox.chat_requests import ApiError
from content_pipeline.sandbox.cms.cms import CMS
from content_pipeline.sandbox.cms.faults import FaultPlan, RunningPlan
from content_pipeline.sandbox.cms.people import Act, done_by_hand
from content_pipeline.sandbox.cms.refusals import RestError
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.cms.store import Change
from content_pipeline.sandbox.cms.truth import (
    early_requests,
    edits_overwritten,
    live_at,
    pages_by_key,
    stale_overwrites,
)
from content_pipeline.sandbox.controls import StopOrder, parsed
from content_pipeline.sandbox.deliveries import json_reply
from content_pipeline.sandbox.journal import now, shallow
from content_pipeline.sandbox.wire import Reply, Request


class CMSControls:
    """What can be asked of and done to one running CMS."""

    def __init__(self, cms: CMS, token: str) -> None:
        self.cms = cms
        self.token = token
        self._started_at = now()
        self.stop = asyncio.Event()
        """Set when the CMS was asked to end."""
        self.in_flight = 0
        """Requests to the CMS received and not yet answered; kept by the server."""

    @property
    def idle_exit_s(self) -> float:
        """End after so many seconds without a request; 0: never."""
        return self.cms.site.settings.idle_exit_s

    async def serve(self, request: Request) -> Reply:
        """The CMS's reply to a request."""
        return await self.cms.answer(request)

    def answer(self, request: Request) -> Reply:
        """The reply to a request below ``/sandbox/``."""
        name = request.path.removeprefix("/sandbox").strip("/")
        try:
            if request.method == "GET":
                return json_reply(self._told(name, dict(request.query)))
            return json_reply(self._ordered(name, request.body))
        except ApiError as error:
            return json_reply(error.envelope, error.status)

    def _told(self, name: str, query: dict[str, str]) -> dict[str, Any]:
        store = self.cms.site.store
        match name:
            case "health":
                return self._health()
            case "truth":
                return self._truth()
            case "history":
                return {"changes": [_change(each) for each in store.changes]}
            case "live":
                found = live_at(store.changes, _moment(query.get("at")))
                return {"pages": [_change(each) for each in found]}
            case "requests":
                return {"requests": store.requests()}
            case "deliveries":
                return {"deliveries": store.deliveries()}
        raise _unknown(name)

    def _ordered(self, name: str, body: bytes) -> dict[str, Any]:
        cms = self.cms
        match name:
            case "faults":
                cms.plan = RunningPlan(parsed(FaultPlan, body))
                return cms.plan.plan.model_dump(mode="json")
            case "settings":
                cms.site.set_settings(parsed(CMSSettings, body))
                return cms.site.settings.model_dump(mode="json")
            case "person":
                return _by_hand(cms, parsed(Act, body))
            case "timer":
                return {"published": cms.site.publish_due()}
            case "reset":
                cms.reset()
                return {"reset": True}
            case "stop":
                return self._stop(body)
        raise _unknown(name)

    def _health(self) -> dict[str, Any]:
        store = self.cms.site.store
        return {
            "status": "ok",
            "token": self.token,
            "pid": os.getpid(),
            "started_at": self._started_at,
            "in_flight": self.in_flight,
            "settings": self.cms.site.settings.model_dump(mode="json"),
            "requests": store.operations.total(),
            "live": sum(page.is_public for page in store.pages.values()),
        }

    def _truth(self) -> dict[str, Any]:
        store = self.cms.site.store
        early_for_page, early_for_site = early_requests(store.received)
        by_key = pages_by_key(store.changes)
        return {
            "requests": store.operations.total(),
            "requests_by_operation": dict(store.operations),
            "requests_by_key": dict(Counter(each.key for each in store.received)),
            "faults": dict(store.faults),
            "pages": {key: shallow(pages) for key, pages in by_key.items()},
            "live": sum(page.is_public for page in store.pages.values()),
            "public_doubles": sorted(k for k, p in by_key.items() if p.most_live_at_once > 1),
            "stale_overwrites": [_change(each) for each in stale_overwrites(store.changes)],
            "edits_overwritten": [
                {"edit": _change(edit), "by": _change(change)}
                for edit, change in edits_overwritten(store.changes)
            ],
            "early_for_page": early_for_page,
            "early_for_site": early_for_site,
            "deliveries": [
                {"kind": kind, "name": name, "status": status, "times": times}
                for (kind, name, status), times in store.delivered.items()
            ],
        }

    def _stop(self, body: bytes) -> dict[str, Any]:
        # The token proves that the caller means this instance and not one that has its port now.
        if parsed(StopOrder, body).token != self.token:
            raise ApiError(409, "Another instance is running here.")
        self.stop.set()
        return {"stopping": True}


def _by_hand(cms: CMS, act: Act) -> dict[str, Any]:
    try:
        page = done_by_hand(cms.site, act)
    except RestError as error:
        raise ApiError(error.status, str(error)) from None
    return {"page_id": page.id, "slug": page.slug, "status": page.status}


def _change(change: Change) -> dict[str, Any]:
    mark = change.mark
    return {**shallow(change), "mark": shallow(mark) if mark else None}


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ApiError(400, "at: not a time in ISO 8601") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _unknown(name: str) -> ApiError:
    return ApiError(404, f"Invalid URL (/sandbox/{name})")
