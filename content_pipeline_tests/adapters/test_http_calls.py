import gzip
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from content_pipeline.adapters.deadline_transport import MAX_BODY_BYTES
from content_pipeline.adapters.http_calls import MAX_SENT_BYTES, Answer, Call, HTTPService
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline_tests.adapters.llm.loopback import (
    Behaviour,
    Received,
    Server,
    Wire,
    answer,
    close_at_once,
    cut_body,
    drip_body,
    drip_headers,
    free_port,
    garbage,
    hang_after_headers,
    hang_before_headers,
    head,
    huge_body,
    redirect_to_itself,
    reset_at_once,
    reset_in_body,
    serving,
)

SECRET = "Basic c2VjcmV0"


def service(base_url: str, *, deadline_s: float = 5.0, at_once: int | None = None) -> HTTPService:
    return HTTPService(
        base_url,
        name="The CMS",
        headers={"Authorization": SECRET},
        deadline_s=deadline_s,
        at_once=at_once,
    )


def call(method: str = "POST", **more: object) -> Call:
    return Call(doing="publishing /austria/", method=method, path="/pages", **more)  # type: ignore[arg-type]


def failure(asked: HTTPService, one: Call) -> Failure:
    with pytest.raises(CallFailed) as failed:
        asked.send(one)
    asked.close()
    assert SECRET not in str(failed.value)
    assert failed.value.__context__ is None or failed.value.__suppress_context__
    return failed.value.failure


def test_an_answer_comes_whole_whatever_its_status() -> None:
    with serving(answer(503, b'{"a": 1}', {"Retry-After": "7"})) as server:
        asked = service(_root(server))
        found = asked.send(call(document={"title": "A"}))
        asked.close()
    assert (found.status, found.document()) == (503, {"a": 1})
    assert found.headers["retry-after"] == "7"


def test_one_call_is_one_request_with_our_headers_only() -> None:
    seen: list[Received] = []

    def behaviour(wire: Wire, request: Received) -> None:
        seen.append(request)
        answer(200, b"{}")(wire, request)

    with serving(behaviour) as server:
        asked = service(_root(server))
        asked.send(call(params={"a": "ä b"}, document={"title": "Ä"}, headers={"If-Match": '"1"'}))
        asked.close()
    (request,) = seen
    assert request.target == "/pages?a=%C3%A4+b"
    assert request.json() == {"title": "Ä"}
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert headers["if-match"] == '"1"'
    assert headers["user-agent"] == "content-pipeline"
    assert headers["accept-encoding"] == "identity"
    assert headers["authorization"] == SECRET


def test_what_signs_a_request_sees_exactly_what_is_sent() -> None:
    signed: list[tuple[str, str, bytes]] = []

    def sign(method: str, target: str, body: bytes) -> dict[str, str]:
        signed.append((method, target, body))
        return {"Signature": str(len(signed))}

    with serving(answer(200, b"{}")) as server:
        asked = HTTPService(
            _root(server) + "/cms", name="The CMS", headers={}, deadline_s=5, sign=sign
        )
        asked.send(call(params={"a": "ä /&"}, document={"title": "Ä"}))
        asked.send(call("GET"))
        asked.close()
    sent = [(each.method, each.target, each.body) for each in server.received]
    assert sent == signed
    assert [each.headers["signature"] for each in server.received] == ["1", "2"]


LOST: list[tuple[str, Behaviour]] = [
    ("reset at once", reset_at_once),
    ("closed at once", close_at_once),
    ("garbage", garbage),
    ("cut body", cut_body),
    ("reset in the body", reset_in_body),
    ("a body without end", huge_body),
    ("hangs", hang_before_headers),
    ("hangs after its headers", hang_after_headers),
    ("drips its headers", drip_headers),
    ("drips its body", drip_body),
]


@pytest.mark.parametrize(("_name", "behaviour"), LOST, ids=[name for name, _ in LOST])
@pytest.mark.parametrize(
    ("method", "meant"),
    [
        ("GET", FailureClass.TRANSIENT),
        ("POST", FailureClass.UNCERTAIN),
        ("DELETE", FailureClass.UNCERTAIN),
    ],
)
def test_without_a_whole_answer_a_write_is_uncertain_and_a_question_is_not(
    _name: str, behaviour: Behaviour, method: str, meant: FailureClass
) -> None:
    deadline_s = 5.0 if behaviour is huge_body else 0.4
    with serving(behaviour) as server:
        found = failure(service(_root(server), deadline_s=deadline_s), call(method))
    assert found.failure_class is meant
    assert found.message.startswith("The CMS, publishing /austria/: ")


def test_a_refused_connection_is_never_sent() -> None:
    found = failure(service(f"http://127.0.0.1:{free_port()}"), call())
    assert found.failure_class is FailureClass.NOT_SENT


def test_no_more_requests_than_allowed_are_out_at_once_and_all_are_answered() -> None:
    lock, now, most = threading.Lock(), [0], [0]
    together = threading.Barrier(2)

    def slow(wire: Wire, request: Received) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait(30)
        time.sleep(0.05)  # a third would come now
        with lock:
            now[0] -= 1
        answer(200, b"{}")(wire, request)

    with serving(slow) as server, ThreadPoolExecutor(8) as pool:
        asked = service(_root(server), at_once=2)
        answers = list(pool.map(asked.send, [call() for _ in range(8)]))
        asked.close()
    assert [found.status for found in answers] == [200] * 8
    assert most == [2]


def test_a_request_that_fails_gives_its_turn_to_the_next() -> None:
    left = [reset_at_once, answer(200, b"{}")]
    with serving(lambda wire, request: left.pop(0)(wire, request)) as server:
        asked = service(_root(server), at_once=1)
        with pytest.raises(CallFailed):
            asked.send(call())
        assert asked.send(call()).status == 200
        asked.close()


def test_a_host_without_an_address_is_never_sent() -> None:
    found = failure(service("http://no-such-host.invalid"), call())
    assert found.failure_class is FailureClass.NOT_SENT


def test_an_address_of_another_kind_is_refused() -> None:
    assert failure(service("ftp://example.com"), call()).failure_class is FailureClass.REQUEST


def test_a_redirect_is_an_answer_and_not_followed() -> None:
    with serving(redirect_to_itself) as server:
        asked = service(_root(server))
        found = asked.send(call("GET"))
        asked.close()
        assert 300 <= found.status < 400
        assert len(server.received) == 1


def test_a_document_beyond_the_limit_is_not_sent() -> None:
    with serving(answer(200, b"{}")) as server:
        found = failure(service(_root(server)), call(document={"a": "x" * MAX_SENT_BYTES}))
        assert server.received == []
    assert found.failure_class is FailureClass.REQUEST


def test_what_unpacks_to_more_than_the_limit_is_not_unpacked() -> None:
    packed = gzip.compress(b"x" * (MAX_BODY_BYTES + 1))

    def behaviour(wire: Wire, _request: Received) -> None:
        length = {"Content-Encoding": "gzip", "Content-Length": str(len(packed))}
        wire.send(head(200, length) + packed)

    with serving(behaviour) as server:
        asked = service(_root(server))
        found = asked.send(call("GET"))
        asked.close()
    assert found.body == packed
    with pytest.raises(ValueError):
        found.document()


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 200_000, b"\xff", b'{"a": 1} x'])
def test_what_is_no_json_is_no_document(body: bytes) -> None:
    with pytest.raises(ValueError):
        Answer(status=200, headers={}, body=body).document()


def _root(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"
