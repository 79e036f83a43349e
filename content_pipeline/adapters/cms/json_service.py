"""A CMS that is asked and answers in JSON: what came back, or the failure that it means.

What belongs here: the steps between an answer and a value of a page that no vendor changes. Routes
and fields are the vendors' modules' to know, and so is what a failed answer means.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from content_pipeline.adapters.http_calls import Answer, Call, HTTPService
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

Json = Mapping[str, Any]

Classify = Callable[[Answer, Call], Failure]
"""The failure that an answer means: it is not what was asked for."""

Read = TypeVar("Read")


class JSONService:
    """One service and what its answers mean; safe for many threads."""

    def __init__(self, service: HTTPService, classify: Classify) -> None:
        self.name = service.name
        self._service = service
        self._classify = classify

    def close(self) -> None:
        """Close every connection."""
        self._service.close()

    def send(self, call: Call) -> Answer:
        """The answer, whatever its status. Raises CallFailed when there is none."""
        return self._service.send(call)

    def parsed(self, answer: Answer, call: Call) -> Any:
        """The JSON of a 2xx answer. Raises CallFailed for any other."""
        if not 200 <= answer.status < 300:
            raise self.failed(answer, call)
        try:
            return answer.document()
        except ValueError:
            failed = self.failed(answer, call)
        raise failed

    def object_in(self, answer: Answer, call: Call) -> Json:
        """The JSON object of a 2xx answer. Raises CallFailed for anything else."""
        found = self.parsed(answer, call)
        if not isinstance(found, dict):
            raise self.failed(answer, call)
        return found

    def objects_under(self, name: str, answer: Answer, call: Call) -> tuple[Json, ...]:
        """The list of objects in the member ``name``. Raises CallFailed for anything else."""
        listed = self.object_in(answer, call).get(name)
        if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
            raise self.failed(answer, call)
        return tuple(listed)

    def read(
        self, reader: Callable[[Json], Read], found: Json, *, doing: str, writes: bool = False
    ) -> Read:
        """What ``reader`` makes of ``found``. Raises CallFailed for what it cannot read."""
        try:
            return reader(found)
        except ValueError:
            failure = self.unreadable(doing, writes=writes)
        raise CallFailed(failure)

    def unreadable(self, doing: str, *, writes: bool) -> Failure:
        """The failure of an answer that is JSON and still not what was asked for."""
        call = Call(doing=doing, method="POST" if writes else "GET", path="")
        return self._classify(Answer(status=200, headers={}, body=b""), call)

    def failed(self, answer: Answer, call: Call) -> CallFailed:
        """The failure of ``answer`` as an error."""
        return CallFailed(self._classify(answer, call))

    def conflict(self, doing: str, words: str) -> CallFailed:
        """The page is not what it was thought to be."""
        message = f"{self.name}, {doing}: {words}"
        return CallFailed(Failure(failure_class=FailureClass.CONFLICT, message=message))


def text_in(found: Json, name: str) -> str:
    """The member ``name``, a text. Raises ValueError for anything else."""
    value = found.get(name)
    if not isinstance(value, str):
        raise ValueError(f"there is no text {name}")
    return value


def text_or_empty(found: Json, name: str) -> str:
    """The member ``name``, empty when it is null or missing. Raises ValueError for no text."""
    return "" if found.get(name) is None else text_in(found, name)
