"""The paid call: ``core.ports.LanguageModel`` over the openai SDK, by either of its two APIs.

What belongs here: making one request once, and asking for its answer afterwards. What is sent is
decided in ``chat_request`` and ``responses_request``; what failures and answers mean in
``classify``, ``reading`` and ``stored``.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from content_pipeline.adapters.llm.chat_request import chat_arguments
from content_pipeline.adapters.llm.classify import classify
from content_pipeline.adapters.llm.client import open_client
from content_pipeline.adapters.llm.embeddings import OpenAIEmbeddings
from content_pipeline.adapters.llm.headers import kept_headers
from content_pipeline.adapters.llm.http import call_timeout
from content_pipeline.adapters.llm.profiles import ProviderProfile
from content_pipeline.adapters.llm.reading import Reader
from content_pipeline.adapters.llm.responses_request import responses_arguments
from content_pipeline.adapters.llm.stored import (
    ATTEMPT_KEY,
    PAGE_JOB_KEY,
    judge_listing,
    judge_response,
    unknown,
)
from content_pipeline.core.errors import CallFailed, ConfigurationError
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.generation_settings import GenerationAPI
from content_pipeline.core.ports import (
    GenerationLookUp,
    GenerationRequest,
    LanguageModelCapabilities,
    RawResponse,
    Reading,
    Verdict,
)

LOOK_UP_DEADLINE_S = 20.0
"""Seconds for a request that generates nothing; a list call takes well under one."""

LISTED = 5
"""Completions asked for: one is expected, more would be copies of the same attempt."""


class OpenAIModel:
    """One provider account; threads may share it freely. Close it when the process ends."""

    def __init__(
        self,
        *,
        profile: ProviderProfile,
        api_key: str | None,
        now: Callable[[], datetime],
        api: GenerationAPI = GenerationAPI.CHAT,
        background: bool = False,
        base_url: str | None = None,
        organization: str | None = None,
        project: str | None = None,
        proxy_url: str | None = None,
    ) -> None:
        """Prepare the client; nothing is sent.

        ``now`` gives the aware UTC time, against which an announced waiting date is read.
        ``api`` decides where calls go, never what can be asked afterwards: a call of before a
        change of the setting is still found. ``background``: a response's answer comes by
        ``look_up``. Raises ConfigurationError for an unusable key or address, and for an API that
        the provider does not offer.
        """
        if api is GenerationAPI.RESPONSES and not profile.responses:
            raise ConfigurationError(
                f"provider {profile.name} keeps no responses that could be asked for after a lost "
                "answer; use `api: chat`"
            )
        self._client = open_client(
            profile,
            api_key=api_key,
            base_url=base_url,
            organization=organization,
            project=project,
            proxy_url=proxy_url,
        )
        self._profile = profile
        self._api = api
        self._background = background
        self._now = now
        self._service = f"{profile.name} at {self._client.base_url.host}"
        self._reader = Reader(profile=profile, service=self._service)
        self._completions = self._client.chat.completions.with_raw_response
        self._responses = self._client.responses.with_raw_response

    @property
    def capabilities(self) -> LanguageModelCapabilities:
        """What this provider can be asked afterwards."""
        return LanguageModelCapabilities(
            look_up_by_attempt=self._profile.store_look_up, look_up_by_id=self._profile.responses
        )

    @property
    def embeddings(self) -> OpenAIEmbeddings:
        """Embeddings of the same account, over the same connections: closed with this object."""
        return OpenAIEmbeddings(client=self._client, service=self._service, now=self._now)

    def close(self) -> None:
        """Close every connection; the object cannot be used afterwards."""
        self._client.close()

    def send(self, request: GenerationRequest) -> RawResponse:
        """Make exactly one POST, over within ``request.deadline_s`` seconds.

        Raises CallFailed, without a cause: the SDK's exceptions quote what the provider wrote.
        """
        arguments = self._checked_arguments(request)
        endpoint = self._completions if self._api is GenerationAPI.CHAT else self._responses
        create: Callable[..., Any] = endpoint.create
        try:
            return _as_it_came(create(**arguments))
        except Exception as error:  # noqa: BLE001  # boundary: the port promises CallFailed
            failure = self._classified(error)
        raise CallFailed(failure)

    def read(self, raw: RawResponse) -> Reading:
        """Interpret an answer of ``send`` or ``look_up``; never raises."""
        return self._reader.read(raw, self._now())

    def look_up(self, attempt_id: str, kept_as: str | None = None) -> GenerationLookUp:
        """Ask whether the call completed; unknown when the provider cannot tell, or not yet.

        Stored completions appear in the list with a delay nobody documents: absence is only
        proved by asking again after a while.
        """
        try:
            return self._by_attempt(attempt_id) if kept_as is None else self._by_id(kept_as)
        except Exception as error:  # noqa: BLE001  # boundary: the port never raises
            failure = self._classified(error)
        if kept_as is not None and _says_not_found(failure):
            return GenerationLookUp(verdict=Verdict.ABSENT)
        return GenerationLookUp(verdict=Verdict.UNKNOWN, failure=_of_a_question(failure))

    def cancel(self, kept_as: str) -> None:
        """Ask once to stop working on a background response; never raises."""
        try:
            self._responses.cancel(kept_as, timeout=call_timeout(LOOK_UP_DEADLINE_S))
        except Exception:  # noqa: BLE001  # boundary: the look-ups that follow tell what came of it
            return

    def _by_attempt(self, attempt_id: str) -> GenerationLookUp:
        if not self._profile.store_look_up:
            return unknown(f"{self._service}: it keeps no completions that could be listed")
        answer = self._completions.list(
            metadata={ATTEMPT_KEY: attempt_id},
            limit=LISTED,
            timeout=call_timeout(LOOK_UP_DEADLINE_S),
        )
        return judge_listing(answer.content, attempt_id, service=self._service)

    def _by_id(self, kept_as: str) -> GenerationLookUp:
        if not self._profile.responses:
            return unknown(f"{self._service}: it keeps no responses that could be asked for")
        answer = self._responses.retrieve(kept_as, timeout=call_timeout(LOOK_UP_DEADLINE_S))
        return judge_response(_as_it_came(answer), kept_as, service=self._service)

    def _classified(self, error: Exception) -> Failure:
        return classify(error, service=self._service, now=self._now())

    def _checked_arguments(self, request: GenerationRequest) -> dict[str, Any]:
        try:
            return self._arguments(request)
        except ValueError as error:
            failure = Failure(
                failure_class=FailureClass.INTERNAL,
                message=f"{self._service}: nothing was sent: {error}",
            )
        raise CallFailed(failure)

    def _arguments(self, request: GenerationRequest) -> dict[str, Any]:
        """The SDK's arguments for ``request``."""
        metadata = {ATTEMPT_KEY: request.attempt_id, PAGE_JOB_KEY: request.page_job_id}
        if self._api is GenerationAPI.CHAT:
            asked = chat_arguments(request, self._profile, metadata)
        else:
            asked = responses_arguments(
                request, self._profile, metadata, background=self._background
            )
        return asked | {
            # For support cases and for gateways that honour it; nothing here relies on either.
            "extra_headers": {
                "Idempotency-Key": request.attempt_id,
                "X-Client-Request-Id": request.attempt_id,
            },
            "timeout": call_timeout(request.deadline_s),
        }


def _as_it_came(answer: Any) -> RawResponse:
    return RawResponse(
        status=answer.status_code, headers=kept_headers(answer.headers), body=answer.content
    )


def _says_not_found(failure: Failure) -> bool:
    """A 404 in the provider's own words; a gateway's page says nothing about the response."""
    return failure.http_status == 404 and (failure.type or failure.code) is not None


def _of_a_question(failure: Failure) -> Failure:
    """A failed look-up changes nothing anywhere, so its own outcome is never uncertain."""
    if failure.failure_class is not FailureClass.UNCERTAIN:
        return failure
    return Failure(
        failure_class=FailureClass.TRANSIENT,
        message=f"asking for the stored answer failed: {failure.message}",
        http_status=failure.http_status,
        request_id=failure.request_id,
        retry_after_s=failure.retry_after_s,
    )
