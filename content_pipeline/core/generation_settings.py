"""The section of a site file about the paid calls: provider, API, model, limits, steps.

What belongs here: the settings model and what its keys allow together. What a provider's server can
do beyond that is its adapter's.
"""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from content_pipeline.core.chain import StepRole
from content_pipeline.core.settings import Retries, Settings, VariableName
from content_pipeline.core.vectors import MOST_NUMBERS

Provider = Literal[
    "sandbox", "openai", "azure", "openrouter", "vllm", "ollama", "llama_cpp", "generic"
]

WITH_RESPONSES: frozenset[Provider] = frozenset({"sandbox", "openai", "azure"})
"""Where the Responses API keeps an answer and hands it out by id, in the background too. Elsewhere
it is missing, forgets (Ollama, vLLM by default) or ignores ``background`` (llama.cpp)."""


class GenerationAPI(StrEnum):
    """The endpoint that paid calls go to, which decides how a lost answer is found again."""

    CHAT = "chat"
    """Chat completions: stored ones can be listed by the attempt's id."""
    RESPONSES = "responses"
    """Responses: one can be asked for by the id that the provider gave it."""


class Price(Settings):
    """Dollars per million tokens, for a model that the public price list does not know."""

    input_usd_per_mtok: Annotated[Decimal, Field(ge=0)]
    output_usd_per_mtok: Annotated[Decimal, Field(ge=0)]
    cached_input_usd_per_mtok: Annotated[Decimal | None, Field(ge=0)] = None


class GenerationStep(Settings):
    """One paid call of a chain; what it leaves out is the site's."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    prompt: Annotated[str, Field(description="Jinja template file; may use {{ earlier_step }}")]
    output: Annotated[
        str,
        Field(
            description="`article`, `review`, `embedding`, or a JSON schema file beside this file"
        ),
    ] = "article"
    model: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    max_output_tokens: Annotated[int | None, Field(ge=16, le=200_000)] = None
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    dimensions: Annotated[
        int | None,
        Field(ge=1, le=MOST_NUMBERS, description="numbers of an embedding; else the model's own"),
    ] = None
    price: Price | None = None
    retries: Retries = Field(
        default_factory=dict,
        description="by class of failure, where this step's are not the site's",
    )

    @property
    def is_embedding(self) -> bool:
        """Whether the step makes a vector instead of text."""
        return self.output == StepRole.EMBEDDING

    @model_validator(mode="after")
    def _fits_its_output(self) -> Self:
        if not self.is_embedding:
            if self.dimensions is not None:
                raise ValueError("`dimensions` are an embedding's; this step writes text")
            return self
        if self.model is None:
            raise ValueError(
                "an embedding needs a `model` of its own, e.g. text-embedding-3-small: the site's "
                "writes text"
            )
        if self.max_output_tokens is not None or self.temperature is not None:
            raise ValueError("an embedding has neither `max_output_tokens` nor `temperature`")
        return self


class SandboxSettings(Settings):
    """How the offline provider behaves."""

    latency_median_s: Annotated[float, Field(ge=0, le=60)] = 0.05
    latency_sigma: Annotated[float, Field(ge=0, le=3)] = 0.5
    most_at_once: Annotated[
        int, Field(ge=0, description="calls generated at once, more are rejected; 0: any number")
    ] = 0
    seed: int = 1


class GenerationSettings(Settings):
    """The paid call."""

    provider: Provider
    model: Annotated[str, Field(min_length=1, max_length=200)]
    api: Annotated[GenerationAPI, Field(description="endpoint of the calls: chat or responses")] = (
        GenerationAPI.CHAT
    )
    background: Annotated[
        bool,
        Field(
            description="with `api: responses`: the provider answers at once with an id and works "
            "on; a lost connection or worker then loses nothing"
        ),
    ] = False
    max_output_tokens: Annotated[int, Field(ge=16, le=200_000)] = 3000
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    deadline_s: Annotated[float, Field(gt=0, le=3600, description="wall clock of one call")] = 120
    answer_slack_s: Annotated[
        float,
        Field(ge=0, le=3600, description="how long a call may still finish after its deadline"),
    ] = 60
    in_flight: Annotated[int, Field(ge=1, le=256, description="calls at once per process")] = 8
    in_flight_everywhere: Annotated[
        int, Field(ge=1, le=4096, description="calls at once of all processes on this account")
    ] = 64
    api_key_env: VariableName = "OPENAI_API_KEY"
    base_url_env: VariableName = "OPENAI_BASE_URL"
    price: Price | None = None
    sandbox: SandboxSettings = SandboxSettings()
    steps: Annotated[
        tuple[GenerationStep, ...], Field(description="several calls per page, in order")
    ] = ()
    assemble: Annotated[
        dict[Literal["title", "meta_description", "introduction", "sections"], str] | None,
        Field(description="article field: `step` or `step.key`, when no step writes the article"),
    ] = None

    @model_validator(mode="after")
    def _offered_api(self) -> Self:
        if self.api is GenerationAPI.RESPONSES and self.provider not in WITH_RESPONSES:
            raise ValueError(
                f"provider {self.provider!r} does not keep responses that could be asked for after "
                f"a lost answer; use `api: chat`, or one of {', '.join(sorted(WITH_RESPONSES))}"
            )
        if self.background and self.api is not GenerationAPI.RESPONSES:
            raise ValueError("`background: true` needs `api: responses`; chat has no such mode")
        return self

    @model_validator(mode="after")
    def _whole_chain(self) -> Self:
        names = [step.name for step in self.steps]
        if len(set(names)) != len(names):
            raise ValueError("two steps share a name; every step needs its own")
        vectors = [step.name for step in self.steps if step.is_embedding]
        if len(vectors) > 1:
            raise ValueError("pages are compared by one vector; keep one step of those that embed")
        if self.assemble is None:
            if self.steps and not any(step.output == "article" for step in self.steps):
                raise ValueError("no step writes the article; add `assemble` or `output: article`")
            return self
        if len(self.assemble) != len(("title", "meta_description", "introduction", "sections")):
            raise ValueError("`assemble` must name title, meta_description, introduction, sections")
        for source in self.assemble.values():
            if source.partition(".")[0] not in names:
                raise ValueError(f"`assemble` names {source!r}, and no step is called that")
            if source.partition(".")[0] in vectors:
                raise ValueError(f"`assemble` names {source!r}, which is a vector and no text")
        return self
