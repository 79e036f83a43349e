"""A site as its owners declare it: where topics come from, how pages are made, where they go.

What belongs here: the settings model, one field per decision of a content team, with defaults,
bounds and plain-words descriptions. Reading the file and resolving its paths is ``config``'s.
Credentials never stand here: fields that name one name the environment variable that holds it.
"""

import re
from decimal import Decimal
from enum import StrEnum
from math import ceil
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from content_pipeline.core.buckets import MOST_BUCKETS, Buckets, PartitionBy
from content_pipeline.core.cms_settings import (
    CMSSettings,
    FolderCMSSettings,
    SandboxCMSSettings,
    WordPressCMSSettings,
    why_unfit_for_wordpress,
)
from content_pipeline.core.generation_settings import GenerationSettings
from content_pipeline.core.health import HealthSettings
from content_pipeline.core.hook_settings import (
    LISTING_OF_BUCKETS_S,
    AnyHookSettings,
    FileHookSettings,
    HookSettings,
    hooks_of,
    longest_call_s,
)
from content_pipeline.core.publishing import ReactionPolicy
from content_pipeline.core.schedule_settings import ScheduleSettings
from content_pipeline.core.settings import Retries, Settings, VariableName
from content_pipeline.core.time_limits import why_out_of_order
from content_pipeline.core.validation import ArticleRules

SITE_NAME = r"^[a-z][a-z0-9_]{0,39}$"
"""Also a Dagster asset-key part, group name and folder name, so lower case and short."""

PATH_FIELD = re.compile(r"\{([^{}]+)\}")
"""A column in a path template."""

_FIXED_PATH = re.compile(r"(/[A-Za-z0-9_~-]+)+/")
"""A path template with its columns filled: what every CMS and web server takes without a quarrel,
and what can be nobody's sitemap.xml. Refused here, or every page would be paid for and refused."""


class WhenGone(StrEnum):
    """What happens to the page of a topic that is no longer in the table."""

    KEEP = "keep"
    UNPUBLISH = "unpublish"
    """It is taken off the site."""
    REDIRECT = "redirect"
    """It is taken off the site, and visitors are led to ``redirect_to``."""


class TopicSource(Settings):
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
        WhenGone,
        Field(description="keep, unpublish or redirect the page of a topic that left the table"),
    ] = WhenGone.KEEP
    redirect_to: Annotated[
        str | None, Field(description="path or URL that visitors of such a page are led to")
    ] = None
    most_gone_share: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="a larger share of the topics does not go at once: nothing is changed then",
        ),
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


class ArticleSettings(Settings):
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


class Budgets(Settings):
    """Caps in dollars; a call that could pass one is not made."""

    page_usd: Annotated[Decimal, Field(gt=0)] = Decimal("1")
    site_day_usd: Annotated[Decimal, Field(gt=0)] = Decimal("50")
    write_off_after_days: Annotated[
        int,
        Field(
            ge=1,
            le=3650,
            description="a call that may have been billed is then counted as spent",
        ),
    ] = 30
    """OpenAI keeps answers for 30 days; what it bills shows in less."""


class LaneSettings(Settings):
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
    cms_requests_at_once: Annotated[
        int | None,
        Field(ge=1, le=64, description="per process; else one for each of its in_flight + 4 pages"),
    ] = None
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


class SiteSettings(Settings):
    """One site."""

    site: Annotated[str, Field(pattern=SITE_NAME)]
    title: Annotated[str, Field(min_length=1, max_length=200)]
    base_url: Annotated[str, Field(description="canonical base, e.g. https://www.example.com")]
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] = "en"
    owner: Annotated[str, Field(description="team or person in charge, shown everywhere")] = ""
    partition_by: Annotated[
        PartitionBy, Field(description="one Dagster partition per page, or per bucket of pages")
    ] = PartitionBy.PAGE
    buckets: Annotated[
        int | None,
        Field(ge=1, le=MOST_BUCKETS, description="how many, with `partition_by: bucket`"),
    ] = None
    topics: TopicSource
    article: ArticleSettings
    generation: GenerationSettings
    cms: CMSSettings
    budgets: Budgets = Budgets()
    retries: Retries = Field(default_factory=dict)
    lane: LaneSettings = LaneSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    check_public_url: Annotated[
        bool, Field(description="a page counts as published only when a visitor's request shows it")
    ] = False
    site_changes: Annotated[
        ReactionPolicy, Field(description="what to do about pages that were changed on the site")
    ] = ReactionPolicy()
    health: Annotated[
        HealthSettings, Field(description="when the checks of the site's reports warn")
    ] = HealthSettings()
    announce: Annotated[
        tuple[HookSettings, ...] | None,
        Field(description="who is told after pages changed; else the files beside the pages"),
    ] = None

    @property
    def hooks(self) -> tuple[AnyHookSettings, ...]:
        """Who is told after pages changed."""
        return hooks_of(
            self.announce,
            has_folder=isinstance(self.cms, FolderCMSSettings),
            has_redirects=self.topics.when_gone is WhenGone.REDIRECT,
        )

    @property
    def in_buckets(self) -> Buckets | None:
        """The buckets that are the site's partitions; None: its pages are."""
        return None if self.buckets is None else Buckets(count=self.buckets)

    def listing_delay_s(self, hook: str) -> float:
        """After a change, the file of a ``hook`` that lists all pages is written so much later."""
        for each in self.hooks:
            is_it = isinstance(each, FileHookSettings) and each.name == hook
            if is_it and each.debounce_s is not None:
                return each.debounce_s
        return 0.0 if self.buckets is None else LISTING_OF_BUCKETS_S

    @property
    def telling_s(self) -> float:
        """After so many seconds without a sign of life, telling a hook counts as interrupted."""
        return max(self.lane.lease_s, longest_call_s(self.hooks))

    @model_validator(mode="after")
    def _buckets_counted(self) -> Self:
        if (self.partition_by is PartitionBy.BUCKET) != (self.buckets is not None):
            raise ValueError(
                "`partition_by: bucket` and `buckets`, their number, go together; about 100 pages "
                "a bucket are good to look at"
            )
        return self

    @model_validator(mode="after")
    def _fitting_hooks(self) -> Self:
        _ = self.hooks
        return self

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
        if isinstance(self.cms, WordPressCMSSettings | SandboxCMSSettings):
            why = why_unfit_for_wordpress(
                sample_path=PATH_FIELD.sub("x", self.topics.path),
                deadline_s=self.cms.deadline_s,
                longest_hold_s=self.lane.longest_hold_s,
                in_turn=self._requests_in_turn(),
            )
            if why is not None:
                raise ValueError(why)
        return self

    def _requests_in_turn(self) -> int:
        """After how many requests to the CMS, its own included, a page at work got its answer."""
        at_once = self.lane.cms_requests_at_once
        return 1 if at_once is None else 1 + ceil(self.generation.in_flight / at_once)

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
