"""From pages of the ledger to Dagster's events: materializations and check evaluations.

What belongs here: building events and logging them, with a run or without one. They go out one by
one as pages come to rest, so a run that dies leaves what it did on record.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

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
from content_pipeline.components.run_summary import Seen
from content_pipeline.components.site_assets import CHECKS, SiteAssets
from content_pipeline.components.standing import (
    Standing,
    in_order,
    is_news,
    reached_by,
    standing,
)
from content_pipeline.core.failures import EXPLANATIONS
from content_pipeline.core.states import NEXT, PageJobState, Stage
from content_pipeline.ledger import drafts, jobs, reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.reports import PageReport
from content_pipeline.site_cms import published_folder
from content_pipeline.site_files import Site

RunContext = dg.OpExecutionContext | dg.AssetExecutionContext
PageEvent = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLog:
    """Where events go: to a run, or into the instance for pages that no run told of."""

    instance: dg.DagsterInstance
    log: Callable[[PageEvent], None]

    @classmethod
    def of_run(cls, context: RunContext) -> Self:
        """The events of the run that ``context`` is about."""

        def log(event: PageEvent) -> None:
            if isinstance(event, dg.AssetCheckEvaluation):
                log_check(context, event)
            else:
                context.log_event(event)

        return cls(instance=context.instance, log=log)

    @classmethod
    def without_run(cls, instance: dg.DagsterInstance) -> Self:
        """Events that belong to no run."""
        return cls(instance=instance, log=instance.report_runless_asset_event)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEvents:
    """The events of one run's pages; a page's asset is materialized at most once in it."""

    log: EventLog
    assets: SiteAssets
    ledger: Ledger
    worker: str
    """The run's name in the ledger."""
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
        return frozenset(self.made[in_order(self.stages)[-1]])

    def page_came_to_rest(self, topic_key: str) -> None:
        """Materialize what is done of a page that this run worked on; tell at once why it failed.

        A run may go on for minutes, and a person who must act need not wait for its end.
        """
        with self.ledger.begin() as connection:
            (page,) = reports.page_reports(connection, self.assets.name, [topic_key])
            history = reports.history(connection, page.page_job_id)
            self._materialize(connection, page, made=reached_by(self.worker, history))
        if page.needs_person:
            tell_stories(self.log, self.assets, self.stages, [page])
            self.told[topic_key] = page

    def begin(self, wanted: Sequence[str]) -> None:
        """Log what is done already of the topics ``wanted``.

        Else they would read as being made for as long as the slowest page of the run takes.
        """
        self._found_done(self._reports(wanted))

    def finish(self, wanted: Sequence[str]) -> Seen:
        """Log what is done of the topics ``wanted`` and was not logged, and evaluate their checks.

        What is found. A page whose story was told at once is not told of again, unless it stands
        otherwise now.
        """
        pages = self._reports(wanted)
        self._found_done(pages)
        untold = [page for page in pages if self.told.get(page.topic_key) != page]
        tell_stories(self.log, self.assets, self.stages, untold)
        known = {page.topic_key for page in pages}
        return Seen(pages=pages, unknown=[key for key in wanted if key not in known])

    def _reports(self, topic_keys: Sequence[str]) -> list[PageReport]:
        with self.ledger.begin() as connection:
            return reports.page_reports(connection, self.assets.name, topic_keys)

    def _found_done(self, pages: Iterable[PageReport]) -> None:
        """Materialize what is done of ``pages`` and was not logged: this run did nothing for it."""
        for page in pages:
            with self.ledger.begin() as connection:
                self._materialize(connection, page, made=frozenset())

    def _materialize(
        self, connection: Connection, page: PageReport, *, made: frozenset[Stage]
    ) -> None:
        for stage in in_order(self.stages):
            if page.topic_key in self.logged[stage] or standing(page, stage) is not Standing.DONE:
                continue
            self.logged[stage].add(page.topic_key)
            if stage in made:
                self.made[stage].add(page.topic_key)
            seen = PageInRun(page=page, worker=self.worker, reused=stage not in made)
            self.log.log(materialization(connection, self.assets, stage, seen))


def materialization(
    connection: Connection, assets: SiteAssets, stage: Stage, seen: PageInRun
) -> dg.AssetMaterialization:
    """The event of a page that is done on the asset of ``stage``."""
    page = seen.page
    return dg.AssetMaterialization(
        asset_key=assets.key(stage),
        partition=page.topic_key,
        description=_summary(seen, stage),
        metadata=_metadata(connection, assets.site, stage, seen),
        tags=version_tags(page.generation_version, assets.parents_of(stage, page.revision)),
    )


def _metadata(connection: Connection, site: Site, stage: Stage, seen: PageInRun) -> Metadata:
    if stage is Stage.ARTIFACT:
        return artifact_metadata(seen, _file_of(site, seen.page))
    shows_text = site.settings.article.preview
    if stage is Stage.DRAFT and not shows_text:
        return draft_metadata(seen)
    article = drafts.load(connection, jobs.load(connection, seen.page.page_job_id))
    known = draft_metadata(seen) if stage is Stage.DRAFT else page_metadata(seen, article)
    return known | preview_metadata(article) if shows_text else known


def _file_of(site: Site, page: PageReport) -> Path | None:
    folder = published_folder(site, this_project())
    if folder is None or page.path is None:
        return None
    return folder / page_file(page.path)


def evaluate_checks(
    context: RunContext, assets: SiteAssets, stages: frozenset[Stage], pages: Sequence[PageReport]
) -> None:
    """Tell in a run the story of its pages; see ``tell_stories``."""
    tell_stories(EventLog.of_run(context), assets, stages, pages)


def tell_stories(
    log: EventLog, assets: SiteAssets, stages: frozenset[Stage], pages: Sequence[PageReport]
) -> None:
    """Tell the story of every page, green or not, in the check of each asset of ``stages``.

    The story of a failed page, and of one that is changed on the site or taken off it, is an
    observation as well: its partition's own pane lists those only.
    """
    keys = [page.topic_key for page in pages]
    for stage in in_order(stages):
        materialized = checked_materializations(log.instance, assets.key(stage), keys)
        for page in pages:
            stands = standing(page, stage)
            checked = materialized.get(page.topic_key)
            log.log(evaluation(assets, stage, page, checked))
            if stands is Standing.FAILED or is_news(page, stage):
                log.log(_observation(assets, stage, page, stands))


DONE: dict[Stage, str] = {
    Stage.DRAFT: "generated",
    Stage.PAGE: "meets the site's rules",
    Stage.ARTIFACT: "published and proved",
}


def _summary(seen: PageInRun, stage: Stage) -> str:
    if seen.worker is None:
        return f"{seen.page.name}: {DONE[stage]}, as the ledger says; no run lived to tell it"
    if seen.reused:
        return f"{seen.page.name}: {DONE[stage]} before; nothing was done again"
    return f"{seen.page.name}: {DONE[stage]}"


def evaluation(
    assets: SiteAssets,
    stage: Stage,
    page: PageReport,
    checked: CheckedMaterialization | None,
) -> dg.AssetCheckEvaluation:
    """The page's story on the check of ``stage``, about the materialization ``checked``."""
    stands = standing(page, stage)
    needs_person = stands is Standing.FAILED
    return dg.AssetCheckEvaluation(
        asset_key=assets.key(stage),
        check_name=CHECKS[stage],
        passed=stands is Standing.DONE and not is_news(page, stage),
        severity=dg.AssetCheckSeverity.ERROR if needs_person else dg.AssetCheckSeverity.WARN,
        description=story(page, stage, stands),
        metadata=check_metadata(page),
        target_materialization_data=checked,
        partition=page.topic_key,
    )


def _observation(
    assets: SiteAssets, stage: Stage, page: PageReport, stands: Standing
) -> dg.AssetObservation:
    return dg.AssetObservation(
        asset_key=assets.key(stage),
        partition=page.topic_key,
        description=story(page, stage, stands),
        metadata=check_metadata(page),
    )


def story(page: PageReport, stage: Stage, stands: Standing) -> str:
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
        return f"{page.name}: {DONE[stage]}."
    if page.failure_class is None and page.failure_message:
        turn = f"{page.next_attempt_at:%Y-%m-%d %H:%M} UTC"
        return f"{page.name} is {page.state} and {page.failure_message}: {turn}."
    if page.failure_class is None:
        return f"{page.name} is {page.state}: {NEXT[page.state]}."
    reason = (page.failure_message or EXPLANATIONS[page.failure_class]).rstrip(".")
    return f"{page.failure_class}: {reason}. Next: {NEXT[page.state]}."
