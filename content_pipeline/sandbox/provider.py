"""The sandbox provider: which endpoint does what, and what is billed when.

What belongs here: from a request to a reply. Bytes are in ``wire``, connections in ``server``, and
the endpoints about the sandbox itself in ``controls``. The order of a paid call is fixed:
received (journaled) → composed → latency → billed (journaled) → delivered; a background response is
delivered before its latency. A client that leaves meanwhile stops nothing of it, as with real
providers.
"""

import asyncio
import secrets
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from content_pipeline.sandbox.background_responses import RESPONSE_ID, BackgroundResponses
from content_pipeline.sandbox.chat_answers import Answer, completion_document, compose
from content_pipeline.sandbox.chat_requests import (
    ApiError,
    CompletionRequest,
    model_exists,
    parse_request,
    unknown_model,
)
from content_pipeline.sandbox.deliveries import delivered, json_reply, refused
from content_pipeline.sandbox.embeddings import (
    EmbeddingsRequest,
    embeddings_document,
    parse_embeddings,
)
from content_pipeline.sandbox.faults import Fault, FaultKind, FaultPlan, Incoming, RunningPlan
from content_pipeline.sandbox.journal import Generation, Journal, Stored, now
from content_pipeline.sandbox.response_answers import answered_document
from content_pipeline.sandbox.response_requests import ResponseRequest, parse_response_request
from content_pipeline.sandbox.settings import ProviderSettings, latency_s
from content_pipeline.sandbox.stored import (
    COMPLETION_ID,
    LOOK_UPS,
    list_stored,
    metadata_of,
    parse_list_query,
)
from content_pipeline.sandbox.wire import Reply, Request

COMPLETIONS = "/v1/chat/completions"
RESPONSES = "/v1/responses"
EMBEDDINGS = "/v1/embeddings"
OF_ONE_RESPONSE = {("GET",): "retrieve", ("POST", "cancel"): "cancel"}
"""Method and what follows the id in the path → the operation's name."""
MODELS = "/v1/models"
DEFAULT_MODELS = ("sandbox", "gpt-5.2", "gpt-4.1-mini")
"""What the list of models shows when any model of the known families may be asked."""
RATE_LIMITED = "rate_limit_exceeded"
RATE_LIMITS = {
    "x-ratelimit-limit-requests": "10000",
    "x-ratelimit-limit-tokens": "2000000",
    "x-ratelimit-remaining-requests": "9999",
    "x-ratelimit-remaining-tokens": "1999000",
    "x-ratelimit-reset-requests": "6ms",
    "x-ratelimit-reset-tokens": "30ms",
}


Asked = TypeVar("Asked", CompletionRequest, ResponseRequest)


class Provider:
    """One provider with its journal, settings and plan. Lives on one event loop."""

    def __init__(
        self, settings: ProviderSettings, journal: Journal, faults: FaultPlan | None = None
    ) -> None:
        self.settings = settings
        self.journal = journal
        self.plan = RunningPlan(faults or FaultPlan())
        self._generating = 0
        self._responses = BackgroundResponses(journal)

    def reset(self) -> None:
        """Forget everything but the settings."""
        self.journal.reset()
        self.plan = RunningPlan(FaultPlan())
        self._responses.forget_all()

    async def answer(self, request: Request) -> Reply:
        """The reply to a request below ``/v1/``; every refusal is one, too."""
        started_at = time.monotonic()
        try:
            reply = await self._routed(request)
        except ApiError as error:
            reply = json_reply(error.envelope, error.status)
        except Exception as error:  # noqa: BLE001  # boundary: our own fault is a provider's 500
            # The message could quote a prompt; the places cannot.
            places = traceback.format_tb(error.__traceback__)
            sys.stderr.write(f"{type(error).__name__}\n{''.join(places)}")
            failure = ApiError(500, "The sandbox failed; see its log.", kind="server_error")
            reply = json_reply(failure.envelope, failure.status)
        headers = {
            "x-request-id": f"req_{secrets.token_hex(16)}",
            "openai-processing-ms": str(int((time.monotonic() - started_at) * 1000)),
            **RATE_LIMITS,
            **reply.headers,
        }
        return replace(reply, headers=headers)

    async def _routed(self, request: Request) -> Reply:
        path, method = request.path.rstrip("/"), request.method
        paid = {
            COMPLETIONS: self._create,
            EMBEDDINGS: self._embed,
            RESPONSES: self._create_response,
        }
        if method == "POST" and path in paid:
            return await paid[path](request)
        if path == COMPLETIONS and method == "GET":
            return self._list(request)
        if path.startswith(f"{COMPLETIONS}/"):
            completion_id, *rest = path.removeprefix(f"{COMPLETIONS}/").split("/")
            if look_up := LOOK_UPS.get((method, *rest)):
                operation, act = look_up
                fault = self._received(operation, request, completion_id)
                return refused(fault) if fault else json_reply(act(self.journal, completion_id))
        if path.startswith(f"{RESPONSES}/"):
            response_id, *rest = path.removeprefix(f"{RESPONSES}/").split("/")
            if asked := OF_ONE_RESPONSE.get((method, *rest)):
                return self._of_response(request, asked, response_id)
        if path.startswith(MODELS) and method == "GET":
            self._received("models", request, path)
            return json_reply(self._models(path.removeprefix(MODELS).lstrip("/")))
        self._received("unknown", request, path)
        raise ApiError(404, f"Invalid URL ({method} {request.path})")

    def _received(
        self, operation: str, request: Request, key: str, metadata: Mapping[str, str] | None = None
    ) -> Fault | None:
        """Journal a request that generates nothing; return what shall happen to it."""
        known = metadata or {}
        incoming = Incoming(operation=operation, key=key, metadata=known)
        fault = self._noted(incoming, attempt_id=known.get("attempt_id"))
        _authorise(request)
        return fault

    def _noted(
        self,
        incoming: Incoming,
        *,
        attempt_id: str | None,
        page_job_id: str | None = None,
        at_once: int | None = None,
    ) -> Fault | None:
        """Journal a request; return what shall happen to it."""
        fault = self.plan.fault_for(incoming)
        self.journal.note_request(
            incoming.operation,
            attempt_id=attempt_id,
            page_job_id=page_job_id,
            fault=fault.kind if fault else None,
            wait_s=fault.announced_s if fault else None,
            at_once=at_once,
        )
        return fault

    def _list(self, request: Request) -> Reply:
        fault = self._received("list", request, repr(request.query), metadata_of(request.query))
        if fault:
            return refused(fault)
        query = parse_list_query(request.query)
        return json_reply(list_stored(self.journal, query, self.settings.listing_delay_s))

    def _models(self, name: str) -> dict[str, Any]:
        described = {"object": "model", "created": 0, "owned_by": "sandbox"}
        if name:
            if not model_exists(name, self.settings):
                raise unknown_model(name)
            return {"id": name, **described}
        names = self.settings.models or DEFAULT_MODELS
        return {"object": "list", "data": [{"id": each, **described} for each in names]}

    def _of_response(self, request: Request, operation: str, response_id: str) -> Reply:
        metadata = self._responses.metadata_of(response_id)
        key = metadata.get("attempt_id", response_id)
        fault = self._received(operation, request, key, metadata)
        if fault:
            return refused(fault)
        act = self._responses.cancel if operation == "cancel" else self._responses.retrieve
        return json_reply(act(response_id))

    async def _create(self, request: Request) -> Reply:
        asked = self._asked(request, lambda: parse_request(request.body, self.settings))
        fault = self._accepted(asked)
        if fault and not fault.bills:
            return refused(fault)
        answer = compose(asked, self.settings.seed, fault.kind if fault else None)
        latency = self._latency_s(asked.key, fault)
        await self._think(latency)
        completion_id = f"{COMPLETION_ID}{secrets.token_hex(16)}"
        completion = completion_document(asked, answer, completion_id, int(time.time()))
        # Only look-ups echo the metadata; create() does not.
        kept = {**completion, "metadata": asked.metadata}
        self._bill(asked, answer, kept, latency, fault)
        return delivered(completion, fault)

    async def _create_response(self, request: Request) -> Reply:
        wanted = self._asked(request, lambda: parse_response_request(request.body, self.settings))
        asked = wanted.asked
        fault = self._accepted(asked)
        fails = fault is not None and fault.kind is FaultKind.FAILED and wanted.background
        if fault and not fault.bills and not fails:
            return refused(fault)
        answer = compose(asked, self.settings.seed, fault.kind if fault else None)
        latency = self._latency_s(asked.key, fault)
        response_id, created = f"{RESPONSE_ID}{secrets.token_hex(24)}", int(time.time())
        document = answered_document(wanted, answer, response_id, created)
        if not wanted.background:
            await self._think(latency)
            self._bill(asked, answer, document, latency, fault)
            return delivered(document, fault)

        def complete() -> Mapping[str, Any] | None:
            if fault is not None and fails:
                return {"code": fault.code or "server_error", "message": fault.message}
            self._bill(asked, answer, document, latency, fault)
            return None

        accepted = self._responses.accept(
            wanted, response_id, created, latency_s=latency, complete=complete
        )
        return json_reply(accepted) if fails else delivered(accepted, fault)

    def _asked(self, request: Request, parse: Callable[[], Asked]) -> Asked:
        """The parsed request for a generation; a refused one is journaled as well."""
        try:
            _authorise(request)
            return parse()
        except ApiError:
            self.journal.note_request("create")
            raise

    def _accepted(self, asked: CompletionRequest) -> Fault | None:
        """Journal a request that may generate; return what shall happen to it."""
        metadata = asked.metadata
        return self._noted(
            Incoming(operation="create", key=asked.key, metadata=metadata, prompt=asked.prompt),
            attempt_id=metadata.get("attempt_id"),
            page_job_id=metadata.get("page_job_id"),
            at_once=self._generating + 1,
        )

    async def _think(self, latency: float) -> None:
        """Pass the time of a call, unless too many pass theirs already."""
        if 0 < self.settings.most_at_once <= self._generating:
            raise ApiError(429, "Too many calls at once.", kind="requests", code=RATE_LIMITED)
        self._generating += 1
        try:
            await asyncio.sleep(latency)
        finally:
            self._generating -= 1

    def _latency_s(self, key: str, fault: Fault | None) -> float:
        extra = fault.seconds if fault and fault.kind is FaultKind.SLOW else 0.0
        return latency_s(self.settings, key) + extra

    def _bill(
        self,
        asked: CompletionRequest,
        answer: Answer,
        document: Mapping[str, Any],
        latency: float,
        fault: Fault | None,
    ) -> None:
        """Journal the generation that ``document`` shows, as billed now."""
        generation = Generation(
            id=document["id"],
            at=now(),
            attempt_id=asked.metadata.get("attempt_id"),
            page_job_id=asked.metadata.get("page_job_id"),
            model=asked.model,
            prompt_tokens=asked.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            cached_tokens=asked.cached_tokens,
            reasoning_tokens=answer.reasoning_tokens,
            latency_s=round(latency, 6),
            finish_reason=answer.finish_reason,
            fault=fault.kind if fault else None,
            stored=asked.store,
            metadata=asked.metadata,
        )
        self.journal.note_generation(
            generation, Stored(completion=document, messages=asked.messages)
        )

    async def _embed(self, request: Request) -> Reply:
        try:
            _authorise(request)
            asked = parse_embeddings(request.body, request.headers, self.settings)
        except ApiError:
            self.journal.note_request("embed")
            raise
        incoming = Incoming(operation="embed", key=asked.key, metadata={}, prompt=asked.texts[0])
        fault = self._noted(incoming, attempt_id=asked.attempt_id)
        if fault and not fault.bills:
            return refused(fault)
        document = embeddings_document(asked, fault.kind if fault else None)
        latency = self._latency_s(asked.key, fault)
        await self._think(latency)
        self._bill_embeddings(asked, fault, latency)
        return delivered(document, fault)

    def _bill_embeddings(
        self, asked: EmbeddingsRequest, fault: Fault | None, latency: float
    ) -> None:
        """Nothing is kept for look-ups: no provider offers any for embeddings."""
        generation = Generation(
            id=f"embd-{secrets.token_hex(16)}",
            at=now(),
            attempt_id=asked.attempt_id,
            page_job_id=None,
            model=asked.model,
            prompt_tokens=asked.prompt_tokens,
            completion_tokens=0,
            cached_tokens=0,
            reasoning_tokens=0,
            latency_s=round(latency, 6),
            finish_reason="stop",
            fault=fault.kind if fault else None,
            stored=False,
            metadata={},
        )
        self.journal.note_generation(generation, Stored(completion={}, messages=()))


def _authorise(request: Request) -> None:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        message = "You didn't provide an API key in an Authorization header (Bearer YOUR_KEY)."
        raise ApiError(401, message, code="invalid_api_key")
