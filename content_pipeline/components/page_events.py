"""From pages of the ledger to Dagster's events: materializations and check evaluations.

What belongs here: building and logging events of a run. They go out one by one as pages come to
rest, so a run that dies leaves what it did on record.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
from sqlalchemy import Connection

from content_pipeline.adapters.cms.folder_paths import page_file
from content_pipeline.components.dagster_private import (
    CheckedMaterialization,
    checked_materializations,
    log_check,
    version_tags,
)
from content_pipeline.components.page_metadata import (
    Metadata,
    PageInRun,
    artifact_metadata,
    check_metadata,
    draft_metadata,
    page_metadata,
    preview_metadata,
)
from content_pipeline.components.project import this_project
from content_pipeline.components.site_assets import CHECKS, SiteAssets
from content_pipeline.components.standing import Standing, reached_by, standing
from content_pipeline.core.failures import EXPLANATIONS
from content_pipeline.core.states import NEXT, PageJobState, Stage
from content_pipeline.ledger import drafts, jobs, reports
from content_pipeline.ledger.reports import PageReport
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.site_cms import published_folder

RunContext = dg.OpExecutionContext | dg.AssetExecutionContext


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEvents:
    """The events of one run's pages; a page's asset is materialized at most once in it."""

    context: RunContext
    assets: SiteAssets
    runtime: SiteRuntime
    stages: frozenset[Stage]
    """The assets that the run is about."""
    logged: dict[Stage, set[str]] = field(default_factory=lambda: {stage: set() for stage in Stage})
    made: dict[Stage, set[str]] = field(default_factory=lambda: {stage: set() for stage in Stage})
    """Those of ``logged`` that this run brought about itself."""
    told: dict[str, PageReport] = field(default_factory=dict)
    """Failed pages by topic, as they stood when their checks were evaluated."""

    @property
    def made_last(self) -> frozenset[str]:
        """The topics that this run itself brought to the last of its stages."""
        return frozenset(self.made[_in_order(self.stages)[-1]])

    def page_came_to_rest(self, topic_key: str) -> None:
        """Materialize what is done of a page that this run worked on; tell at once why it failed.

        A run may go on for minutes, and a person who must act need not wait for its end.
        """
        with self.runtime.ledger.begin() as connection:
            (page,) = reports.page_reports(connection, self.assets.name, [topic_key])
            history = reports.history(connection, page.page_job_id)
            self._materialize(connection, page, made=reached_by(self.runtime.worker, history))
        if page.needs_person:
            evaluate_checks(self.context, self.assets, self.stages, [page])
            self.told[topic_key] = page

    def untold(self, pages: Iterable[PageReport]) -> list[PageReport]:
        """Those of ``pages`` that stand otherwise than they were told, or were not told."""
        return [page for page in pages if self.told.get(page.topic_key) != page]

    def pages_found_done(self, pages: Iterable[PageReport]) -> None:
        """Materialize what is done of ``pages`` and was not logged: this run did nothing for it."""
        for page in pages:
            with self.runtime.ledger.begin() as connection:
                self._materialize(connection, page, made=frozenset())

    def _materialize(
        self, connection: Connection, page: PageReport, *, made: frozenset[Stage]
    ) -> None:
        for stage in _in_order(self.stages):
            if page.topic_key in self.logged[stage] or standing(page, stage) is not Standing.DONE:
                continue
            self.logged[stage].add(page.topic_key)
            if stage in made:
                self.made[stage].add(page.topic_key)
            seen = PageInRun(page=page, worker=self.runtime.worker, reused=stage not in made)
            self.context.log_event(
                dg.AssetMaterialization(
                    asset_key=self.assets.key(stage),
                    partition=page.topic_key,
                    description=_summary(seen, stage),
                    metadata=self._metadata(connection, stage, seen),
                    tags=version_tags(
                        page.generation_version, self.assets.parents_of(stage, page.revision)
                    ),
                )
            )

    def _metadata(self, connection: Connection, stage: Stage, seen: PageInRun) -> Metadata:
        if stage is Stage.ARTIFACT:
            return artifact_metadata(seen, self._file_of(seen.page))
        shows_text = self.assets.site.settings.article.preview
        if stage is Stage.DRAFT and not shows_text:
            return draft_metadata(seen)
        article = drafts.load(connection, jobs.load(connection, seen.page.page_job_id))
        known = draft_metadata(seen) if stage is Stage.DRAFT else page_metadata(seen, article)
        return known | preview_metadata(article) if shows_text else known

    def _file_of(self, page: PageReport) -> Path | None:
        folder = published_folder(self.assets.site, this_project())
        if folder is None or page.path is None:
            return None
        return folder / page_file(page.path)


def evaluate_checks(
    context: RunContext, assets: SiteAssets, stages: frozenset[Stage], pages: Sequence[PageReport]
) -> None:
    """Tell the story of every page, green or not, in the check of each asset of ``stages``.

    The story of a failed page, and of one that is changed on the site or taken off it, is an
    observation as well: its partition's own pane lists those only.
    """
    keys = [page.topic_key for page in pages]
    for stage in _in_order(stages):
        materialized = checked_materializations(context.instance, assets.key(stage), keys)
        for page in pages:
            stands = standing(page, stage)
            checked = materialized.get(page.topic_key)
            log_check(context, _evaluation(assets, stage, page, stands, checked))
            if stands is Standing.FAILED or _is_news(page, stage):
                context.log_event(_observation(assets, stage, page, stands))


def _in_order(stages: frozenset[Stage]) -> list[Stage]:
    return [stage for stage in Stage if stage in stages]


_DONE: dict[Stage, str] = {
    Stage.DRAFT: "generated",
    Stage.PAGE: "meets the site's rules",
    Stage.ARTIFACT: "published and proved",
}


def _summary(seen: PageInRun, stage: Stage) -> str:
    if seen.reused:
        return f"{seen.page.name}: {_DONE[stage]} before; nothing was done again"
    return f"{seen.page.name}: {_DONE[stage]}"


def _evaluation(
    assets: SiteAssets,
    stage: Stage,
    page: PageReport,
    stands: Standing,
    checked: CheckedMaterialization | None,
) -> dg.AssetCheckEvaluation:
    needs_person = stands is Standing.FAILED
    return dg.AssetCheckEvaluation(
        asset_key=assets.key(stage),
        check_name=CHECKS[stage],
        passed=stands is Standing.DONE and not _is_news(page, stage),
        severity=dg.AssetCheckSeverity.ERROR if needs_person else dg.AssetCheckSeverity.WARN,
        description=_story(page, stage, stands),
        metadata=check_metadata(page),
        target_materialization_data=checked,
        partition=page.topic_key,
    )


def _is_news(page: PageReport, stage: Stage) -> bool:
    """Whether the site shows something else than the newest materialization says."""
    withdrawn = page.withdrawn_at is not None and page.state is PageJobState.WITHDRAWN
    return stage is Stage.ARTIFACT and (page.awaits_decision or withdrawn)


def _observation(
    assets: SiteAssets, stage: Stage, page: PageReport, stands: Standing
) -> dg.AssetObservation:
    return dg.AssetObservation(
        asset_key=assets.key(stage),
        partition=page.topic_key,
        description=_story(page, stage, stands),
        metadata=check_metadata(page),
    )


def _story(page: PageReport, stage: Stage, stands: Standing) -> str:
    """One or two sentences: what happened, and what happens next."""
    if stage is Stage.ARTIFACT and page.state is PageJobState.WITHDRAWN:
        return f"{page.name} is off the site: its topic is no longer in the table."
    if stage is Stage.ARTIFACT and page.awaits_decision and stands is Standing.DONE:
        assert page.site_change_found_at is not None
        found = f"{page.site_change_found_at:%Y-%m-%d %H:%M} UTC"
        return (
            f"{page.name}: {page.site_change_reason} (found {found}). Next: a person decides which "
            "text stands; see `content-pipeline conflicts`."
        )
    if stands is Standing.DONE:
        return f"{page.name}: {_DONE[stage]}."
    if page.failure_class is None and page.failure_message:
        return f"{page.name} is {page.state} and {page.failure_message}."
    if page.failure_class is None:
        return f"{page.name} is {page.state}: {NEXT[page.state]}."
    reason = (page.failure_message or EXPLANATIONS[page.failure_class]).rstrip(".")
    return f"{page.failure_class}: {reason}. Next: {NEXT[page.state]}."
