"""What a client gets to see when something goes wrong: replies of faults, and broken replies.

What belongs here: from a fault and a reply to a reply. Nothing is decided about what is stored.
"""

import math
from dataclasses import replace

from content_pipeline.sandbox.cms.faults import Fault, FaultKind
from content_pipeline.sandbox.cms.rest import rest_reply
from content_pipeline.sandbox.deliveries import HTML_PAGE
from content_pipeline.sandbox.wire import Delivery, Reply, Request

DATABASE_DOWN = "<h1>Error establishing a database connection</h1>"
MAINTENANCE = "Briefly unavailable for scheduled maintenance. Check back in a minute."
NOISE = (
    b"<br />\n<b>Warning</b>:  Undefined array key 1 in "
    b"<b>/var/www/html/wp-content/plugins/seo/seo.php</b> on line <b>96</b><br />\n"
)
"""As a plugin leaves it when errors are displayed."""
UNREADABLE = b'{"id":12,"date":"2026-11-30T02:01:58","title":{"raw":"'
"""As an output buffer leaves it that was cut."""


def refused(fault: Fault, request: Request) -> Reply:
    """The reply of a fault that stands alone, whether or not the request was done."""
    headers = {**fault.headers, **_waiting(fault)}
    match fault.kind:
        case FaultKind.HTML:
            body = HTML_PAGE.format(status=fault.status).encode()
            headers = {"content-type": "text/html", **headers}
            return Reply(status=fault.status, headers=headers, body=body)
        case FaultKind.DB_DOWN:
            return _died(request, 500, DATABASE_DOWN, headers)
        case FaultKind.MAINTENANCE:
            return _died(request, 503, MAINTENANCE, headers)
        case FaultKind.DROP:
            return Reply(delivery=Delivery.NONE)
        case FaultKind.HANG:
            return Reply(delivery=Delivery.NONE, seconds=fault.seconds)
        case FaultKind.LATE:
            return Reply(delivery=Delivery.NONE, seconds=fault.hold_s)
        case _:
            data = {"status": fault.status}
            document = {"code": fault.code, "message": fault.message, "data": data}
            return rest_reply(document, fault.status, headers)


def delivered(whole: Reply, fault: Fault | None, request: Request) -> Reply:
    """What ``fault`` leaves of the reply to a request that was done."""
    if fault is None:
        return whole
    match fault.kind:
        case FaultKind.SLOW | FaultKind.FILTERED | FaultKind.ANONYMOUS:
            return whole
        case FaultKind.CUT_BODY:
            return replace(whole, delivery=Delivery.HALF)
        case FaultKind.GARBAGE:
            return replace(whole, body=UNREADABLE)
        case FaultKind.NOISE:
            return replace(whole, body=NOISE + whole.body)
        case _:
            return refused(fault, request)


def _waiting(fault: Fault) -> dict[str, str]:
    wait_s = fault.announced_s
    return {} if wait_s is None else {"retry-after": str(math.ceil(wait_s))}


def _died(request: Request, status: int, message: str, headers: dict[str, str]) -> Reply:
    """How WordPress ends before its API is up: JSON for who speaks JSON, else a page."""
    spoken = request.headers.get("accept", "") + request.headers.get("content-type", "")
    if "application/json" in spoken:
        data = {"status": status}
        document = {"code": "wp_die", "message": message, "data": data, "additional_errors": []}
        return rest_reply(document, status, headers)
    body = f"<!DOCTYPE html>\n<html><body>{message}</body></html>\n".encode()
    headers = {"content-type": "text/html; charset=utf-8", **headers}
    return Reply(status=status, headers=headers, body=body)
