"""What each kind of provider can do: one frozen profile per name used in a site's file.

What belongs here: facts about OpenAI-compatible servers that change what is sent or how an
answer is read. Keys, addresses and prices of one site are constructor arguments elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.generation_settings import WITH_RESPONSES


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderProfile:
    """The capabilities of one kind of provider; the defaults are those of an unknown server."""

    name: str
    default_base_url: str | None = None
    """Where it is reached unless a site says otherwise; None: a site must say it."""
    needs_api_key: bool = True
    store_look_up: bool = False
    """Completions sent with ``store`` and ``metadata`` can be listed by that metadata."""
    finish_reason_null_ok: bool = False
    """A complete answer may carry no finish reason."""
    max_tokens_param: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    strict_schema: bool = False
    """``strict`` of a JSON schema is understood. Others constrain by the schema or ignore it."""
    service_tier: Literal["default"] | None = None
    """Sent with every call. OpenAI's own default is a setting of the *project*, which may be the
    priority tier at twice the price that was reserved."""
    price_provider: str | None = None
    """Its name in the price list; None: no public prices, so a site must state its own."""

    @property
    def responses(self) -> bool:
        """It keeps responses, background ones too, and hands them out by id."""
        return self.name in WITH_RESPONSES


PROFILES: Mapping[str, ProviderProfile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            ProviderProfile(
                name="openai",
                default_base_url="https://api.openai.com/v1",
                store_look_up=True,
                max_tokens_param="max_completion_tokens",
                strict_schema=True,
                service_tier="default",
                price_provider="openai",
            ),
            # The v1 endpoint: https://<resource>.openai.azure.com/openai/v1, no api-version.
            ProviderProfile(
                name="azure",
                store_look_up=True,
                max_tokens_param="max_completion_tokens",
                strict_schema=True,
                price_provider="azure",
            ),
            ProviderProfile(
                name="openrouter",
                default_base_url="https://openrouter.ai/api/v1",
                strict_schema=True,
                price_provider="openrouter",
            ),
            # vLLM takes ``store`` silently and keeps nothing.
            ProviderProfile(name="vllm", needs_api_key=False, strict_schema=True),
            ProviderProfile(
                name="ollama",
                default_base_url="http://127.0.0.1:11434/v1",
                needs_api_key=False,
                finish_reason_null_ok=True,
            ),
            ProviderProfile(
                name="llama_cpp",
                default_base_url="http://127.0.0.1:8080/v1",
                needs_api_key=False,
            ),
            # The offline provider that comes with the project behaves like OpenAI.
            ProviderProfile(
                name="sandbox",
                needs_api_key=False,
                store_look_up=True,
                max_tokens_param="max_completion_tokens",
                strict_schema=True,
                service_tier="default",
                price_provider="openai",
            ),
            ProviderProfile(name="generic", needs_api_key=False),
        )
    }
)


def provider_profile(name: str) -> ProviderProfile:
    """The profile called ``name``. Raises ConfigurationError that lists the known names."""
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(sorted(PROFILES))
        raise ConfigurationError(
            f"there is no provider profile {name!r}; use one of {known} "
            "('generic' fits any other OpenAI-compatible server)"
        ) from None
