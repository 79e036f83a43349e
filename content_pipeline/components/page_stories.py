"""One page in Dagster: the event that shows it done on an asset, and the story of how it stands.

What belongs here: from a report of the ledger to what people see. When it is shown is decided in
``page_events`` and ``picture_repair``.
"""

from collections.abc import Iterable
from pathlib import Path

import dagster as dg
from sqlalchemy import Connection

from content_pipeline.adapters.cms.folder_paths import page_file
from content_pipeline.components.page_metadata import (
    Metadata,
    PageInRun,
    artifact_metadata,
    check_metadata,
    draft_metadata,
    next_action,
    page_metadata,
    preview_metadata,
)
from content_pipeline.components.project import this_project
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.standing import Standing, is_news, standing
from content_pipeline.components.stories import DONE, Story, materialization
from content_pipeline.core.failures import EXPLANATIONS
from content_pipeline.core.states import NEXT, PageJobState, Stage
from content_pipeline.ledger import drafts, jobs
from content_pipeline.ledger.reports import PageReport
from content_pipeline.site_cms import published_folder
from content_pipeline.site_files import Site


def page_materialization(
    connection: Connection, assets: SiteAssets, stage: Stage, seen: PageInRun
) -> dg.AssetMaterialization:
    """The event of a page that is done on the asset of ``stage``."""
    page = seen.page
    return materialization(
        assets,
        stage,
        page.topic_key,
        text=_summary(seen, stage),
        metadata=_metadata(connection, assets.site, stage, seen),
        generation_version=page.generation_version,
        revision=page.revision,
    )


def _summary(seen: PageInRun, stage: Stage) -> str:
    if seen.worker is None:
        return f"{seen.page.name}: {DONE[stage]}, as the ledger says; no run lived to tell it"
    if seen.reused:
        return f"{seen.page.name}: {DONE[stage]} before; nothing was done again"
    return f"{seen.page.name}: {DONE[stage]}"


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


def stories_of_page(page: PageReport, stages: Iterable[Stage]) -> list[Story]:
    """How ``page`` stands on the assets of ``stages``.

    That of a failed page, and of one that is changed on the site or taken off it, is observed.
    """
    metadata = check_metadata(page)
    return [_story(page, stage, metadata) for stage in stages]


def _story(page: PageReport, stage: Stage, metadata: Metadata) -> Story:
    stands, changed = standing(page, stage), is_news(page, stage)
    return Story(
        stage=stage,
        partition=page.topic_key,
        text=_text(page, stage, stands),
        metadata=metadata,
        is_green=stands is Standing.DONE and not changed,
        needs_person=stands is Standing.FAILED,
        is_observed=stands is Standing.FAILED or changed,
    )


def _text(page: PageReport, stage: Stage, stands: Standing) -> str:
    if stage is Stage.ARTIFACT and page.state is PageJobState.WITHDRAWN:
        return f"{page.name} is off the site: its topic is no longer in the table."
    if stage is Stage.ARTIFACT and page.awaits_decision and stands is Standing.DONE:
        assert page.site_change_found_at is not None
        found = f"{page.site_change_found_at:%Y-%m-%d %H:%M} UTC"
        return f"{page.name}: {page.site_change_reason} (found {found}). Next: {next_action(page)}."
    if stands is Standing.DONE:
        return f"{page.name}: {DONE[stage]}."
    if page.failure_class is None and page.failure_message:
        turn = f"{page.next_attempt_at:%Y-%m-%d %H:%M} UTC"
        return f"{page.name} is {page.state} and {page.failure_message}: {turn}."
    if page.failure_class is None:
        return f"{page.name} is {page.state}: {NEXT[page.state]}."
    reason = (page.failure_message or EXPLANATIONS[page.failure_class]).rstrip(".")
    return f"{page.failure_class}: {reason}. Next: {NEXT[page.state]}."
