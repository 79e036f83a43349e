from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from content_pipeline.adapters.cms.json_service import Json, JSONService, text_in, text_or_empty
from content_pipeline.adapters.http_calls import Answer, Call, HTTPService
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline_tests.adapters.llm.loopback import answer, serving

CALL = Call(doing="looking", method="GET", path="/")


def classify(found: Answer, call: Call) -> Failure:
    meant = FailureClass.UNCERTAIN if call.writes else FailureClass.TRANSIENT
    return Failure(failure_class=meant, message=f"{call.doing}: {found.status}")


@contextmanager
def service(status: int = 200, body: Any = b"{}") -> Iterator[JSONService]:
    with serving(answer(status, body)) as server:
        url = f"http://127.0.0.1:{server.port}"
        asked = JSONService(HTTPService(url, name="The CMS", headers={}, deadline_s=5), classify)
        yield asked
        asked.close()


def test_an_object_and_a_list_in_it_are_read() -> None:
    with service(200, {"pages": [{"id": 1}, {"id": 2}]}) as asked:
        found = asked.send(CALL)
        assert asked.object_in(found, CALL) == {"pages": [{"id": 1}, {"id": 2}]}
        assert asked.objects_under("pages", found, CALL) == ({"id": 1}, {"id": 2})


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"pages": []}),
        (200, b""),
        (200, b"<html>"),
        (200, []),
        (200, {}),
        (200, {"pages": {}}),
        (200, {"pages": [1]}),
    ],
)
def test_anything_else_is_the_failure_that_it_means(status: int, body: Any) -> None:
    with service(status, body) as asked, pytest.raises(CallFailed) as failed:
        asked.objects_under("pages", asked.send(CALL), CALL)
    assert failed.value.failure.message == f"looking: {status}"
    assert failed.value.__cause__ is None


def test_what_a_reader_cannot_read_is_no_answer_and_a_write_then_uncertain() -> None:
    def reader(found: Json) -> str:
        return text_in(found, "title")

    with service() as asked:
        assert asked.read(reader, {"title": "A"}, doing="reading") == "A"
        for writes, meant in ((False, FailureClass.TRANSIENT), (True, FailureClass.UNCERTAIN)):
            with pytest.raises(CallFailed) as failed:
                asked.read(reader, {}, doing="reading", writes=writes)
            assert failed.value.failure.failure_class is meant


def test_a_conflict_says_who_and_what() -> None:
    with service() as asked:
        told = asked.conflict("publishing /a/", "it is gone").failure
    assert told.failure_class is FailureClass.CONFLICT
    assert told.message == "The CMS, publishing /a/: it is gone"


@pytest.mark.parametrize("value", [3, True, [], {}])
def test_another_type_than_a_text_is_refused(value: object) -> None:
    for reader in (text_in, text_or_empty):
        with pytest.raises(ValueError):
            reader({"a": value}, "a")


def test_a_text_may_be_missing_where_that_is_allowed() -> None:
    assert text_or_empty({}, "a") == text_or_empty({"a": None}, "a") == ""
    with pytest.raises(ValueError):
        text_in({"a": None}, "a")
