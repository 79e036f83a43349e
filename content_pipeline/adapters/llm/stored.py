"""What a provider's store says about one call: a listing by attempt, or a response by its id.

What belongs here: judging what came back from a look-up. Only an empty list that was asked for by
our attempt id proves absence: a server that ignores the filter lists other people's answers.
"""

import json
from collections.abc import Mapping
from typing import Any

from content_pipeline.adapters.llm.envelope import parse_json
from content_pipeline.adapters.llm.responses_reading import AT_WORK
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import GenerationLookUp, RawResponse, Verdict

ATTEMPT_KEY = "attempt_id"
PAGE_JOB_KEY = "page_job_id"
"""Keys of the metadata sent with a call; visible in the provider's own list of completions."""


def judge_listing(body: bytes, attempt_id: str, *, service: str) -> GenerationLookUp:
    """Present, absent or unknown, from the ``body`` of a 200 of the list endpoint.

    Of several completions of one attempt (an intermediary repeated the call) the first counts.
    """
    items = _items(body)
    if items is None:
        return unknown(f"{service}: the listing of stored completions cannot be read")
    ours = [item for item in items if _attempt_of(item) == attempt_id]
    if ours:
        return GenerationLookUp(verdict=Verdict.PRESENT, raw=_as_answer(ours[0]))
    if items:
        return unknown(
            f"{service}: it lists completions of other attempts, so it ignores the filter "
            "and its listing proves nothing"
        )
    return GenerationLookUp(verdict=Verdict.ABSENT)


def judge_response(raw: RawResponse, kept_as: str, *, service: str) -> GenerationLookUp:
    """Present or unknown, from the ``raw`` 200 that was asked for by the id ``kept_as``."""
    try:
        document = parse_json(raw.body)
    except ValueError:
        document = None
    if not isinstance(document, Mapping) or document.get("id") != kept_as:
        return unknown(f"{service}: what it hands out by a response's id is not that response")
    status = document.get("status")
    if isinstance(status, str) and status in AT_WORK:
        return unknown(f"{service}: the response is {status}; it is asked for again")
    return GenerationLookUp(verdict=Verdict.PRESENT, raw=raw)


def unknown(message: str) -> GenerationLookUp:
    """No verdict, for a reason on the provider's side."""
    return GenerationLookUp(
        verdict=Verdict.UNKNOWN,
        failure=Failure(failure_class=FailureClass.TRANSIENT, message=message),
    )


def _items(body: bytes) -> list[Any] | None:
    try:
        document = parse_json(body)
    except ValueError:
        return None
    items = document.get("data") if isinstance(document, Mapping) else None
    return items if isinstance(items, list) else None


def _attempt_of(item: Any) -> object:
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    return metadata.get(ATTEMPT_KEY) if isinstance(metadata, Mapping) else None


def _as_answer(item: Mapping[str, Any]) -> RawResponse:
    """The stored completion as if it had come as the answer to the call."""
    return RawResponse(
        status=200,
        headers={"content-type": "application/json"},
        body=json.dumps(item).encode(),
    )
