"""Dagster's picture of a site's buckets, made to agree with the ledger.

What belongs here: as ``picture_repair`` for single pages, for the buckets that changed pages are
in. A bucket that is told of correctly costs its stock and no event.
"""

from collections.abc import Collection

import dagster as dg

from content_pipeline.components.bucket_events import evaluation, materialization, tell_stock
from content_pipeline.components.bucket_stock import BucketStock, take_stock
from content_pipeline.components.dagster_private import (
    checked_materializations,
    newest_evaluation,
)
from content_pipeline.components.page_events import EventLog
from content_pipeline.components.picture_repair import Correction
from content_pipeline.components.site_assets import CHECKS, SiteAssets
from content_pipeline.core.buckets import Buckets
from content_pipeline.core.states import Stage
from content_pipeline.ledger.database import Ledger


def correct_buckets(
    instance: dg.DagsterInstance,
    ledger: Ledger,
    assets: SiteAssets,
    buckets: Buckets,
    topics: Collection[str],
) -> Correction:
    """Tell of the buckets of ``topics`` what Dagster does not know, or told otherwise."""
    log = EventLog.without_run(instance)
    materialized: list[tuple[Stage, str]] = []
    stories: list[str] = []
    for name in sorted({buckets.name_of(topic) for topic in topics}):
        stock = take_stock(ledger, assets.name, buckets, name, Stage)
        untold = [stage for stage in Stage if not _is_told(instance, assets, stage, stock)]
        for stage in untold:
            if stock.stages[stage].is_done:
                log.log(materialization(assets, stage, stock))
                materialized.append((stage, name))
        if untold:
            tell_stock(log, assets, stock)
            stories.append(name)
    return Correction(materialized=tuple(materialized), stories=tuple(stories))


def _is_told(
    instance: dg.DagsterInstance, assets: SiteAssets, stage: Stage, stock: BucketStock
) -> bool:
    """Whether the bucket's check tells how it stands, and a done one was ever materialized."""
    asset = assets.key(stage)
    checked = checked_materializations(instance, asset, [stock.name]).get(stock.name)
    told = newest_evaluation(instance, dg.AssetCheckKey(asset, CHECKS[stage]), stock.name)
    wanted = evaluation(assets, stage, stock, checked)
    if told is None or (stock.stages[stage].is_done and checked is None):
        return False
    return (told.passed, told.description) == (wanted.passed, wanted.description)
