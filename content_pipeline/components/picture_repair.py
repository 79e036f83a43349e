"""Dagster's picture of a site's partitions, made to agree with the ledger.

What belongs here: comparing what Dagster has on record of them with what the ledger says, and
telling what is missing, without a run. So pages are shown that came to their state after their run
had died, or outside any run: on the command line, by a republish, on another machine. Comparing is
idempotent: what is told of correctly costs a look and no event.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg
from sqlalchemy import Connection

from content_pipeline.components.bucket_stock import take_stock
from content_pipeline.components.bucket_stories import bucket_materialization, stories_of_bucket
from content_pipeline.components.dagster_private import (
    checked_materialization,
    newest_materializations,
)
from content_pipeline.components.event_log import EventLog
from content_pipeline.components.page_metadata import PageInRun
from content_pipeline.components.page_stories import page_materialization, stories_of_page
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.standing import Standing, standing
from content_pipeline.components.stories import Story, is_told, tell
from content_pipeline.components.topics_asset import register
from content_pipeline.core.buckets import Buckets
from content_pipeline.core.states import Stage
from content_pipeline.ledger import reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.reports import PageReport

OnRecord = Mapping[Stage, Mapping[str, dg.EventLogRecord]]
"""Asset → partition → its newest materialization."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What was told so that Dagster agrees with the ledger."""

    materialized: tuple[tuple[Stage, str], ...] = ()
    """The assets and partitions that Dagster did not know to be done."""
    stories: tuple[str, ...] = ()
    """The partitions whose checks said something else, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    """One partition as the ledger wants it to be shown."""

    partition: str
    done: Mapping[Stage, Callable[[], dg.AssetMaterialization]]
    """The assets it is done on, and what shows that."""
    marks: Mapping[str, object]
    """What the metadata of a materialization says that is not out of date."""
    stories: Sequence[Story]
    """Told together, or none of them."""
    witnesses: Sequence[Story]
    """Those whose checks are looked at; they stand for all."""


def correct(
    instance: dg.DagsterInstance,
    ledger: Ledger,
    assets: SiteAssets,
    partitions: Collection[str],
    *,
    after: int = 0,
) -> Correction:
    """Tell of ``partitions`` what Dagster does not know, or knows of an older revision only.

    ``after``: what is on record under a smaller number counts as nothing, because a run has planned
    it anew since and died.
    """
    with EventLog.without_run(instance) as log, ledger.begin() as connection:
        names = sorted(partitions)
        if assets.buckets is None:
            pages = reports.page_reports(connection, assets.name, names)
            pictures = [_of_page(connection, assets, page) for page in pages]
        else:
            pictures = [_of_bucket(ledger, assets, assets.buckets, name) for name in names]
        return _correct(log, connection, assets, pictures, after)


def _of_page(connection: Connection, assets: SiteAssets, page: PageReport) -> _Picture:
    def shown(stage: Stage) -> Callable[[], dg.AssetMaterialization]:
        seen = PageInRun(page=page, worker=None, reused=False)
        return lambda: page_materialization(connection, assets, stage, seen)

    # Not those assets that the page is just on its way to.
    told = [
        stage
        for stage in Stage
        if page.failure_class is not None or standing(page, stage) is not Standing.WAITING
    ]
    stories = stories_of_page(page, told)
    return _Picture(
        partition=page.topic_key,
        done={stage: shown(stage) for stage in told if standing(page, stage) is Standing.DONE},
        marks={"page_job_id": page.page_job_id, "revision": page.revision or 0},
        stories=stories,
        witnesses=stories[-1:],
    )


def _of_bucket(ledger: Ledger, assets: SiteAssets, buckets: Buckets, name: str) -> _Picture:
    stock = take_stock(ledger, assets.name, buckets, name, Stage)

    def shown(stage: Stage) -> Callable[[], dg.AssetMaterialization]:
        return lambda: bucket_materialization(assets, stage, stock)

    stories = stories_of_bucket(stock)
    return _Picture(
        partition=name,
        done={stage: shown(stage) for stage in Stage if stock.stages[stage].is_done},
        marks={
            "pages": stock.stages[Stage.ARTIFACT].pages,
            "cost_in_all": float(stock.usd),
            "generation_version": stock.generation_version,
        },
        stories=stories,
        witnesses=stories,
    )


def _correct(
    log: EventLog,
    connection: Connection,
    assets: SiteAssets,
    pictures: Sequence[_Picture],
    after: int,
) -> Correction:
    names = [picture.partition for picture in pictures]
    on_record = {
        stage: newest_materializations(log.instance, assets.key(stage), names) for stage in Stage
    }
    missing = {
        (stage, picture.partition): shown
        for picture in pictures
        for stage, shown in picture.done.items()
        if not _shows(on_record[stage].get(picture.partition), picture, after)
    }
    news = {partition for _, partition in missing}
    _make_partitions(log.instance, connection, assets, news)
    for shown in missing.values():
        log.log(shown())
    untold = [
        picture
        for picture in pictures
        if picture.partition in news or not _is_told(log.instance, assets, picture, on_record)
    ]
    tell(log, assets, [story for picture in untold for story in picture.stories])
    return Correction(
        materialized=tuple(missing), stories=tuple(picture.partition for picture in untold)
    )


def _shows(record: dg.EventLogRecord | None, picture: _Picture, after: int) -> bool:
    if record is None or record.asset_materialization is None or record.storage_id < after:
        return False
    said = record.asset_materialization.metadata
    return all(name in said and said[name].value == mark for name, mark in picture.marks.items())


def _make_partitions(
    instance: dg.DagsterInstance, connection: Connection, assets: SiteAssets, names: Collection[str]
) -> None:
    """A key that is no partition yet would be left out of the asset's status for good.

    One that is unknown means that the table is: it is made known in its own order.
    """
    if assets.buckets is not None:
        return
    known = assets.partitions_name
    if all(instance.has_dynamic_partition(known, name) for name in names):
        return
    register(instance, assets, connection)
    instance.add_dynamic_partitions(known, sorted(names))  # of topics that have left the table


def _is_told(
    instance: dg.DagsterInstance, assets: SiteAssets, picture: _Picture, on_record: OnRecord
) -> bool:
    for story in picture.witnesses:
        record = on_record[story.stage].get(picture.partition)
        checked = checked_materialization(record) if record else None
        if not is_told(instance, assets, story, checked):
            return False
    return True
