"""What a client gets to see: replies with a document, and what faults make of them.

What belongs here: from a completion or response and a fault to a reply. Nothing is decided about
billing.
"""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from email.utils import formatdate
from typing import Any

from content_pipeline.sandbox.chat_requests import ApiError
from content_pipeline.sandbox.faults import BEFORE_GENERATING, Fault, FaultKind
from content_pipeline.sandbox.wire import Delivery, Reply

HTML_PAGE = (
    "<html>\r\n<head><title>{status}</title></head>\r\n<body>\r\n<center><h1>{status}</h1></center>"
    "\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
)
"""As a proxy between client and provider would write it."""


def json_reply(document: object, status: int = 200) -> Reply:
    """A reply with ``document`` as its JSON body."""
    return Reply(
        status=status,
        headers={"content-type": "application/json"},
        body=json.dumps(document, separators=(",", ":")).encode(),
    )


def refused(fault: Fault) -> Reply:
    """The reply of a fault that does not need a completion."""
    if fault.kind in (FaultKind.STATUS, FaultKind.FAILED):
        error = ApiError(fault.status, fault.message, kind=fault.type, code=fault.code)
        reply = json_reply(error.envelope, fault.status)
        return replace(reply, headers={**reply.headers, **fault.headers, **_waiting(fault)})
    if fault.kind is FaultKind.HTML:
        headers = {"content-type": "text/html", **fault.headers, **_waiting(fault)}
        body = HTML_PAGE.format(status=fault.status).encode()
        return Reply(status=fault.status, headers=headers, body=body)
    return Reply(delivery=Delivery.NONE)


def _waiting(fault: Fault) -> dict[str, str]:
    """The announced wait in the asked style, never shorter than ``retry_after_s``."""
    wait_s = fault.announced_s
    if wait_s is None:
        return {}
    match fault.retry_after_style:
        case "seconds":
            return {"retry-after": str(math.ceil(wait_s))}
        case "float":
            return {"retry-after": f"{math.ceil(wait_s * 1000) / 1000:.3f}"}
        case "ms":
            return {"retry-after-ms": str(math.ceil(wait_s * 1000))}
        case "http_date":
            return {"retry-after": formatdate(math.ceil(time.time() + wait_s), usegmt=True)}


def delivered(completion: Mapping[str, Any], fault: Fault | None) -> Reply:
    """The reply that carries ``completion`` (or embeddings), or what ``fault`` leaves of it."""
    whole = json_reply(completion)
    if fault is None:
        return whole
    if fault.kind in BEFORE_GENERATING:
        return refused(fault)
    match fault.kind:
        case FaultKind.DROP_AFTER:
            return Reply(delivery=Delivery.NONE)
        case FaultKind.HANG:
            return Reply(delivery=Delivery.NONE, seconds=fault.seconds)
        case FaultKind.CUT_BODY:
            return replace(whole, delivery=Delivery.HALF)
        case FaultKind.DRIP:
            return replace(whole, delivery=Delivery.DRIPPED, seconds=fault.seconds)
        case FaultKind.EMPTY:
            return replace(whole, body=b"")
        case FaultKind.NO_CHOICES:
            named = (name for name in ("data", "output") if name in completion)
            answers = next(named, "choices")
            return json_reply({**completion, answers: []})
        case FaultKind.NULL_USAGE:
            return json_reply({**completion, "usage": None})
        case _:
            # The model's own failings are in the completion already; SLOW delayed it.
            return whole
