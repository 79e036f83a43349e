"""What these tests ask a provider: facts of every shape, prompts and calls through the real SDK."""

import json
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

import openai
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from content_pipeline.core.article import SCHEMA_NAME, article_schema
from content_pipeline.core.prompts import SYSTEM_PROMPT, render_prompt
from content_pipeline.sandbox.client import SandboxClient

SWITZERLAND = {
    "Name": "Switzerland",
    "Capital": "Bern",
    "Continent": "Europe",
    "Area (km²)": "41,285",
    "Population": "8,847,037",
    "Currency": "Swiss franc",
    "Languages": "German, French, Italian, Romansh",
    "Neighbours": "Germany, Italy, France, Austria, Liechtenstein",
    "Internet domain": ".ch",
    "Calling code": "+41",
    "ISO code": "CH",
}
ICELAND = {
    "Name": "Iceland",
    "Capital": "Reykjavík",
    "Continent": "Europe",
    "Area (km²)": "103,000",
    "Population": "383,726",
    "Currency": "Icelandic króna",
    "Languages": "Icelandic",
    "Neighbours": "none",
    "Internet domain": ".is",
    "Calling code": "+354",
    "ISO code": "IS",
}
KETTLE = {
    "Product": "Kettle X1",
    "Price": "€49.90",
    "Dimensions": "20 × 14 × 22 cm",
    "Colour": "red",
    "Description": "Boils a litre in two minutes. Switches itself off! Why wait?",
}


def prompt_for(facts: Mapping[str, str], template: str = "Write about {{ facts }}") -> str:
    return render_prompt(template, {}, facts)


def response_format(schema: Mapping[str, Any] | None = None, **more: Any) -> Any:
    described = {"name": SCHEMA_NAME, "strict": True, "schema": schema or article_schema(), **more}
    return {"type": "json_schema", "json_schema": described}


def body_of(facts: Mapping[str, str] = SWITZERLAND, **more: Any) -> dict[str, Any]:
    """A request's body as the pipeline sends it; ``more`` replaces or adds parameters."""
    body = {
        "model": "gpt-4.1-mini",
        "messages": [
            {"role": "system", "content": SYSTEM_PROMPT},
            {"role": "user", "content": prompt_for(facts)},
        ],
        "response_format": response_format(),
    }
    return body | more


def stored_as(attempt_id: str, page_job_id: str = "page-job-1") -> dict[str, Any]:
    """The parameters that make a completion listable by its attempt."""
    return {"store": True, "metadata": {"attempt_id": attempt_id, "page_job_id": page_job_id}}


def create(sdk: openai.OpenAI, **more: Any) -> ChatCompletion:
    completion: ChatCompletion = sdk.chat.completions.create(**body_of(**more))
    return completion


def content_of(completion: ChatCompletion) -> str:
    content = completion.choices[0].message.content
    assert content is not None
    return content


def raw_request(
    body: bytes, *headers: str, line: str = "POST /v1/chat/completions HTTP/1.1"
) -> bytes:
    """A request as bytes, for what no well-behaved client would send."""
    head = [line, "host: 127.0.0.1", "authorization: Bearer key", *headers]
    if not any("length" in header or "encoding" in header for header in headers):
        head.append(f"content-length: {len(body)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def exchange(box: SandboxClient, *requests: bytes) -> bytes:
    """All the server answers to ``requests`` on one connection that is then closed for writing."""
    with socket.create_connection(("127.0.0.1", box.port), timeout=10) as connection:
        for request in requests:
            connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while data := connection.recv(65536):
            received += data
    return received


def send_and_leave(box: SandboxClient, body: Mapping[str, Any]) -> None:
    """Send a whole request and close the connection without waiting for an answer."""
    with socket.create_connection(("127.0.0.1", box.port), timeout=10) as connection:
        connection.sendall(raw_request(json.dumps(body).encode()))


def wait_until(holds: Callable[[], bool], within_s: float = 15.0) -> None:
    """Return once ``holds``; fail after ``within_s``, which only a stuck process needs."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.01)


def response_body_of(facts: Mapping[str, str] = SWITZERLAND, **more: Any) -> dict[str, Any]:
    """A request for a response as the pipeline sends it; ``more`` replaces or adds parameters."""
    described = {
        "type": "json_schema",
        "name": SCHEMA_NAME,
        "strict": True,
        "schema": article_schema(),
    }
    body = {
        "model": "gpt-4.1-mini",
        "instructions": SYSTEM_PROMPT,
        "input": [{"role": "user", "content": prompt_for(facts)}],
        "text": {"format": described},
        "metadata": {"attempt_id": "attempt-1", "page_job_id": "page-job-1"},
    }
    return body | more


def respond(sdk: openai.OpenAI, **more: Any) -> Response:
    response: Response = sdk.responses.create(**response_body_of(**more))
    return response
