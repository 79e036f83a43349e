"""Every answer of a Ghost that was seen, or can be; one line each."""

import json
from datetime import UTC, datetime

import pytest

from content_pipeline.adapters.cms.ghost_errors import failure_in, is_not_found
from content_pipeline.adapters.http_calls import Answer, Call
from content_pipeline.core.failures import Failure, FailureClass

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SERVICE = "Ghost at cms.example"
SECRET = "0123456789abcdef"

A = FailureClass.AUTH
C = FailureClass.CONFLICT
R = FailureClass.REQUEST
T = FailureClass.TRANSIENT
THROTTLED = FailureClass.THROTTLED
QUOTA = FailureClass.QUOTA
U = FailureClass.UNCERTAIN


def answer(status: int, body: object, **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, headers=named, body=raw)


def said(kind: str, code: str | None = None) -> dict[str, object]:
    return {"errors": [{"message": f"Said to {SECRET}.", "type": kind, "code": code}]}


HTML = b"<html><body>Please log in</body></html>"

WORLDS: list[tuple[str, Answer, FailureClass, FailureClass, str]] = [
    # what, answer, as a question, as a write, a word of the advice
    ("bad signature", answer(401, said("UnauthorizedError", "INVALID_JWT")), A, A, "NTP"),
    ("malformed token", answer(400, said("BadRequestError", "INVALID_JWT")), A, A, "secret"),
    ("no key", answer(401, said("UnauthorizedError", "UNKNOWN_ADMIN_API_KEY")), A, A, "new key"),
    ("unauthorised", answer(401, said("UnauthorizedError")), A, A, "new key"),
    ("401 of a proxy", answer(401, HTML), A, A, "credentials"),
    ("no credentials", answer(403, said("NoPermissionError")), A, A, "custom integration"),
    ("plan", answer(403, said("HostLimitError")), QUOTA, QUOTA, "plan"),
    ("firewall", answer(403, HTML), A, A, "firewall"),
    ("stale", answer(409, said("UpdateCollisionError", "UPDATE_COLLISION")), C, C, "changed"),
    ("409 of something", answer(409, HTML), C, C, "not what was seen"),
    ("page gone", answer(404, said("NotFoundError")), C, C, "deleted meanwhile"),
    ("no Ghost", answer(404, HTML), R, R, "no Admin API"),
    ("405", answer(405, b""), R, R, "no Admin API"),
    ("title too long", answer(422, said("ValidationError")), R, R, "255 characters"),
    ("odd filter", answer(400, said("BadRequestError")), R, R, "refused"),
    ("bad JSON", answer(400, said("InternalServerError", "UNEXPECTED_ERROR")), R, R, "refused"),
    ("old Ghost", answer(406, said("RequestNotAcceptableError")), R, R, "Ghost 5 or 6"),
    ("too large", answer(413, said("RequestEntityTooLargeError")), R, R, "too large"),
    ("throttled", answer(429, said("TooManyRequestsError")), THROTTLED, THROTTLED, "less traffic"),
    ("starting", answer(503, said("MaintenanceError")), THROTTLED, THROTTLED, "starts up"),
    ("503, wait", answer(503, HTML, retry_after="60"), THROTTLED, THROTTLED, "maintenance"),
    ("503 of a proxy", answer(503, HTML), T, U, "failed"),
    ("redirect", answer(301, b"", location="https://x.example/"), R, R, "not followed"),
    ("500", answer(500, said("InternalServerError")), T, U, "failed"),
    ("bad gateway", answer(502, HTML), T, U, "proxy"),
    ("gateway timeout", answer(504, HTML), T, U, "proxy"),
    ("408", answer(408, b""), T, U, "gave up waiting"),
    ("login page", answer(200, HTML), T, U, "login page"),
    ("nothing", answer(200, b""), T, U, "login page"),
    ("another JSON", answer(201, {"success": True}), T, U, "login page"),
    ("odd errors", answer(500, {"errors": ["x"]}), T, U, "failed"),
    ("no errors", answer(500, {"errors": []}), T, U, "failed"),
    ("a list", answer(500, []), T, U, "failed"),
]
NAMES = [world[0] for world in WORLDS]


def failure(found: Answer, method: str) -> Failure:
    call = Call(doing="publishing /austria/", method=method, path="/ghost/api/admin/pages/")
    return failure_in(found, call, service=SERVICE, now=NOW)


@pytest.mark.parametrize(("_name", "found", "reading", "writing", "advice"), WORLDS, ids=NAMES)
def test_an_answer_has_a_class_and_says_what_to_do(
    _name: str, found: Answer, reading: FailureClass, writing: FailureClass, advice: str
) -> None:
    assert failure(found, "GET").failure_class is reading
    for method in ("POST", "PUT", "DELETE"):
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


def test_only_ghost_itself_can_say_that_there_is_no_such_page() -> None:
    assert is_not_found(answer(404, said("NotFoundError")))
    for other in (answer(404, HTML), answer(404, {}), answer(401, said("NotFoundError"))):
        assert not is_not_found(other)
