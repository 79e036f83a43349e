"""Every refusal of the contract, and what else can come back; one line each."""

import json
from datetime import UTC, datetime

import pytest

from content_pipeline.adapters.cms.webhook_errors import failure_in
from content_pipeline.adapters.http_calls import Answer, Call
from content_pipeline.core.failures import Failure, FailureClass

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SERVICE = "the webhook at cms.example"
SECRET = "whsec_c2VjcmV0"

A = FailureClass.AUTH
C = FailureClass.CONFLICT
R = FailureClass.REQUEST
T = FailureClass.TRANSIENT
THROTTLED = FailureClass.THROTTLED
TERMINAL = FailureClass.TERMINAL
U = FailureClass.UNCERTAIN

HTML = b"<html><body>Please log in</body></html>"


def answer(status: int, body: object, **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, headers=named, body=raw)


def said(code: object) -> dict[str, object]:
    return {"contract": 1, "error": {"code": code, "message": f"Said to {SECRET}."}}


WORLDS: list[tuple[str, Answer, FailureClass, FailureClass, str]] = [
    # what, answer, as a question, as a write, a word of the advice
    ("signature", answer(401, said("signature")), A, A, "NTP"),
    ("401", answer(401, HTML), A, A, "signing key"),
    ("firewall", answer(403, HTML), A, A, "firewall"),
    ("changed", answer(409, said("changed")), C, C, "not what was seen"),
    ("exists", answer(409, said("exists")), C, C, "exists already"),
    ("taken", answer(409, said("taken")), C, C, "exists already"),
    ("409", answer(409, HTML), C, C, "not what was seen"),
    ("412", answer(412, b""), C, C, "not what was seen"),
    ("refused", answer(422, said("refused")), TERMINAL, TERMINAL, "for good"),
    ("unsupported", answer(422, said("unsupported")), R, R, "capabilities"),
    ("unsupported, 404", answer(404, said("unsupported")), R, R, "capabilities"),
    ("nothing written", answer(500, said("not_written")), T, T, "says that nothing"),
    ("nothing written, 503", answer(503, said("not_written")), T, T, "says that nothing"),
    ("404", answer(404, HTML), R, R, "correct the address"),
    ("405", answer(405, b""), R, R, "correct the address"),
    ("400", answer(400, said("x")), R, R, "refused"),
    ("413", answer(413, b""), R, R, "too large"),
    ("429", answer(429, b"", retry_after="7"), THROTTLED, THROTTLED, "less traffic"),
    ("maintenance", answer(503, b"", retry_after="7"), THROTTLED, THROTTLED, "maintenance"),
    ("503", answer(503, b""), T, U, "failed"),
    ("500", answer(500, said("oops")), T, U, "failed"),
    ("504", answer(504, HTML), T, U, "proxy"),
    ("408", answer(408, b""), T, U, "gave up"),
    ("redirect", answer(308, b""), R, R, "not followed"),
    ("login page", answer(200, HTML), T, U, "login page"),
    ("another JSON", answer(200, {"ok": True}), T, U, "login page"),
    ("an odd code", answer(500, said({"a": 1})), T, U, "failed"),
    ("an odd error", answer(500, {"error": "x"}), T, U, "failed"),
]
NAMES = [world[0] for world in WORLDS]


def failure(found: Answer, method: str) -> Failure:
    call = Call(doing="publishing /austria/", method=method, path="/pages/a")
    return failure_in(found, call, service=SERVICE, now=NOW)


@pytest.mark.parametrize(("_name", "found", "reading", "writing", "advice"), WORLDS, ids=NAMES)
def test_an_answer_has_a_class_and_says_what_to_do(
    _name: str, found: Answer, reading: FailureClass, writing: FailureClass, advice: str
) -> None:
    assert failure(found, "GET").failure_class is reading
    told = failure(found, "PUT")
    assert told.failure_class is writing
    assert told.message.startswith(f"{SERVICE}, publishing /austria/: answered HTTP")
    assert advice in told.message


@pytest.mark.parametrize(("_name", "found", "_r", "_w", "_a"), WORLDS, ids=NAMES)
def test_nothing_that_the_other_side_wrote_is_repeated(
    _name: str, found: Answer, _r: FailureClass, _w: FailureClass, _a: str
) -> None:
    told = f"{failure(found, 'PUT')}"
    assert SECRET not in told
    assert "Please log in" not in told


def test_an_announced_wait_is_passed_on() -> None:
    assert failure(answer(429, b"", retry_after="7"), "PUT").retry_after_s == 7
