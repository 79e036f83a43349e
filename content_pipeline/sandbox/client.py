"""Talking to a running sandbox provider about itself, from tests, benches and the supervisor.

What belongs here: the client side of ``controls``.
"""

from collections.abc import Mapping
from typing import Any

from content_pipeline.sandbox.control_calls import HOST, control_call
from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline.sandbox.settings import ProviderSettings


class SandboxClient:
    """The provider on one port of this machine. Every method raises CallFailed and nothing else."""

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def base_url(self) -> str:
        """What the openai client takes as its ``base_url``."""
        return f"http://{HOST}:{self.port}/v1"

    def health(self) -> dict[str, Any]:
        """Token, pid, settings, counts and requests in flight."""
        return self._call("GET", "health")

    def truth(self) -> dict[str, Any]:
        """Everything received and billed so far."""
        return self._call("GET", "truth")

    def requests(self) -> list[dict[str, Any]]:
        """Every request so far: time, operation, ids, fault and the wait that was announced."""
        received: list[dict[str, Any]] = self._call("GET", "requests")["requests"]
        return received

    def set_faults(self, plan: FaultPlan) -> None:
        """Replace the plan; its counters start anew."""
        self._call("POST", "faults", plan.model_dump(mode="json"))

    def set_settings(self, settings: ProviderSettings) -> None:
        """Replace the settings for everything that comes from now on."""
        self._call("POST", "settings", settings.model_dump(mode="json"))

    def reset(self) -> None:
        """Forget everything received, billed and stored, and all faults."""
        self._call("POST", "reset", {})

    def stop(self, token: str) -> None:
        """End the instance of this ``token``; requests in flight have half a second to finish."""
        self._call("POST", "stop", {"token": token})

    def _call(
        self, method: str, name: str, document: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return control_call("provider", self.port, method, name, document)
