"""Dagster's picture of a site's pages, made to agree with the ledger.

What belongs here: comparing what Dagster has on record of pages with what the ledger says, and
telling what is missing, without a run. So pages are shown that came to their state after their run
had died, or outside any run: on the command line, by a republish, on another machine. Comparing is
idempotent: a page that is told of correctly costs a look and no event.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg
from sqlalchemy import Connection

from content_pipeline.components.dagster_private import (
    checked_materialization,
    newest_evaluation,
    newest_materializations,
)
from content_pipeline.components.page_events import (
    EventLog,
    evaluation,
    materialization,
    tell_stories,
)
from content_pipeline.components.page_metadata import PageInRun
from content_pipeline.components.site_assets import CHECKS, SiteAssets
from content_pipeline.components.standing import Standing, standing
from content_pipeline.core.states import Stage
from content_pipeline.ledger import reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.reports import PageReport

OnRecord = Mapping[Stage, Mapping[str, dg.EventLogRecord]]
"""Asset → partition → its newest materialization."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What was told of pages so that Dagster agrees with the ledger."""

    materialized: tuple[tuple[Stage, str], ...]
    """The assets and topics that Dagster did not know to be done."""
    stories: tuple[str, ...]
    """The topics whose checks said something else, or nothing."""


def correct_pages(
    instance: dg.DagsterInstance, ledger: Ledger, assets: SiteAssets, topics: Collection[str]
) -> Correction:
    """Tell of ``topics`` what Dagster does not know, or knows of an older revision only."""
    log = EventLog.without_run(instance)
    with ledger.begin() as connection:
        pages = reports.page_reports(connection, assets.name, sorted(topics))
        on_record = _on_record(instance, assets, pages)
        materialized = [
            (stage, page.topic_key)
            for page in pages
            for stage in Stage
            if standing(page, stage) is Standing.DONE
            and not _shows(on_record[stage].get(page.topic_key), page)
            and _materialize(log, connection, assets, stage, page)
        ]
    news = {topic for _, topic in materialized}
    stories = [
        page
        for page in pages
        if page.topic_key in news or not _is_told(instance, assets, page, on_record)
    ]
    for page in stories:
        tell_stories(log, assets, frozenset(_told_stages(page)), [page])
    return Correction(
        materialized=tuple(materialized), stories=tuple(page.topic_key for page in stories)
    )


def _on_record(
    instance: dg.DagsterInstance, assets: SiteAssets, pages: Sequence[PageReport]
) -> OnRecord:
    keys = [page.topic_key for page in pages]
    return {stage: newest_materializations(instance, assets.key(stage), keys) for stage in Stage}


def _shows(record: dg.EventLogRecord | None, page: PageReport) -> bool:
    """Whether the newest materialization is of the page job and revision that the ledger has."""
    if record is None or record.asset_materialization is None:
        return False
    metadata = record.asset_materialization.metadata
    told = tuple(
        metadata[name].value if name in metadata else None for name in ("page_job_id", "revision")
    )
    return told == (page.page_job_id, page.revision or 0)


def _materialize(
    log: EventLog, connection: Connection, assets: SiteAssets, stage: Stage, page: PageReport
) -> bool:
    # A key that is no partition yet would be left out of the asset's status for good.
    log.instance.add_dynamic_partitions(assets.partitions_name, [page.topic_key])
    seen = PageInRun(page=page, worker=None, reused=False)
    log.log(materialization(connection, assets, stage, seen))
    return True


def _told_stages(page: PageReport) -> list[Stage]:
    """The assets of which there is something to tell: not those the page is just on its way to."""
    return [
        stage
        for stage in Stage
        if page.failure_class is not None or standing(page, stage) is not Standing.WAITING
    ]


def _is_told(
    instance: dg.DagsterInstance, assets: SiteAssets, page: PageReport, on_record: OnRecord
) -> bool:
    """Whether the check of the page's last asset tells its story, about its materialization.

    The checks of a page are told together, so one stands for all.
    """
    stages = _told_stages(page)
    if not stages:
        return True
    last = stages[-1]
    record = on_record[last].get(page.topic_key)
    checked = checked_materialization(record) if record else None
    wanted = evaluation(assets, last, page, checked)
    check = dg.AssetCheckKey(assets.key(last), CHECKS[last])
    told = newest_evaluation(instance, check, page.topic_key)
    return told is not None and _story(told) == _story(wanted)


def _story(told: dg.AssetCheckEvaluation) -> tuple[bool, str | None, int | None]:
    target = told.target_materialization_data
    return told.passed, told.description, target.storage_id if target else None
