"""One provider account as a client of the SDK: its key, address and fixed headers.

What belongs here: building the client. The SDK's own retries are off: by default it repeats a
paid POST on every timeout, cut connection, 429 and 5xx. Nothing is taken from the environment.
"""

import httpx2
import openai

from content_pipeline.adapters.llm.http import http_client
from content_pipeline.adapters.llm.profiles import ProviderProfile
from content_pipeline.core.errors import ConfigurationError

KEYLESS = "none"
"""Sent as key to a server that needs none; the SDK refuses to work without."""


def open_client(
    profile: ProviderProfile,
    *,
    api_key: str | None,
    base_url: str | None,
    organization: str | None,
    project: str | None,
    proxy_url: str | None,
) -> openai.OpenAI:
    """The client; nothing is sent. ``base_url`` defaults to the profile's.

    Raises ConfigurationError for an unusable key or address.
    """
    key = _checked_key(api_key, profile)
    address = _checked_address(base_url or profile.default_base_url, profile)
    fixed = {
        "authorization": f"Bearer {key}",
        # An undecodable body is a paid answer lost; a page gains nothing from compression.
        "accept-encoding": "identity",
    }
    if organization is not None:
        fixed["openai-organization"] = organization
    if project is not None:
        fixed["openai-project"] = project
    return openai.OpenAI(
        api_key=key,
        admin_api_key="",  # None would be read from the environment
        webhook_secret="",
        base_url=str(address),
        max_retries=0,
        http_client=http_client(fixed_headers=fixed, proxy_url=proxy_url),
    )


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
