"""Talking to a running sandbox provider about itself, from tests, benches and the supervisor.

What belongs here: the client side of ``controls``. Plain ``http.client``: it knows no proxies, so
a proxy in the environment cannot come between two processes on one machine.
"""

import http.client
import json
from collections.abc import Mapping
from typing import Any

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline.sandbox.settings import ProviderSettings

HOST = "127.0.0.1"
"""The only address the sandbox listens on."""
TIMEOUT_S = 5.0
"""A control call takes about a millisecond; a machine under full load may need a second."""


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
        connection = http.client.HTTPConnection(HOST, self.port, timeout=TIMEOUT_S)
        body = None if document is None else json.dumps(document)
        try:
            connection.request(method, f"/sandbox/{name}", body)
            response = connection.getresponse()
            status, answer = response.status, json.loads(response.read())
        except ConnectionRefusedError:
            raise self._failed(FailureClass.NOT_SENT, name, "nothing listens there") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = f"no usable answer ({type(error).__name__})"
            raise self._failed(FailureClass.UNCERTAIN, name, reason) from None
        finally:
            connection.close()
        if status != http.HTTPStatus.OK or not isinstance(answer, dict):
            envelope = answer.get("error") if isinstance(answer, dict) else None
            told = envelope.get("message") if isinstance(envelope, dict) else None
            raise self._failed(FailureClass.REQUEST, name, told or f"status {status}", status)
        return answer

    def _failed(
        self, failure_class: FailureClass, name: str, reason: str, status: int | None = None
    ) -> CallFailed:
        message = f"the sandbox provider on port {self.port} did not do {name!r}: {reason}"
        return CallFailed(Failure(failure_class=failure_class, message=message, http_status=status))
