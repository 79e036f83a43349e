"""The arguments of one call of the Responses endpoint, in the background or not.

What belongs here: a pure function of the request and the provider's profile.
"""

from typing import Any

from openai import omit

from content_pipeline.adapters.llm.profiles import ProviderProfile
from content_pipeline.adapters.llm.strict_schema import strict_schema
from content_pipeline.core.ports import GenerationRequest


def responses_arguments(
    request: GenerationRequest,
    profile: ProviderProfile,
    metadata: dict[str, str],
    *,
    background: bool,
) -> dict[str, Any]:
    """What ``responses.create`` gets. Raises ValueError for an impossible schema.

    ``store`` is said although it is the default: a project may forbid it, and then this is a
    refusal instead of an answer that is gone after ten minutes.
    """
    text_format = {
        "type": "json_schema",
        "name": request.schema_name,
        "schema": strict_schema(request.schema),
        "strict": True,
    }
    return {
        "model": request.model,
        "instructions": request.system,
        "input": [{"role": "user", "content": request.user}],
        "text": {"format": text_format},
        "max_output_tokens": request.max_output_tokens,
        "temperature": omit if request.temperature is None else request.temperature,
        "service_tier": profile.service_tier or omit,
        "background": background,
        "store": True,
        "metadata": metadata,
    }
