"""The arguments of one call of the chat completions endpoint.

What belongs here: a pure function of the request and the provider's profile.
"""

from typing import Any

from openai import omit

from content_pipeline.adapters.llm.profiles import ProviderProfile
from content_pipeline.adapters.llm.strict_schema import strict_schema
from content_pipeline.core.ports import GenerationRequest


def chat_arguments(
    request: GenerationRequest, profile: ProviderProfile, metadata: dict[str, str]
) -> dict[str, Any]:
    """What ``chat.completions.create`` gets. Raises ValueError for an impossible schema."""
    json_schema = {
        "name": request.schema_name,
        "schema": strict_schema(request.schema),
        **({"strict": True} if profile.strict_schema else {}),
    }
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
        "metadata": metadata if profile.store_look_up else omit,
    }
