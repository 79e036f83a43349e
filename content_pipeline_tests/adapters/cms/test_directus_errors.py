"""Every answer of a Directus that was seen, or can be; one line each."""

import json
from datetime import UTC, datetime

import pytest

from content_pipeline.adapters.cms.directus_errors import error_code, failure_in
from content_pipeline.adapters.http_calls import Answer, Call
from content_pipeline.core.failures import Failure, FailureClass

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SERVICE = "Directus at cms.example"
SECRET = "a-static-token"

A = FailureClass.AUTH
C = FailureClass.CONFLICT
R = FailureClass.REQUEST
T = FailureClass.TRANSIENT
THROTTLED = FailureClass.THROTTLED
U = FailureClass.UNCERTAIN

HTML = b"<html><body>Please log in</body></html>"


def answer(status: int, body: object, **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, headers=named, body=raw)


def said(code: object) -> dict[str, object]:
    return {"errors": [{"message": f"Said to {SECRET}.", "extensions": {"code": code}}]}


WORLDS: list[tuple[str, Answer, FailureClass, FailureClass, str]] = [
    # what, answer, as a question, as a write, a word of the advice
    ("bad token", answer(401, said("INVALID_CREDENTIALS")), A, A, "static token"),
    ("invalid token", answer(403, said("INVALID_TOKEN")), A, A, "static token"),
    ("expired", answer(401, said("TOKEN_EXPIRED")), A, A, "static token"),
    ("suspended", answer(401, said("USER_SUSPENDED")), A, A, "active user"),
    ("no right, or no field", answer(403, said("FORBIDDEN")), A, A, "cms.fields"),
    ("401 of a proxy", answer(401, HTML), A, A, "credentials"),
    ("firewall", answer(403, HTML), A, A, "firewall"),
    ("known", answer(400, said("RECORD_NOT_UNIQUE")), C, C, "exists already"),
    ("409", answer(409, b""), C, C, "not what was seen"),
    ("validation", answer(400, said("FAILED_VALIDATION")), R, R, "a field refuses"),
    ("too long", answer(400, said("VALUE_TOO_LONG")), R, R, "a field refuses"),
    ("out of range", answer(400, said("VALUE_OUT_OF_RANGE")), R, R, "a field refuses"),
    ("not null", answer(400, said("NOT_NULL_VIOLATION")), R, R, "a field refuses"),
    ("too large", answer(400, said("INVALID_PAYLOAD")), R, R, "MAX_PAYLOAD_SIZE"),
    ("bad query", answer(400, said("INVALID_QUERY")), R, R, "refused"),
    ("413", answer(413, b""), R, R, "too large"),
    ("no route", answer(404, said("ROUTE_NOT_FOUND")), R, R, "correct the address"),
    ("404", answer(404, HTML), R, R, "correct the address"),
    ("rate", answer(429, said("REQUESTS_EXCEEDED"), retry_after="1"), THROTTLED, THROTTLED, "less"),
    ("pressure", answer(503, said("UNDER_PRESSURE")), THROTTLED, THROTTLED, "did not begin"),
    ("503, wait", answer(503, HTML, retry_after="60"), THROTTLED, THROTTLED, "maintenance"),
    ("503", answer(503, said("SERVICE_UNAVAILABLE")), T, U, "failed"),
    ("500", answer(500, said("INTERNAL_SERVER_ERROR")), T, U, "failed"),
    ("502", answer(502, HTML), T, U, "proxy"),
    ("408", answer(408, b""), T, U, "gave up"),
    ("redirect", answer(301, b""), R, R, "not followed"),
    ("login page", answer(200, HTML), T, U, "login page"),
    ("nothing", answer(204, b""), T, U, "login page"),
    ("another JSON", answer(200, {"ok": True}), T, U, "login page"),
    ("an odd code", answer(500, said(["x"])), T, U, "failed"),
    ("odd errors", answer(500, {"errors": [None]}), T, U, "failed"),
    ("no errors", answer(500, {"errors": []}), T, U, "failed"),
    ("no extensions", answer(500, {"errors": [{}]}), T, U, "failed"),
]
NAMES = [world[0] for world in WORLDS]


def failure(found: Answer, method: str) -> Failure:
    call = Call(doing="publishing /austria/", method=method, path="/items/pages")
    return failure_in(found, call, service=SERVICE, now=NOW)


@pytest.mark.parametrize(("_name", "found", "reading", "writing", "advice"), WORLDS, ids=NAMES)
def test_an_answer_has_a_class_and_says_what_to_do(
    _name: str, found: Answer, reading: FailureClass, writing: FailureClass, advice: str
) -> None:
    assert failure(found, "GET").failure_class is reading
    for method in ("POST", "PATCH", "DELETE"):
        told = failure(found, method)
        assert told.failure_class is writing
        assert told.message.startswith(f"{SERVICE}, publishing /austria/: answered HTTP")
        assert advice in told.message


@pytest.mark.parametrize(("_name", "found", "_r", "_w", "_a"), WORLDS, ids=NAMES)
def test_nothing_that_the_other_side_wrote_is_repeated(
    _name: str, found: Answer, _r: FailureClass, _w: FailureClass, _a: str
) -> None:
    told = f"{failure(found, 'POST')}"
    assert SECRET not in told
    assert "Please log in" not in told


def test_only_a_code_of_directus_is_one() -> None:
    assert error_code(answer(400, said("RECORD_NOT_UNIQUE"))) == "RECORD_NOT_UNIQUE"
    odds: tuple[object, ...] = (HTML, [], {}, said("a sentence with spaces"), said(3))
    for odd in odds:
        assert error_code(answer(400, odd)) is None
