"""Faults between a client and a server that really answers; this file runs inside mitmproxy.

What belongs here: one function per fault, on one exchange. Which fault a paid call meets stands in
the file of the option ``faults``, read at every request. Whatever arrives is a line in the file of
the option ``journal``, written before anything is done about it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mitmproxy import ctx, http  # type: ignore[import-not-found]  # it has a venv of its own

Flow = Any
Fault = Callable[[Flow], Awaitable[None] | None]

HOLD_S = 30.0
"""Longer than any deadline of a test."""
PAGE = b"<html><head><title>Gateway</title></head><body>Please try again later.</body></html>"


def kill(flow: Flow) -> None:
    """Close the client's connection without an answer."""
    flow.kill()


async def hold(_flow: Flow) -> None:
    """Keep the answer back."""
    await asyncio.sleep(HOLD_S)


def page(status: int, **headers: str) -> Fault:
    """Answer with a page of the gateway's own."""

    def fault(flow: Flow) -> None:
        flow.response = http.Response.make(status, PAGE, {"Content-Type": "text/html", **headers})

    return fault


def empty(flow: Flow) -> None:
    """Deliver the head of the answer alone."""
    flow.response.content = b""


def cut_json(flow: Flow) -> None:
    """Deliver half of the answer, under a head that fits the half."""
    flow.response.content = flow.response.content[: len(flow.response.content) // 2]


def short_body(flow: Flow) -> None:
    """Promise the whole answer, deliver half of it and close."""
    whole = len(flow.response.content)
    cut_json(flow)
    flow.response.headers["content-length"] = str(whole)
    flow.response.headers["connection"] = "close"


def gzip_garbage(flow: Flow) -> None:
    """Call the answer compressed and deliver what no decoder takes."""
    flow.response.raw_content = b"\x1f\x8b\x08\x00" + b"\xff" * 200
    flow.response.headers["content-encoding"] = "gzip"
    flow.response.headers["content-length"] = "204"


def redirect_to_itself(flow: Flow) -> None:
    """Send the client to where it already is."""
    flow.response = http.Response.make(308, b"", {"Location": flow.request.url})


BEFORE: dict[str, Fault] = {
    "kill_before": kill,
    "html_429_before": page(429, **{"Retry-After": "Sun, 29 Nov 2026 12:00:30 GMT"}),
    "html_503_before": page(503, **{"Retry-After": "30"}),
    "loop_308_before": redirect_to_itself,
}
"""The provider never sees the call."""

AFTER: dict[str, Fault] = {
    "kill_after": kill,
    "hold_after": hold,
    "html_502_after": page(502),
    "html_524_after": page(524),
    "html_200_after": page(200),
    "empty_after": empty,
    "cut_json_after": cut_json,
    "short_body_after": short_body,
    "gzip_garbage_after": gzip_garbage,
}
"""The provider answered, and billed."""


class Faults:
    """What mitmproxy calls for every exchange."""

    def __init__(self) -> None:
        self._page_jobs: set[str] = set()

    def load(self, loader: Any) -> None:
        """Declare the options."""
        loader.add_option("faults", str, "", "file that says what happens to paid calls")
        loader.add_option("journal", str, "", "file that every request is noted in")

    def request(self, flow: Flow) -> None:
        """Note the request and decide what happens to it."""
        fault = self._fault_for(flow) if flow.request.method == "POST" else None
        flow.metadata["fault"] = fault
        with Path(ctx.options.journal).open("a") as journal:
            noted = {
                "method": flow.request.method,
                "attempt_id": flow.request.headers.get("idempotency-key"),
                "fault": fault,
            }
            journal.write(json.dumps(noted) + "\n")
        if fault in BEFORE:
            BEFORE[fault](flow)

    async def response(self, flow: Flow) -> None:
        """Do to the provider's answer what was decided."""
        fault = flow.metadata["fault"]
        if fault in AFTER:
            waiting = AFTER[fault](flow)
            if waiting is not None:
                await waiting

    def _fault_for(self, flow: Flow) -> str | None:
        plan = json.loads(Path(ctx.options.faults).read_text())
        page_job = json.loads(flow.request.content)["metadata"]["page_job_id"]
        again = page_job in self._page_jobs
        self._page_jobs.add(page_job)
        return None if plan["first"] and again else plan["fault"]


addons = [Faults()]
