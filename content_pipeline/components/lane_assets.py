"""``draft``, ``page`` and ``artifact``: three partitioned assets of one step.

What belongs here: the definition, and which pages and stages a run of it means. Each page goes its
own way through all three, so no page waits for the slowest one.
"""

from collections.abc import Iterator
from dataclasses import replace

import dagster as dg
from pydantic import Field

from content_pipeline.bootstrap import topic_rows
from content_pipeline.components.event_log import EventLog
from content_pipeline.components.interruption import Interruption, interruptible
from content_pipeline.components.page_work import end_run, work_on
from content_pipeline.components.partition_events import tell_checks
from content_pipeline.components.site_assets import BUCKETS_PER_RUN, PAGES_PER_RUN, SiteAssets
from content_pipeline.components.site_at_work import INFRASTRUCTURE_RETRIES, site_at_work
from content_pipeline.components.step_process import ending_with_worker
from content_pipeline.core.buckets import TopicsOf
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.submit import submit


class PageSelection(dg.Config):
    """Pages for a run without partitions: a scattered set would be a run per stretch of them."""

    topics: list[str] = Field(default_factory=list)
    buckets: list[str] = Field(default_factory=list)
    """Instead of topics, on a site whose partitions are buckets."""


def build_lane(assets: SiteAssets) -> dg.AssetsDefinition:
    """The three assets of a site's pages, with their checks."""

    @dg.multi_asset(
        name=assets.lane_op,
        specs=assets.stage_specs(),
        check_specs=assets.check_specs(),
        partitions_def=assets.pages,
        can_subset=True,
        backfill_policy=dg.BackfillPolicy.multi_run(
            BUCKETS_PER_RUN if assets.buckets else PAGES_PER_RUN
        ),
        retry_policy=INFRASTRUCTURE_RETRIES,
    )
    def pages(
        context: dg.AssetExecutionContext, config: PageSelection
    ) -> Iterator[dg.MaterializeResult]:
        with (
            interruptible() as interruption,
            ending_with_worker(context, interruption),
            site_at_work(assets.site, context.run.run_id) as site,
        ):
            _materialize(context, assets, site, config, interruption)
        # Nothing is yielded: a result would paint every page of the run green, failed ones too.
        yield from ()

    return pages


def _materialize(
    context: dg.AssetExecutionContext,
    assets: SiteAssets,
    site: SiteRuntime,
    config: PageSelection,
    interruption: Interruption,
) -> None:
    stages = assets.stages(context.selected_asset_keys)
    if not stages:
        _only_check(context, assets, site)
        return
    if config.buckets and (config.topics or assets.buckets is None):
        raise ConfigurationError(
            "give `topics`; or `buckets` instead, on a site with `partition_by: bucket`"
        )
    named = _named(context, config)
    only: tuple[str, ...] | TopicsOf = named
    buckets: tuple[str, ...] = ()
    selection = Selection(site=assets.name, topics=named, stages=stages)
    if assets.buckets is not None and (config.buckets or _has_partitions(context)):
        buckets, only = named, TopicsOf(buckets=assets.buckets, names=frozenset(named))
        selection = replace(selection, topics=None)
    # What is materialized is the table as it is now, whether or not `topics` ever was.
    rows = topic_rows(assets.site)
    taken = submit(site, rows, requested_by=site.worker, only=only, alone=bool(buckets))
    if taken.rolled_back is not None:
        context.log.warning(
            f"nothing new is made: this way of making pages was rolled back: {taken.rolled_back}"
        )
    end_run(context, work_on(context, assets, site, selection, interruption, buckets=buckets))


def _named(context: dg.AssetExecutionContext, config: PageSelection) -> tuple[str, ...]:
    """The partitions of a run; one that has none says in its configuration what it is about."""
    if not _has_partitions(context) and (config.topics or config.buckets):
        return tuple(config.topics or config.buckets)
    return tuple(context.partition_keys)


def _has_partitions(context: dg.AssetExecutionContext) -> bool:
    return bool(context.has_partition_key or context.has_partition_key_range)


def _only_check(context: dg.AssetExecutionContext, assets: SiteAssets, site: SiteRuntime) -> None:
    """Checks were selected without their assets: tell how the pages stand, and do nothing.

    "Execute all" on the page of a check starts a run without partitions: it means all pages.
    """
    keys = context.partition_keys if _has_partitions(context) else None
    stages = assets.stages({key.asset_key for key in context.selected_asset_check_keys})
    with EventLog.of_run(context) as log:
        tell_checks(log, assets, site.ledger, stages, keys)
