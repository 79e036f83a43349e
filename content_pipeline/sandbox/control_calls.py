"""One question to a sandbox server about itself, whatever service it imitates.

What belongs here: the exchange below ``/sandbox/`` and its failures. Plain ``http.client``: it
knows no proxies, so a proxy in the environment cannot come between two processes on one machine.
"""

import http.client
import json
from collections.abc import Mapping
from typing import Any

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

HOST = "127.0.0.1"
"""The only address the sandbox listens on."""
TIMEOUT_S = 5.0
"""A control call takes about a millisecond; a machine under full load may need a second."""


def control_call(
    what: str, port: int, method: str, name: str, document: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The answer of the sandbox's ``what`` on ``port``. Raises CallFailed and nothing else."""
    connection = http.client.HTTPConnection(HOST, port, timeout=TIMEOUT_S)
    body = None if document is None else json.dumps(document)
    place = f"the sandbox {what} on port {port} did not do {name!r}"
    try:
        connection.request(method, f"/sandbox/{name}", body)
        response = connection.getresponse()
        status, answer = response.status, json.loads(response.read())
    except ConnectionRefusedError:
        raise _failed(FailureClass.NOT_SENT, f"{place}: nothing listens there") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = f"{place}: no usable answer ({type(error).__name__})"
        raise _failed(FailureClass.UNCERTAIN, reason) from None
    finally:
        connection.close()
    if status != http.HTTPStatus.OK or not isinstance(answer, dict):
        envelope = answer.get("error") if isinstance(answer, dict) else None
        told = envelope.get("message") if isinstance(envelope, dict) else None
        reason = f"{place}: {told or f'status {status}'}"
        raise _failed(FailureClass.REQUEST, reason, status)
    return answer


def _failed(failure_class: FailureClass, message: str, status: int | None = None) -> CallFailed:
    return CallFailed(Failure(failure_class=failure_class, message=message, http_status=status))
