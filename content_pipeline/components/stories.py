"""What is told of a partition on one asset, be it a page or a bucket of pages.

What belongs here: the events that tell it. Words and numbers come from ``page_stories`` and
``bucket_stories``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from content_pipeline.components.dagster_private import (
    CheckedMaterialization,
    newest_evaluation,
    version_tags,
)
from content_pipeline.components.event_log import EventLog
from content_pipeline.components.page_metadata import Metadata
from content_pipeline.components.site_assets import CHECKS, SiteAssets
from content_pipeline.core.states import Stage

DONE: dict[Stage, str] = {
    Stage.DRAFT: "generated",
    Stage.PAGE: "meets the site's rules",
    Stage.ARTIFACT: "published and proved",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """How a partition stands on the asset of one stage."""

    stage: Stage
    partition: str
    text: str
    """One or two sentences: what happened, and what happens next."""
    metadata: Metadata
    is_green: bool
    needs_person: bool
    is_observed: bool
    """Told by an observation as well: the partition's own pane lists no checks."""


def materialization(
    assets: SiteAssets,
    stage: Stage,
    partition: str,
    *,
    text: str,
    metadata: Metadata,
    generation_version: str,
    revision: int | None = None,
) -> dg.AssetMaterialization:
    """The event of a partition that is done on the asset of ``stage``."""
    return dg.AssetMaterialization(
        asset_key=assets.key(stage),
        partition=partition,
        description=text,
        metadata=metadata,
        tags=version_tags(generation_version, assets.parents_of(stage, revision)),
    )


def tell(log: EventLog, assets: SiteAssets, stories: Sequence[Story]) -> None:
    """Tell each story, green or not, in the check of its asset."""
    for stage in Stage:
        of_stage = [story for story in stories if story.stage is stage]
        newest = log.newest(assets.key(stage), [story.partition for story in of_stage])
        for story in of_stage:
            log.log(evaluation(assets, story, newest.get(story.partition)))
            if story.is_observed:
                log.log(
                    dg.AssetObservation(
                        asset_key=assets.key(stage),
                        partition=story.partition,
                        description=story.text,
                        metadata=story.metadata,
                    )
                )


def evaluation(
    assets: SiteAssets, story: Story, checked: CheckedMaterialization | None
) -> dg.AssetCheckEvaluation:
    """``story`` as the evaluation of a check, about the materialization ``checked``."""
    return dg.AssetCheckEvaluation(
        asset_key=assets.key(story.stage),
        check_name=CHECKS[story.stage],
        passed=story.is_green,
        severity=dg.AssetCheckSeverity.ERROR if story.needs_person else dg.AssetCheckSeverity.WARN,
        description=story.text,
        metadata=story.metadata,
        target_materialization_data=checked,
        partition=story.partition,
    )


def is_told(
    instance: dg.DagsterInstance,
    assets: SiteAssets,
    story: Story,
    checked: CheckedMaterialization | None,
) -> bool:
    """Whether the check tells ``story`` already, about the materialization ``checked``."""
    check = dg.AssetCheckKey(assets.key(story.stage), CHECKS[story.stage])
    told = newest_evaluation(instance, check, story.partition)
    if told is None or (told.passed, told.description) != (story.is_green, story.text):
        return False
    about = told.target_materialization_data
    return (about and about.storage_id) == (checked and checked.storage_id)
