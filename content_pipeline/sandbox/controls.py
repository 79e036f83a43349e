"""The sandbox's endpoints about itself, below ``/sandbox/``: health, truth, faults, settings.

What belongs here: what tests, benches and the supervisor ask. None of it is part of any real
provider's API, none of it is journaled, and faults never reach it.
"""

import asyncio
import os
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from content_pipeline.sandbox.chat_requests import ApiError
from content_pipeline.sandbox.deliveries import json_reply
from content_pipeline.sandbox.faults import FaultPlan, RunningPlan
from content_pipeline.sandbox.journal import now
from content_pipeline.sandbox.provider import Provider
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline.sandbox.wire import Reply, Request

Document = TypeVar("Document", bound=BaseModel)


class StopOrder(BaseModel):
    """The token that proves which instance is meant."""

    token: str


class Controls:
    """What can be asked of and done to one running provider."""

    def __init__(self, provider: Provider, token: str) -> None:
        self.provider = provider
        self.token = token
        self._started_at = now()
        self.stop = asyncio.Event()
        """Set when the provider was asked to end."""
        self.in_flight = 0
        """Requests to the provider received and not yet answered; kept by the server."""

    @property
    def idle_exit_s(self) -> float:
        """End after so many seconds without a request; 0: never."""
        return self.provider.settings.idle_exit_s

    async def serve(self, request: Request) -> Reply:
        """The provider's reply to a request."""
        return await self.provider.answer(request)

    def answer(self, request: Request) -> Reply:
        """The reply to a request below ``/sandbox/``."""
        try:
            return json_reply(self._routed(request))
        except ApiError as error:
            return json_reply(error.envelope, error.status)

    def _routed(self, request: Request) -> dict[str, Any]:
        provider = self.provider
        match (request.method, request.path.removeprefix("/sandbox").strip("/")):
            case ("GET", "health"):
                return self._health()
            case ("GET", "truth"):
                return provider.journal.truth()
            case ("GET", "requests"):
                return {"requests": provider.journal.received()}
            case ("POST", "faults"):
                provider.plan = RunningPlan(parsed(FaultPlan, request.body))
                return provider.plan.plan.model_dump(mode="json")
            case ("POST", "settings"):
                provider.settings = parsed(ProviderSettings, request.body)
                return provider.settings.model_dump(mode="json")
            case ("POST", "reset"):
                provider.reset()
                return {"reset": True}
            case ("POST", "stop"):
                return self._stop(request.body)
        raise ApiError(404, f"Invalid URL ({request.method} {request.path})")

    def _health(self) -> dict[str, Any]:
        return {
            "status": "ok",
            "token": self.token,
            "pid": os.getpid(),
            "started_at": self._started_at,
            "in_flight": self.in_flight,
            "settings": self.provider.settings.model_dump(mode="json"),
            **self.provider.journal.counts(),
        }

    def _stop(self, body: bytes) -> dict[str, Any]:
        # The token proves that the caller means this instance and not one that has its port now.
        if parsed(StopOrder, body).token != self.token:
            raise ApiError(409, "Another instance is running here.")
        self.stop.set()
        return {"stopping": True}


def parsed(model: type[Document], body: bytes) -> Document:
    """The document in ``body``. Raises ApiError that tells what is wrong with it, and where."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        places = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise ApiError(400, "; ".join(places)) from None
