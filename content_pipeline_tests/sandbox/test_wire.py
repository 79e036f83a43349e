import asyncio
import json

import pytest

from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.wire import (
    BODY_LIMIT,
    MalformedRequest,
    Request,
    read_request,
)
from content_pipeline_tests.sandbox.asking import body_of, exchange, raw_request

BODY = json.dumps(body_of()).encode()
LOOK_UP = "GET /v1/chat/completions HTTP/1.1"


def read(data: bytes) -> Request | None:
    async def go() -> Request | None:
        reader = asyncio.StreamReader(limit=65536)
        reader.feed_data(data)
        reader.feed_eof()
        return await read_request(reader)

    return asyncio.run(go())


def test_a_request_is_read_with_path_query_and_headers() -> None:
    request = read(
        b"GET /v1/a%20b/?metadata%5Battempt_id%5D=x%2F1&after=&limit=5 HTTP/1.1\r\n"
        b"X-Thing:  Some Value \r\ncontent-length: 3\r\n\r\nabcdef"
    )
    assert request is not None
    assert (request.method, request.path) == ("GET", "/v1/a b/")
    assert request.query == (("metadata[attempt_id]", "x/1"), ("after", ""), ("limit", "5"))
    assert request.headers == {"x-thing": "Some Value", "content-length": "3"}
    assert request.body == b"abc"


@pytest.mark.parametrize("data", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: x\r\n"])
def test_a_client_that_stops_in_the_head_wanted_nothing(data: bytes) -> None:
    assert read(data) is None


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET / SMTP/1.1\r\n\r\n", 400),
        (b"GET / x HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nabc", 400),
        (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % (BODY_LIMIT + 1), 413),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", 431),
    ],
)
def test_a_request_that_cannot_be_read_is_refused(data: bytes, status: int) -> None:
    with pytest.raises(MalformedRequest) as caught:
        read(data)
    assert caught.value.status == status


def test_one_connection_carries_many_requests(box: SandboxClient) -> None:
    answers = exchange(box, *[raw_request(BODY)] * 3, raw_request(b"", line=LOOK_UP))
    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 4


def test_requests_sent_ahead_are_answered_in_order(box: SandboxClient) -> None:
    wrong = raw_request(b"", line="GET /v1/nowhere HTTP/1.1")
    answers = exchange(box, wrong + raw_request(BODY) + wrong)
    statuses = [part.split(b" ")[0] for part in answers.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"404", b"200", b"404"]


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("connection: close", "POST /v1/chat/completions HTTP/1.1"),
        ("connection: Close", "POST /v1/chat/completions HTTP/1.1"),
        ("accept: */*", "POST /v1/chat/completions HTTP/1.0"),
    ],
)
def test_a_client_can_ask_for_the_end_of_the_connection(
    box: SandboxClient, header: str, line: str
) -> None:
    first = raw_request(BODY, header, line=line)
    assert exchange(box, first + raw_request(BODY)).count(b"HTTP/1.1 200 OK") == 1


def test_an_unreadable_request_is_answered_once_and_harms_nobody_else(box: SandboxClient) -> None:
    assert exchange(box, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert box.truth()["requests"] == 0


def test_the_body_is_as_long_as_announced(box: SandboxClient) -> None:
    head, _, body = exchange(box, raw_request(BODY)).partition(b"\r\n\r\n")
    announced = [line for line in head.split(b"\r\n") if line.startswith(b"content-length: ")]
    assert announced == [b"content-length: %d" % len(body)]
    assert json.loads(body)["object"] == "chat.completion"
