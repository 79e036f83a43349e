"""The sandbox provider: which endpoint does what, and what is billed when.

What belongs here: from a request to a reply. Bytes are in ``wire``, connections in ``server``, and
the endpoints about the sandbox itself in ``controls``. The order of a paid call is fixed:
received (journaled) → composed → latency → billed (journaled) → delivered. A client that leaves
meanwhile stops nothing of it, as with real providers.
"""

import asyncio
import secrets
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from content_pipeline.sandbox.chat_answers import completion_document, compose
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
from content_pipeline.sandbox.settings import ProviderSettings, latency_s
from content_pipeline.sandbox.stored import LOOK_UPS, list_stored, metadata_of, parse_list_query
from content_pipeline.sandbox.wire import Reply, Request

COMPLETIONS = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
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


class Provider:
    """One provider with its journal, settings and plan. Lives on one event loop."""

    def __init__(
        self, settings: ProviderSettings, journal: Journal, faults: FaultPlan | None = None
    ) -> None:
        self.settings = settings
        self.journal = journal
        self.plan = RunningPlan(faults or FaultPlan())
        self._generating = 0

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
        if path == COMPLETIONS and method == "POST":
            return await self._create(request)
        if path == EMBEDDINGS and method == "POST":
            return await self._embed(request)
        if path == COMPLETIONS and method == "GET":
            return self._list(request)
        if path.startswith(f"{COMPLETIONS}/"):
            completion_id, *rest = path.removeprefix(f"{COMPLETIONS}/").split("/")
            if look_up := LOOK_UPS.get((method, *rest)):
                operation, act = look_up
                fault = self._received(operation, request, completion_id)
                return refused(fault) if fault else json_reply(act(self.journal, completion_id))
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

    async def _create(self, request: Request) -> Reply:
        try:
            _authorise(request)
            asked = parse_request(request.body, self.settings)
        except ApiError:
            self.journal.note_request("create")
            raise
        metadata = asked.metadata
        fault = self._noted(
            Incoming(operation="create", key=asked.key, metadata=metadata, prompt=asked.prompt),
            attempt_id=metadata.get("attempt_id"),
            page_job_id=metadata.get("page_job_id"),
            at_once=self._generating + 1,
        )
        if fault and not fault.bills:
            return refused(fault)
        if 0 < self.settings.most_at_once <= self._generating:
            raise ApiError(429, "Too many calls at once.", kind="requests", code=RATE_LIMITED)
        self._generating += 1
        try:
            return delivered(await self._generate(asked, fault), fault)
        finally:
            self._generating -= 1

    async def _generate(self, asked: CompletionRequest, fault: Fault | None) -> dict[str, Any]:
        """The completion, after its latency and once it is billed in the journal."""
        answer = compose(asked, self.settings.seed, fault.kind if fault else None)
        latency = await self._think(asked.key, fault)
        completion_id = f"chatcmpl-{secrets.token_hex(16)}"
        completion = completion_document(asked, answer, completion_id, int(time.time()))
        generation = Generation(
            id=completion_id,
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
        # Only look-ups echo the metadata; create() does not.
        kept = {**completion, "metadata": asked.metadata}
        self.journal.note_generation(generation, Stored(completion=kept, messages=asked.messages))
        return completion

    async def _think(self, key: str, fault: Fault | None) -> float:
        """Let the latency of a generation pass; its seconds."""
        latency = latency_s(self.settings, key)
        if fault and fault.kind is FaultKind.SLOW:
            latency += fault.seconds
        await asyncio.sleep(latency)
        return latency

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
        self._bill_embeddings(asked, fault, await self._think(asked.key, fault))
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
