"""Faults between a client and a server that really answers; runs inside mitmproxy.

What belongs here: one fault per function, on a flow. Which fault a request meets stands in the
file of the option ``faults``, read at every request: ``{"fault": NAME, "first": true}``; ``first``
leaves everything after the first request of a page job alone. Every request that arrives is a
line in the file of the option ``journal``, written before anything is done about it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mitmproxy import ctx, http  # type: ignore[import-not-found]  # lives in a venv of its own

Flow = Any
HOLD_S = 30.0
PAGE = b"<html><head><title>Gateway</title></head><body>Please try again later.</body></html>"


def kill(flow: Flow) -> None:
    flow.kill()


async def hold(_flow: Flow) -> None:
    await asyncio.sleep(HOLD_S)


def page(status: int, **headers: str) -> Callable[[Flow], None]:
    def fault(flow: Flow) -> None:
        fields = {"Content-Type": "text/html", **headers}
        flow.response = http.Response.make(status, PAGE, fields)

    return fault


def cut_json(flow: Flow) -> None:
    flow.response.content = flow.response.content[: len(flow.response.content) // 2]


def short_body(flow: Flow) -> None:
    whole = flow.response.content
    flow.response.content = whole[: len(whole) // 2]
    flow.response.headers["content-length"] = str(len(whole))
    flow.response.headers["connection"] = "close"


def gzip_garbage(flow: Flow) -> None:
    flow.response.raw_content = b"\x1f\x8b\x08\x00" + b"\xff" * 200
    flow.response.headers["content-encoding"] = "gzip"
    flow.response.headers["content-length"] = "204"


def redirect_loop(flow: Flow) -> None:
    flow.response = http.Response.make(308, b"", {"Location": flow.request.url})


BEFORE = {"kill_before": kill, "html_429": page(429, **{"Retry-After": "30"}), "loop_308": redirect_loop}
AFTER = {"kill_after": kill, "hold": hold, "html_502": page(502), "html_524": page(524), "html_200": page(200),
 "cut_json": cut_json, "short_body": short_body, "gzip_garbage": gzip_garbage}


class Faults:
    def load(self, loader: Any) -> None:
        loader.add_option("faults", str, "", "file that says which fault happens")
        loader.add_option("journal", str, "", "file that every request is noted in")

    def request(self, flow: Flow) -> None:
        name = json.loads(Path(ctx.options.faults).read_text())["fault"]
        flow.metadata["fault"] = name
        with open(ctx.options.journal,"a") as f: f.write(json.dumps({"method":flow.request.method,"path":flow.request.path,"fault":name})+"\n")
        if flow.request.method == "POST" and name in BEFORE:
            BEFORE[name](flow)

    async def response(self, flow: Flow) -> None:
        name = flow.metadata["fault"]
        if flow.request.method == "POST" and name in AFTER:
            r = AFTER[name](flow)
            if r is not None: await r


addons = [Faults()]
