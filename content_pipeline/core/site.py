"""A site as its owners declare it: where topics come from, how pages are made, where they go.

What belongs here: the settings model, one field per decision of a content team, with defaults,
bounds and plain-words descriptions. Reading the file and resolving its paths is ``config``'s.
Credentials never stand here: fields that name one name the environment variable that holds it.
"""

import re
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from content_pipeline.core.chain import StepRole
from content_pipeline.core.cms_settings import CMSSettings, WordPressCMSSettings
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.publishing import ReactionPolicy
from content_pipeline.core.retries import TRIED_ONCE, RetryPolicy
from content_pipeline.core.settings import VariableName
from content_pipeline.core.time_limits import why_out_of_order
from content_pipeline.core.validation import ArticleRules
from content_pipeline.core.vectors import MOST_NUMBERS

SITE_NAME = r"^[a-z][a-z0-9_]{0,39}$"
"""Also a Dagster asset-key part, group name and folder name, so lower case and short."""

Provider = Literal[
    "sandbox", "openai", "azure", "openrouter", "vllm", "ollama", "llama_cpp", "generic"
]


PATH_FIELD = re.compile(r"\{([^{}]+)\}")
"""A column in a path template."""

_FIXED_PATH = re.compile(r"(/[A-Za-z0-9_~-]+)+/")
"""A path template with its columns filled: what every CMS and web server takes without a quarrel,
and what can be nobody's sitemap.xml. Refused here, or every page would be paid for and refused."""


def _worth_another_try(
    value: dict[FailureClass, RetryPolicy],
) -> dict[FailureClass, RetryPolicy]:
    if FailureClass.BUDGET in value:
        raise ValueError(
            "budget has no policy: nothing was tried, and the page waits for a new day or a "
            "higher cap until lane.page_deadline_s"
        )
    for failure_class in sorted(value.keys() & TRIED_ONCE):
        if value[failure_class].attempts > 1:
            raise ValueError(
                f"{failure_class} is tried once: the same again would end the same. To have "
                "drafts that break a rule written anew, use article.regenerations"
            )
    return value


Retries = Annotated[dict[FailureClass, RetryPolicy], AfterValidator(_worth_another_try)]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WhenGone(StrEnum):
    """What happens to the page of a topic that is no longer in the table."""

    KEEP = "keep"
    UNPUBLISH = "unpublish"
    """It is taken off the site."""
    REDIRECT = "redirect"
    """It is taken off the site, and visitors are led elsewhere."""


class TopicSource(_Settings):
    """The table of topics and what its columns mean."""

    table: Annotated[str | None, Field(description="CSV or Parquet file beside this file")] = None
    query: Annotated[str | None, Field(description="SQL query, instead of a table")] = None
    database_env: Annotated[
        VariableName | None, Field(description="variable with the database URL for `query`")
    ] = None
    id: Annotated[str, Field(description="column with the topic's stable id")]
    name: Annotated[str, Field(description="column with the topic's name")]
    path: Annotated[
        str, Field(description="the page's path; {column} stands for a slug of that column")
    ] = "/{name}/"
    when_gone: Annotated[
        WhenGone, Field(description="what happens to the page of a topic that left the table")
    ] = WhenGone.KEEP
    redirect_to: Annotated[
        str | None, Field(description="path or URL that visitors of such a page are led to")
    ] = None
    most_gone_share: Annotated[
        float, Field(ge=0, le=1, description="more pages at once are not taken off the site")
    ] = 0.2

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        if (self.when_gone is WhenGone.REDIRECT) != (self.redirect_to is not None):
            raise ValueError("`redirect_to` and `when_gone: redirect` go together")
        return self

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.table is None) == (self.query is None):
            raise ValueError("give either `table` (a file) or `query` (SQL), not both")
        if (self.query is None) != (self.database_env is None):
            raise ValueError("`query` and `database_env` go together")
        return self

    @field_validator("path")
    @classmethod
    def _publishable(cls, value: str) -> str:
        if not PATH_FIELD.search(value):
            raise ValueError("`path` must name a {column}, or all topics claim one page")
        if not _FIXED_PATH.fullmatch(PATH_FIELD.sub("x", value)):
            raise ValueError(
                "`path` must start with and end in a slash, e.g. /{name}/; between single slashes "
                "it may hold a {column}, letters, digits, '_', '~' and '-'"
            )
        return value


class ArticleSettings(_Settings):
    """What an article is made from and must hold."""

    prompt: Annotated[str, Field(description="Jinja template file beside this file")] = "prompt.md"
    facts: Annotated[
        dict[str, str], Field(min_length=1, description="column: label, in the order of the prompt")
    ]
    must_state: Annotated[
        tuple[str, ...], Field(description="columns that are required and must be stated")
    ] = ()
    rules: ArticleRules = ArticleRules()
    regenerations: Annotated[
        int,
        Field(ge=0, le=1, description="more drafts to pay for, with the findings, after a bad one"),
    ] = 0
    preview: Annotated[
        bool, Field(description="show the beginning of each draft and page in Dagster")
    ] = False

    @model_validator(mode="after")
    def _known_facts(self) -> Self:
        unknown = sorted(set(self.must_state) - set(self.facts))
        if unknown:
            raise ValueError(
                f"must_state names columns that are not in facts: {', '.join(unknown)}"
            )
        labels = list(self.facts.values())
        for column, label in self.facts.items():
            if not label.strip():
                raise ValueError(f"the fact {column!r} has an empty label; say what it is")
            if labels.count(label) > 1:
                raise ValueError(f"two facts are called {label!r}, so one would hide the other")
        return self


class Price(_Settings):
    """Dollars per million tokens, for a model that the public price list does not know."""

    input_usd_per_mtok: Annotated[Decimal, Field(ge=0)]
    output_usd_per_mtok: Annotated[Decimal, Field(ge=0)]
    cached_input_usd_per_mtok: Annotated[Decimal | None, Field(ge=0)] = None


class GenerationStep(_Settings):
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
    retries: Annotated[
        Retries, Field(description="by class of failure, where this step's are not the site's")
    ] = {}

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


class SandboxSettings(_Settings):
    """How the offline provider behaves."""

    latency_median_s: Annotated[float, Field(ge=0, le=60)] = 0.05
    latency_sigma: Annotated[float, Field(ge=0, le=3)] = 0.5
    most_at_once: Annotated[
        int, Field(ge=0, description="calls generated at once, more are rejected; 0: any number")
    ] = 0
    seed: int = 1


class GenerationSettings(_Settings):
    """The paid call."""

    provider: Provider
    model: Annotated[str, Field(min_length=1, max_length=200)]
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


class Budgets(_Settings):
    """Caps in dollars; a call that could pass one is not made."""

    page_usd: Annotated[Decimal, Field(gt=0)] = Decimal("1")
    site_day_usd: Annotated[Decimal, Field(gt=0)] = Decimal("50")


class LaneSettings(_Settings):
    """How workers hold pages and how long a run waits for them."""

    lease_s: Annotated[
        float, Field(ge=0.5, le=600, description="a dead worker's page is free after this")
    ] = 15
    patience_s: Annotated[
        float,
        Field(ge=0, le=3600, description="a run waits this long for a page; else a later run"),
    ] = 60
    publish_quiet_s: Annotated[
        float, Field(ge=0, le=3600, description="longer than the CMS's longest request")
    ] = 60
    longest_hold_s: Annotated[
        float,
        Field(gt=0, le=86_400, description="a worker whose page makes no move so long loses it"),
    ] = 600
    run_limit_s: Annotated[
        float, Field(gt=0, le=7 * 86_400, description="a Dagster run on pages is ended after this")
    ] = 1800
    page_deadline_s: Annotated[
        float,
        Field(gt=0, le=366 * 86_400, description="nothing is tried again so long after the wish"),
    ] = 14 * 86_400  # two weeks: a service may ask for the longest wait of a site file and more


class SiteSettings(_Settings):
    """One site."""

    site: Annotated[str, Field(pattern=SITE_NAME)]
    title: Annotated[str, Field(min_length=1, max_length=200)]
    base_url: Annotated[str, Field(description="canonical base, e.g. https://www.example.com")]
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] = "en"
    owner: Annotated[str, Field(description="team or person in charge, shown everywhere")] = ""
    topics: TopicSource
    article: ArticleSettings
    generation: GenerationSettings
    cms: CMSSettings
    budgets: Budgets = Budgets()
    retries: Retries = {}
    lane: LaneSettings = LaneSettings()
    site_changes: Annotated[
        ReactionPolicy, Field(description="what to do about pages that were changed on the site")
    ] = ReactionPolicy()

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        limit = self.article.rules.max_similarity
        if limit is not None and not any(step.is_embedding for step in self.generation.steps):
            raise ValueError(
                "article.rules.max_similarity compares pages by their vectors; add a step with "
                "`output: embedding` to generation.steps"
            )
        return self

    @model_validator(mode="after")
    def _limits_in_order(self) -> Self:
        generation, lane = self.generation, self.lane
        why = why_out_of_order(
            deadline_s=generation.deadline_s,
            answer_slack_s=generation.answer_slack_s,
            lease_s=lane.lease_s,
            patience_s=lane.patience_s,
            longest_hold_s=lane.longest_hold_s,
            run_limit_s=lane.run_limit_s,
            page_deadline_s=lane.page_deadline_s,
        )
        if why is not None:
            raise ValueError(why)
        return self

    @model_validator(mode="after")
    def _fit_for_its_cms(self) -> Self:
        if isinstance(self.cms, WordPressCMSSettings):
            why = self.cms.why_unfit(
                sample_path=PATH_FIELD.sub("x", self.topics.path),
                longest_hold_s=self.lane.longest_hold_s,
            )
            if why is not None:
                raise ValueError(why)
        return self

    @field_validator("base_url")
    @classmethod
    def _absolute_base(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url must be an absolute http(s) URL")
        if "@" in parts.netloc or "?" in value or "#" in value:
            raise ValueError("base_url must hold no credentials, query or fragment")
        if not (value.isascii() and value.isprintable()) or any(mark in value for mark in ' \\"<>'):
            raise ValueError("base_url must be written as it is sent: in percent-encoded ASCII")
        if parts.port == 0:  # the port of a URL is parsed, and refused, only when it is read
            raise ValueError("base_url names port 0, where nothing can be reached")
        return value.rstrip("/")

    def url_of(self, path: str) -> str:
        """The canonical absolute URL of ``path``."""
        return self.base_url + path

    def model_identity(self, model: str) -> str:
        """``model`` as it enters a page's identity: sandbox text is never taken for a model's."""
        return f"sandbox/{model}" if self.generation.provider == "sandbox" else model
