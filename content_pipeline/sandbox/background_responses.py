"""Responses on their way: accepted, not ended yet, or ended without having been billed.

What belongs here: the states between the acceptance of a response and its end. One that completes
is billed in the journal at that moment, whether or not anybody asks; the others are kept in memory
and end with the process, as nothing was billed for them.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from content_pipeline.sandbox.chat_requests import ApiError
from content_pipeline.sandbox.journal import Journal
from content_pipeline.sandbox.response_answers import unanswered_document
from content_pipeline.sandbox.response_requests import ResponseRequest

RESPONSE_ID = "resp_"
"""How the id of a response begins; the journal holds chat completions as well."""


@dataclass(slots=True, kw_only=True)
class _Running:
    """One response at work; ``document`` is what a client sees of it."""

    request: ResponseRequest
    document: dict[str, Any]
    timer: asyncio.TimerHandle


class BackgroundResponses:
    """The responses of one provider. Lives on its event loop."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._running: dict[str, _Running] = {}
        self._unbilled: dict[str, dict[str, Any]] = {}

    def accept(
        self,
        request: ResponseRequest,
        response_id: str,
        created: int,
        *,
        latency_s: float,
        complete: Callable[[], Mapping[str, Any] | None],
    ) -> dict[str, Any]:
        """Let ``complete`` end the response after ``latency_s``; the document of its acceptance.

        ``complete`` bills the response, or returns the error object that it fails with.
        """
        document = unanswered_document(request, response_id, created, "in_progress")
        loop = asyncio.get_running_loop()
        timer = loop.call_later(latency_s, self._end, response_id, complete)
        self._running[response_id] = _Running(request=request, document=document, timer=timer)
        return document | {"status": "queued"}

    def metadata_of(self, response_id: str) -> Mapping[str, str]:
        """The metadata of a response; empty for an unknown one."""
        document = self._document(response_id)
        return document["metadata"] if document is not None else {}

    def retrieve(self, response_id: str) -> Mapping[str, Any]:
        """The response as it stands. Raises ApiError."""
        document = self._document(response_id)
        if document is None:
            message = f"Response with id '{response_id}' not found."
            raise ApiError(404, message, param="response_id")
        return document

    def cancel(self, response_id: str) -> Mapping[str, Any]:
        """Stop a response that is at work; one that has ended stays as it is. Raises ApiError."""
        document = self.retrieve(response_id)
        if not document["background"]:
            raise ApiError(400, "Cannot cancel a synchronous response.", param="response_id")
        running = self._running.pop(response_id, None)
        if running is None:
            return document
        running.timer.cancel()
        self._unbilled[response_id] = running.document | {"status": "cancelled"}
        return self._unbilled[response_id]

    def forget_all(self) -> None:
        """Forget what was not billed, and stop what is at work."""
        for running in self._running.values():
            running.timer.cancel()
        self._running.clear()
        self._unbilled.clear()

    def _end(self, response_id: str, complete: Callable[[], Mapping[str, Any] | None]) -> None:
        running = self._running.pop(response_id)
        error = complete()
        if error is not None:
            failed = {"status": "failed", "error": error}
            self._unbilled[response_id] = running.document | failed

    def _document(self, response_id: str) -> Mapping[str, Any] | None:
        running = self._running.get(response_id)
        if running is not None:
            return running.document
        if response_id in self._unbilled:
            return self._unbilled[response_id]
        stored = self._journal.stored(response_id) if response_id.startswith(RESPONSE_ID) else None
        return stored.completion if stored is not None else None
