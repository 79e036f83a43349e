"""The paid call: ``core.ports.LanguageModel`` over chat completions with the openai SDK.

What belongs here: building one request, making it once, and asking for it afterwards. The SDK's
own retries are off: by default it repeats a paid POST on every timeout, cut connection, 429 and
5xx. What failures and answers mean is decided in ``classify``, ``reading`` and ``stored``.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import httpx2
import openai
from openai import omit

from content_pipeline.adapters.llm.classify import classify
from content_pipeline.adapters.llm.embeddings import OpenAIEmbeddings
from content_pipeline.adapters.llm.headers import kept_headers
from content_pipeline.adapters.llm.http import call_timeout, http_client
from content_pipeline.adapters.llm.profiles import ProviderProfile
from content_pipeline.adapters.llm.reading import Reader
from content_pipeline.adapters.llm.stored import (
    ATTEMPT_KEY,
    PAGE_JOB_KEY,
    judge_listing,
    unknown,
)
from content_pipeline.adapters.llm.strict_schema import strict_schema
from content_pipeline.core.errors import CallFailed, ConfigurationError
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import (
    GenerationLookUp,
    GenerationRequest,
    LanguageModelCapabilities,
    RawResponse,
    Reading,
    Verdict,
)

LOOK_UP_DEADLINE_S = 20.0
"""Seconds for listing one attempt's completions; a list call takes well under one."""

LISTED = 5
"""Completions asked for: one is expected, more would be copies of the same attempt."""

KEYLESS = "none"
"""Sent as key to a server that needs none; the SDK refuses to work without."""


class OpenAIChat:
    """One provider account; threads may share it freely. Close it when the process ends."""

    def __init__(
        self,
        *,
        profile: ProviderProfile,
        api_key: str | None,
        now: Callable[[], datetime],
        base_url: str | None = None,
        organization: str | None = None,
        project: str | None = None,
        proxy_url: str | None = None,
    ) -> None:
        """Prepare the client; nothing is sent.

        ``now`` gives the aware UTC time, against which an announced waiting date is read.
        ``base_url`` defaults to the profile's. Neither these values nor any header is taken from
        the environment. Raises ConfigurationError for an unusable key or address.
        """
        key = _checked_key(api_key, profile)
        address = _checked_address(base_url or profile.default_base_url, profile)
        self._profile = profile
        self._now = now
        self._service = f"{profile.name} at {address.host}"
        self._reader = Reader(profile=profile, service=self._service)
        fixed = {
            "authorization": f"Bearer {key}",
            # An undecodable body is a paid answer lost; a page gains nothing from compression.
            "accept-encoding": "identity",
        }
        if organization is not None:
            fixed["openai-organization"] = organization
        if project is not None:
            fixed["openai-project"] = project
        self._client = openai.OpenAI(
            api_key=key,
            admin_api_key="",  # None would be read from the environment
            webhook_secret="",
            base_url=str(address),
            max_retries=0,
            http_client=http_client(fixed_headers=fixed, proxy_url=proxy_url),
        )
        self._completions = self._client.chat.completions.with_raw_response

    @property
    def capabilities(self) -> LanguageModelCapabilities:
        """What this provider can be asked afterwards."""
        return LanguageModelCapabilities(look_up_by_attempt=self._profile.store_look_up)

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
        parameters = self._checked_parameters(request)
        try:
            answer = self._completions.create(**parameters)
            return RawResponse(
                status=answer.status_code,
                headers=kept_headers(answer.headers),
                body=answer.content,
            )
        except Exception as error:  # noqa: BLE001  # boundary: the port promises CallFailed
            failure = classify(error, service=self._service, now=self._now())
        raise CallFailed(failure)

    def read(self, raw: RawResponse) -> Reading:
        """Interpret an answer of ``send`` or ``look_up``; never raises."""
        return self._reader.read(raw, self._now())

    def look_up(self, attempt_id: str) -> GenerationLookUp:
        """Ask whether the attempt completed; unknown when the provider cannot tell.

        Stored completions appear in the list with a delay nobody documents: absence is only
        proved by asking again after a while.
        """
        if not self._profile.store_look_up:
            return unknown(f"{self._service}: it keeps no completions that could be listed")
        try:
            answer = self._completions.list(
                metadata={ATTEMPT_KEY: attempt_id},
                limit=LISTED,
                timeout=call_timeout(LOOK_UP_DEADLINE_S),
            )
            return judge_listing(answer.content, attempt_id, service=self._service)
        except Exception as error:  # noqa: BLE001  # boundary: the port never raises
            failure = classify(error, service=self._service, now=self._now())
        return GenerationLookUp(verdict=Verdict.UNKNOWN, failure=_of_a_question(failure))

    def _checked_parameters(self, request: GenerationRequest) -> dict[str, Any]:
        try:
            return self._parameters(request)
        except ValueError as error:
            failure = Failure(
                failure_class=FailureClass.INTERNAL,
                message=f"{self._service}: nothing was sent: {error}",
            )
        raise CallFailed(failure)

    def _parameters(self, request: GenerationRequest) -> dict[str, Any]:
        """The SDK's arguments for ``request``."""
        profile = self._profile
        json_schema = {
            "name": request.schema_name,
            "schema": strict_schema(request.schema),
            **({"strict": True} if profile.strict_schema else {}),
        }
        stored = {ATTEMPT_KEY: request.attempt_id, PAGE_JOB_KEY: request.page_job_id}
        return {
            "model": request.model,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.user},
            ],
            "response_format": {"type": "json_schema", "json_schema": json_schema},
            profile.max_tokens_param: request.max_output_tokens,
            "temperature": omit if request.temperature is None else request.temperature,
            "service_tier": profile.service_tier or omit,
            "store": True if profile.store_look_up else omit,
            "metadata": stored if profile.store_look_up else omit,
            # For support cases and for gateways that honour it; nothing here relies on either.
            "extra_headers": {
                "Idempotency-Key": request.attempt_id,
                "X-Client-Request-Id": request.attempt_id,
            },
            "timeout": call_timeout(request.deadline_s),
        }


def _checked_key(api_key: str | None, profile: ProviderProfile) -> str:
    """The key, usable in a header; an error about a bad header would show it."""
    key = (api_key or "").strip()
    if not key and profile.needs_api_key:
        raise ConfigurationError(
            f"provider {profile.name} needs an API key and none was given; set the environment "
            "variable that the site's file names"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigurationError(
            f"the API key for provider {profile.name} contains blanks or characters no key has; "
            "copy it again"
        )
    return key or KEYLESS


def _checked_address(base_url: str | None, profile: ProviderProfile) -> httpx2.URL:
    if base_url is None:
        raise ConfigurationError(
            f"provider {profile.name} has no fixed address; set base_url, e.g. "
            "https://models.example.com/v1"
        )
    try:
        address = httpx2.URL(base_url)
    except httpx2.InvalidURL:
        address = httpx2.URL("")
    if address.scheme not in ("https", "http") or not address.host:
        raise ConfigurationError(
            f"base_url of provider {profile.name} must be an http or https address such as "
            "https://models.example.com/v1"
        )
    if address.userinfo or address.query or address.fragment:
        raise ConfigurationError(
            f"base_url of provider {profile.name} must not carry credentials or a query, because "
            "addresses are logged; give the key as the API key"
        )
    return address


def _of_a_question(failure: Failure) -> Failure:
    """A failed look-up changes nothing anywhere, so its own outcome is never uncertain."""
    if failure.failure_class is not FailureClass.UNCERTAIN:
        return failure
    return Failure(
        failure_class=FailureClass.TRANSIENT,
        message=f"asking for the stored completion failed: {failure.message}",
        http_status=failure.http_status,
        request_id=failure.request_id,
        retry_after_s=failure.retry_after_s,
    )
