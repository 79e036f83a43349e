"""Conversations with real services, kept in files, and a loopback server that holds them again.

A conversation is recorded while a scenario runs against the real service. When it is replayed,
each request of the adapter must be, in order, one that the real service was sent, and gets the
answer that it gave. So what is sent, and how answers are read, is tested without the service.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from content_pipeline_tests.adapters.llm.loopback import Received, Wire, answer, serving
from content_pipeline_tests.real_cms.node_service import ask

FOLDER = Path(__file__).parent / "answers"

NOISE = frozenset({"authors", "primary_author", "tiers", "count"})
"""Members of answers that no adapter reads and that take most of the room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and the answer to it."""

    request: str
    """Method and target."""
    sent: Any
    """The JSON of its body."""
    status: int
    date: str
    body: Any
    """The JSON of the answer; a text when it is none."""


def load(service: str, scenario: str) -> list[Exchange]:
    """A recorded conversation."""
    document = json.loads((FOLDER / f"{service}.json").read_text(encoding="utf-8"))
    return [Exchange(**each) for each in document[scenario]]


def save(service: str, conversations: Mapping[str, list[Exchange]]) -> None:
    """Replace what was recorded of a service."""
    document = {
        name: [asdict(exchange) for exchange in exchanges]
        for name, exchanges in conversations.items()
    }
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (FOLDER / f"{service}.json").write_text(text + "\n", encoding="utf-8")


@contextmanager
def recording(port: int) -> Iterator[tuple[str, list[Exchange]]]:
    """An address that passes everything on to ``port``, and what went by."""
    heard: list[Exchange] = []

    def pass_on(wire: Wire, request: Received) -> None:
        own = ("host", "content-length", "connection")
        headers = {name: value for name, value in request.headers.items() if name not in own}
        sent = request.json() if request.body else None
        told = ask(port, request.method, request.target, sent, headers)
        heard.append(
            Exchange(
                request=f"{request.method} {request.target}",
                sent=sent,
                status=told.status,
                date=told.headers.get("date", ""),
                body=_json_or_text(told.body),
            )
        )
        _reply(wire, request, heard[-1])

    with serving(pass_on) as server:
        yield f"http://127.0.0.1:{server.port}", heard


@contextmanager
def replaying(exchanges: list[Exchange]) -> Iterator[str]:
    """An address that holds the conversation again; all of it must be held."""
    left = list(exchanges)
    strange: list[str] = []

    def repeat(wire: Wire, request: Received) -> None:
        line, sent = f"{request.method} {request.target}", request.json() if request.body else None
        if not left or (left[0].request, left[0].sent) != (line, sent):
            strange.append(f"{line} {sent!r} instead of {left[:1]}")
            answer(500, b"{}")(wire, request)
            return
        _reply(wire, request, left.pop(0))

    with serving(repeat) as server:
        yield f"http://127.0.0.1:{server.port}"
    assert not strange, strange
    assert not left, f"never asked: {[each.request for each in left]}"


def _reply(wire: Wire, request: Received, exchange: Exchange) -> None:
    text = exchange.body if isinstance(exchange.body, str) else json.dumps(exchange.body)
    answer(exchange.status, text.encode(), {"Date": exchange.date})(wire, request)


def _json_or_text(body: bytes) -> Any:
    try:
        return _without_noise(json.loads(body))
    except ValueError:
        return body.decode(errors="replace")


def _without_noise(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_noise(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_noise(item) for name, item in value.items() if name not in NOISE}
    return value
