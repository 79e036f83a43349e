"""One table of everything that can come back; each line is an answer that was seen or can be."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from content_pipeline.adapters.cms.wordpress_errors import error_code, failure_in
from content_pipeline.adapters.http_calls import Answer, Call
from content_pipeline.core.failures import Failure, FailureClass

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SERVICE = "WordPress at cms.example"
SECRET = "abcd EFGH ijkl MNOP"

A = FailureClass.AUTH
C = FailureClass.CONFLICT
R = FailureClass.REQUEST
T = FailureClass.TRANSIENT
TERMINAL = FailureClass.TERMINAL
THROTTLED = FailureClass.THROTTLED
U = FailureClass.UNCERTAIN


def answer(status: int, body: object, **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, headers=named, body=raw)


def wp(code: str, **data: Any) -> dict[str, Any]:
    return {"code": code, "message": f"Said to {SECRET}.", "data": data}


HTML = b"<html><body>Please log in</body></html>"
FORBIDDEN_STATUS = wp(
    "rest_invalid_param",
    status=400,
    details={"status": {"code": "rest_forbidden_status", "data": {"status": 401}}},
)

WORLDS: list[tuple[str, Answer, FailureClass, FailureClass, str]] = [
    # what, answer, as a question, as a write, a word of the advice
    ("wrong password", answer(401, wp("rest_forbidden_context")), A, A, "application password"),
    ("not logged in", answer(401, wp("rest_not_logged_in")), A, A, "application password"),
    ("revoked", answer(401, wp("incorrect_password")), A, A, "was revoked"),
    ("wrong password, listing", answer(400, FORBIDDEN_STATUS), A, A, "application password"),
    ("401 of a proxy", answer(401, HTML), A, A, "application password"),
    ("author", answer(403, wp("rest_cannot_create")), A, A, "editor"),
    ("may not publish", answer(403, wp("rest_cannot_publish")), A, A, "editor"),
    ("firewall", answer(403, HTML), A, A, "firewall"),
    ("page gone", answer(404, wp("rest_post_invalid_id")), C, C, "removed or created meanwhile"),
    ("parent gone", answer(400, wp("rest_post_invalid_id")), C, C, "parent"),
    ("page there", answer(400, wp("rest_post_exists")), C, C, "created meanwhile"),
    ("already in the trash", answer(410, wp("rest_already_trashed")), C, C, "removed"),
    ("409", answer(409, HTML), C, C, "not what was seen"),
    ("412 of the guard", answer(412, wp("content_pipeline_changed")), C, C, "not what was seen"),
    ("key known", answer(409, wp("content_pipeline_known_key")), C, C, "our mark"),
    ("address taken", answer(409, wp("content_pipeline_taken")), C, C, "address"),
    ("guard busy", answer(503, wp("content_pipeline_busy")), THROTTLED, THROTTLED, "another write"),
    ("429", answer(429, HTML), THROTTLED, THROTTLED, "less traffic"),
    ("429, wait", answer(429, {}, retry_after="7"), THROTTLED, THROTTLED, "less traffic"),
    ("413", answer(413, HTML), R, R, "too large"),
    ("long title", answer(500, wp("db_insert_error")), TERMINAL, TERMINAL, "refuses this text"),
    ("long update", answer(500, wp("db_update_error")), TERMINAL, TERMINAL, "refuses this text"),
    ("no trash", answer(501, wp("rest_trash_not_supported")), R, R, "by hand"),
    ("no route", answer(404, wp("rest_no_route")), R, R, "no such route"),
    ("plain permalinks", answer(404, HTML), R, R, "permalink"),
    ("bad parameter", answer(400, wp("rest_invalid_param", status=400)), R, R, "refused"),
    ("bad JSON", answer(400, wp("rest_invalid_json")), R, R, "refused"),
    ("422", answer(422, {}), R, R, "refused"),
    ("redirect", answer(301, b"", location="https://x.example/"), R, R, "not followed"),
    ("redirect kept", answer(308, b""), R, R, "not followed"),
    ("maintenance", answer(503, HTML, retry_after="600"), THROTTLED, THROTTLED, "maintenance"),
    ("503 of a proxy", answer(503, HTML), T, U, "failed"),
    ("fatal error", answer(500, wp("internal_server_error")), T, U, "error log"),
    ("wp_die", answer(500, wp("wp_die")), T, U, "error log"),
    ("database down", answer(500, b"<h1>Error establishing a database connection</h1>"), T, U, ""),
    ("bad gateway", answer(502, HTML), T, U, "proxy"),
    ("gateway timeout", answer(504, HTML), T, U, "proxy"),
    ("524", answer(524, b""), T, U, "proxy"),
    ("408", answer(408, b""), T, U, "gave up waiting"),
    ("stray output", answer(201, b'Notice: x\n{"id": 5}'), T, U, "prints something"),
    ("a byte order mark", answer(200, b"\xef\xbb\xbf{}"), T, U, "prints something"),
    ("login page", answer(200, HTML), T, U, "login page"),
    ("nothing", answer(200, b""), T, U, "login page"),
    ("another JSON", answer(200, {"success": True}), T, U, "login page"),
]
NAMES = [world[0] for world in WORLDS]


def failure(found: Answer, method: str) -> Failure:
    call = Call(doing="publishing /austria/", method=method, path="/wp-json/wp/v2/pages")
    return failure_in(found, call, service=SERVICE, now=NOW)


@pytest.mark.parametrize(("_name", "found", "reading", "_w", "advice"), WORLDS, ids=NAMES)
def test_a_question_answered_so_is_of_this_class(
    _name: str, found: Answer, reading: FailureClass, _w: FailureClass, advice: str
) -> None:
    assert failure(found, "GET").failure_class is reading


@pytest.mark.parametrize(("_name", "found", "_r", "writing", "advice"), WORLDS, ids=NAMES)
def test_a_write_answered_so_is_of_this_class(
    _name: str, found: Answer, _r: FailureClass, writing: FailureClass, advice: str
) -> None:
    for method in ("POST", "DELETE"):
        assert failure(found, method).failure_class is writing


@pytest.mark.parametrize(("_name", "found", "_r", "_w", "advice"), WORLDS, ids=NAMES)
def test_a_failure_says_what_happened_where_and_what_to_do(
    _name: str, found: Answer, _r: FailureClass, _w: FailureClass, advice: str
) -> None:
    told = failure(found, "POST")
    assert told.message.startswith(f"{SERVICE}, publishing /austria/: answered HTTP {found.status}")
    assert advice in told.message
    assert told.http_status == found.status


@pytest.mark.parametrize(("_name", "found", "_r", "_w", "_a"), WORLDS, ids=NAMES)
def test_nothing_that_the_other_side_wrote_is_repeated(
    _name: str, found: Answer, _r: FailureClass, _w: FailureClass, _a: str
) -> None:
    told = failure(found, "POST")
    assert SECRET not in f"{told}"
    assert "Please log in" not in told.message


def test_a_question_is_never_uncertain() -> None:
    for _, found, reading, _, _ in WORLDS:
        assert reading is not U
        assert failure(found, "GET").failure_class is not U


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [("600", 600), ("Mon, 30 Nov 2026 12:00:30 GMT", 30), ("0", None), ("soon", None)],
)
def test_an_announced_wait_is_passed_on(header: str, wait_s: float | None) -> None:
    assert failure(answer(429, b"", retry_after=header), "POST").retry_after_s == wait_s


def test_a_503_whose_wait_cannot_be_read_may_have_been_written() -> None:
    assert failure(answer(503, HTML, retry_after="soon"), "POST").failure_class is U


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (wp("rest_no_route"), "rest_no_route"),
        ({"code": "Sorry, admin:password"}, None),
        ({"code": 404}, None),
        ({"code": "a" * 65}, None),
        ([], None),
        (b"[" * 100_000, None),
        (HTML, None),
    ],
)
def test_only_a_code_counts_as_one(body: object, code: str | None) -> None:
    assert error_code(answer(400, body)) == code


@pytest.mark.parametrize(
    "data", [None, [], {"details": []}, {"details": {"status": "x"}}, {"details": {"status": {}}}]
)
def test_odd_errors_are_classified_like_others(data: object) -> None:
    found = answer(400, {"code": "rest_invalid_param", "data": data})
    assert failure(found, "POST").failure_class is R
