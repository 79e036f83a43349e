"""The names of a site's assets, partitions and checks, in one place.

What belongs here: naming and the declarations (specs). What materialising one does is in the module
of each asset.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

import dagster as dg

from content_pipeline.components.asset_metadata import site_uri
from content_pipeline.core.buckets import Buckets
from content_pipeline.core.states import Stage
from content_pipeline.site_files import Site

TOPICS_VERSION = "table"
"""The data version of ``topics``, always: a refreshed table with the same rows changes no page, and
a changed row shows in the page itself."""

TOPICS_CODE_VERSION = "1"
PLAN_VERSION = "1"
REPORTS_VERSION = "1"
"""The code versions of what no prompt or model changes; raised when the code makes something else.
"""

ANNOUNCEMENT_VERSION = "1"
"""The code version of the hooks' assets; without one their logged events would read as unsynced."""

PAGES_PER_RUN = 200
"""Of a backfill. A run takes 3.5 s to start, so few pages are dear: 1,000 pages took 52 s in runs
of 100 and 42 s in runs of 200. It is done in a minute or two, and shows pages as it goes."""

BUCKETS_PER_RUN = 10
"""Of a backfill, where partitions are buckets: of 100 pages each, that is a run of 1,000."""

CHECKS: dict[Stage, str] = {
    Stage.DRAFT: "generated",
    Stage.PAGE: "valid",
    Stage.ARTIFACT: "published",
}
"""Asset → its check, which tells for each page what happened and what happens next."""

_DESCRIPTIONS: dict[Stage, str] = {
    Stage.DRAFT: (
        "What the model wrote, paid for and stored in the ledger. A draft that exists is never "
        "paid for again."
    ),
    Stage.PAGE: "The draft meets the site's rules. Costs nothing.",
    Stage.ARTIFACT: (
        "The page is on the site: published, read back and found to hold exactly this revision. "
        "Alone, it publishes the pages that are ready and pays for nothing."
    ),
}

_CHECK_DESCRIPTIONS: dict[Stage, str] = {
    Stage.DRAFT: "Whether each page has a draft; else the class of the failure and what to do.",
    Stage.PAGE: "Whether each draft meets the site's rules; else which are broken.",
    Stage.ARTIFACT: "Whether each page is published and proved; else why not, and what to do.",
}

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteAssets:
    """What one site is called in Dagster."""

    site: Site

    @property
    def name(self) -> str:
        """The site's name: its assets' prefix and group."""
        return self.site.settings.site

    @property
    def partitions_name(self) -> str:
        """What the set of the site's partitions is called."""
        return f"{self.name}_pages"

    @property
    def lane_op(self) -> str:
        """The step that makes pages."""
        return f"{self.name}_pages"

    @property
    def buckets(self) -> Buckets | None:
        """What the site's partitions are; None: its pages, one each."""
        return self.site.settings.in_buckets

    @property
    def pages(self) -> dg.PartitionsDefinition:
        """One partition per page, whose key is the topic's id, or per bucket of pages.

        Buckets are static: the site file alone says which there are, nobody has to register them,
        and those of another number are gone from the UI as soon as the file is loaded.
        """
        if self.buckets is None:
            return dg.DynamicPartitionsDefinition(name=self.partitions_name)
        return dg.StaticPartitionsDefinition(list(self.buckets.names()))

    def partition_of(self, topic_key: str) -> str:
        """The key of the partition that shows the page of a topic."""
        return topic_key if self.buckets is None else self.buckets.name_of(topic_key)

    @property
    def topics(self) -> dg.AssetKey:
        """The table of topics as the ledger took it in."""
        return dg.AssetKey([self.name, "topics"])

    @property
    def nightly_plan(self) -> dg.AssetKey:
        """What is due, as the schedule or a person had it planned."""
        return dg.AssetKey([self.name, "nightly_plan"])

    def announcement(self, hook: str) -> dg.AssetKey:
        """What a hook is told once pages are proved."""
        return dg.AssetKey([self.name, hook])

    @property
    def run_limit(self) -> str:
        """After how many seconds a run on pages is ended, as Dagster's tag wants it."""
        return f"{self.site.settings.lane.run_limit_s:g}"

    def key(self, stage: Stage) -> dg.AssetKey:
        """The partitioned asset of ``stage``."""
        return dg.AssetKey([self.name, stage.value])

    def stages(self, keys: Collection[dg.AssetKey]) -> frozenset[Stage]:
        """The stages among the assets ``keys``."""
        return frozenset(stage for stage in Stage if self.key(stage) in keys)

    @property
    def owners(self) -> list[str]:
        """The site's owner as Dagster accepts it: an e-mail address or a team.

        Jobs have none: Dagster makes them anew for each run, and warns each time that it may change
        what an owner of a job is.
        """
        owner = self.site.settings.owner
        if not owner:
            return []
        return [owner if _EMAIL.fullmatch(owner) else f"team:{owner}"]

    @property
    def tags(self) -> dict[str, str]:
        """What all of the site is found by, its runs included."""
        return {"site": self.name}

    def stage_specs(self) -> list[dg.AssetSpec]:
        """``draft``, ``page`` and ``artifact``, each skippable: a page may not get that far."""
        settings = self.site.settings
        provider = settings.generation.provider
        kinds: dict[Stage, set[str]] = {
            Stage.DRAFT: {"openai", provider},
            Stage.PAGE: {"python"},
            Stage.ARTIFACT: {"html", settings.cms.kind},
        }
        parents = {
            Stage.DRAFT: self.topics,
            Stage.PAGE: self.key(Stage.DRAFT),
            Stage.ARTIFACT: self.key(Stage.PAGE),
        }
        return [
            dg.AssetSpec(
                self.key(stage),
                deps=[parents[stage]],
                description=_DESCRIPTIONS[stage],
                group_name=self.name,
                kinds=kinds[stage],
                owners=self.owners,
                tags=self.tags,
                code_version=self.site.generation_version,
                metadata={
                    "model": settings.generation.model,
                    "generation_version": self.site.generation_version,
                    "site": dg.MetadataValue.url(settings.base_url),
                    **(site_uri(self.site) if stage is Stage.ARTIFACT else {}),
                },
                skippable=True,
            )
            for stage in Stage
        ]

    def check_specs(self) -> list[dg.AssetCheckSpec]:
        """One check per partitioned asset, evaluated partition by partition."""
        return [
            dg.AssetCheckSpec(
                CHECKS[stage],
                asset=self.key(stage),
                description=_CHECK_DESCRIPTIONS[stage],
                partitions_def=self.pages,
            )
            for stage in Stage
        ]

    def parents_of(self, stage: Stage, revision: int | None) -> dict[dg.AssetKey, str]:
        """Parent of ``stage`` → its data version, as recorded with a page's materialization.

        A bucket has no ``revision`` of its own.
        """
        if stage is Stage.DRAFT:
            return {self.topics: TOPICS_VERSION}
        earlier = Stage.DRAFT if stage is Stage.PAGE else Stage.PAGE
        return {self.key(earlier): "" if revision is None else str(revision)}
