"""Talking to a running sandbox CMS about itself, from tests, benches and the supervisor.

What belongs here: the client side of ``controls``.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline.sandbox.cms.people import Act
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.control_calls import HOST, control_call


class CMSClient:
    """The CMS on one port of this machine. Every method raises CallFailed and nothing else."""

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def base_url(self) -> str:
        """The site's address, without a trailing slash."""
        return f"http://{HOST}:{self.port}"

    def health(self) -> dict[str, Any]:
        """Token, pid, settings, counts and requests in flight."""
        return self._call("GET", "health")

    def truth(self) -> dict[str, Any]:
        """Pages by key, doubles, stale and lost texts, requests, waits and deliveries."""
        return self._call("GET", "truth")

    def history(self) -> list[dict[str, Any]]:
        """Every change of every page, in order."""
        changes: list[dict[str, Any]] = self._call("GET", "history")["changes"]
        return changes

    def live(self, at: datetime | None = None) -> list[dict[str, Any]]:
        """The pages that are public now, or were ``at`` an instant: the change each stood by."""
        query = f"?{urlencode({'at': at.isoformat()})}" if at else ""
        pages: list[dict[str, Any]] = self._call("GET", f"live{query}")["pages"]
        return pages

    def requests(self) -> list[dict[str, Any]]:
        """Every request so far: time, operation, key, fault and the wait that was announced."""
        received: list[dict[str, Any]] = self._call("GET", "requests")["requests"]
        return received

    def deliveries(self) -> list[dict[str, Any]]:
        """What IndexNow, deploy hooks, the cache and the webhooks were told, with headers."""
        told: list[dict[str, Any]] = self._call("GET", "deliveries")["deliveries"]
        return told

    def set_faults(self, plan: FaultPlan) -> None:
        """Replace the plan; its counters start anew."""
        self._call("POST", "faults", plan.model_dump(mode="json"))

    def set_settings(self, settings: CMSSettings) -> None:
        """Replace the settings for everything that comes from now on."""
        self._call("POST", "settings", settings.model_dump(mode="json"))

    def by_hand(self, act: Act) -> dict[str, Any]:
        """Let a person do something to a page; its id, slug and status afterwards."""
        return self._call("POST", "person", act.model_dump(mode="json"))

    def run_timer(self) -> int:
        """Let planned pages go live whose date has come; how many did."""
        return int(self._call("POST", "timer", {})["published"])

    def reset(self) -> None:
        """Forget everything that happened, all faults, and late writes still to come."""
        self._call("POST", "reset", {})

    def stop(self, token: str) -> None:
        """End the instance of this ``token``; requests in flight have half a second to finish."""
        self._call("POST", "stop", {"token": token})

    def _call(
        self, method: str, name: str, document: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return control_call("CMS", self.port, method, name, document)
