"""Hooks that are told by one HTTP call: sending it, and what an answer that is no success means.

What belongs here: one table for all services that are told of pages. Telling twice does no harm, so
an answer that was lost is a reason to tell again. What a service wants to hear is its module's. No
address appears in a message: it may be a secret.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from content_pipeline.adapters.http_calls import Answer, Call, HTTPService
from content_pipeline.adapters.retry_after import announced_wait_s
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import SiteNews

_SUCCESS = frozenset(range(200, 300))
_REDIRECTS = frozenset(range(300, 400))
_GAVE_UP_WAITING = frozenset({408, 425, 499})
_SERVER_FAULTS = frozenset(range(500, 600))

_ADVICE: dict[FailureClass, str] = {
    FailureClass.THROTTLED: "it asks for less traffic; it is told again later",
    FailureClass.TRANSIENT: "it had a fault of its own; it is told again later",
    FailureClass.AUTH: "it refuses our credentials; correct them in the environment",
    FailureClass.REQUEST: "it refuses what it was told; check its address and settings",
}
_REDIRECTED = "it redirects, which is not followed; set the address that it redirects to"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldByHTTP:
    """One service that is told by POST. ``advice``: what a person should do, by HTTP status."""

    service: HTTPService
    clock: Callable[[], datetime]
    advice: Mapping[int, str]

    def post(
        self,
        news: SiteNews,
        *,
        path: str = "",
        document: object = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer of a success. Raises CallFailed for every other, and for none."""
        call = Call(
            doing=f"told of {count_of(news)}",
            method="POST",
            path=path,
            document=document,
            content=content,
            headers=headers or {},
            repeatable=True,
        )
        answer = self.service.send(call)
        if answer.status not in _SUCCESS:
            raise CallFailed(self._failure(answer, call))
        return answer

    def refused(self, answer: Answer, why: str) -> CallFailed:
        """The failure of an answer that is no success in spite of its status."""
        return CallFailed(
            Failure(
                failure_class=FailureClass.TRANSIENT,
                message=f"{self.service.name}: {why}; it is told again later",
                http_status=answer.status,
            )
        )

    def close(self) -> None:
        """Close every connection."""
        self.service.close()

    def _failure(self, answer: Answer, call: Call) -> Failure:
        wait_s = announced_wait_s(answer.headers.get("retry-after"), self.clock())
        failure_class = _class_of(answer.status, announces_wait=wait_s is not None)
        advice = _REDIRECTED if answer.status in _REDIRECTS else _ADVICE[failure_class]
        advice = self.advice.get(answer.status, advice)
        return Failure(
            failure_class=failure_class,
            message=f"{self.service.name}, {call.doing}: answered HTTP {answer.status}: {advice}",
            http_status=answer.status,
            retry_after_s=wait_s,
        )


def _class_of(status: int, *, announces_wait: bool) -> FailureClass:
    if status == 429 or (status == 503 and announces_wait):
        return FailureClass.THROTTLED
    if status in _SERVER_FAULTS | _GAVE_UP_WAITING:
        return FailureClass.TRANSIENT
    if status in (401, 403):
        return FailureClass.AUTH
    return FailureClass.REQUEST


def count_of(news: SiteNews) -> str:
    """How many pages ``news`` is about, for people."""
    number = len(news.changed) + len(news.withdrawn)
    return f"{number} page" if number == 1 else f"{number} pages"


def urls_of(news: SiteNews) -> list[str]:
    """Every URL that ``news`` is about, those of pages taken off the site too."""
    return [page.url for page in news.changed] + [page.url for page in news.withdrawn]
