"""The events of a run on a site's partitions, be they pages or buckets of pages.

What belongs here: the one place that knows both. What is logged of a page is in ``page_events``, of
a bucket in ``bucket_events``; runs, sensors and jobs do not ask which it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from content_pipeline.components.bucket_events import BucketEvents, evaluate_buckets
from content_pipeline.components.page_events import (
    EventLog,
    PageEvents,
    RunContext,
    evaluate_checks,
)
from content_pipeline.components.run_summary import Seen
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.core.states import Stage
from content_pipeline.ledger import buckets as bucket_rows
from content_pipeline.ledger import reports
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.runtime import SiteRuntime


class RunEvents(Protocol):
    """What a run logs as its pages come to rest, and at its end."""

    @property
    def made_last(self) -> frozenset[str]:
        """The topics that the run itself brought to the last of its stages."""
        ...

    def begin(self, wanted: Sequence[str]) -> None:
        """Log what is done already of the topics ``wanted``."""
        ...

    def page_came_to_rest(self, topic_key: str) -> None:
        """Take note of a page that the run worked on."""
        ...

    def finish(self, wanted: Sequence[str]) -> Seen:
        """Log the rest, about the topics ``wanted``; what is found of them."""
        ...


def events_of_run(
    context: RunContext,
    assets: SiteAssets,
    runtime: SiteRuntime,
    stages: frozenset[Stage],
    named: Sequence[str],
) -> RunEvents:
    """The events of a run; ``named``: the buckets that it is about, if it is about buckets."""
    if assets.buckets is None:
        return PageEvents(
            log=EventLog.of_run(context),
            assets=assets,
            ledger=runtime.ledger,
            worker=runtime.worker,
            stages=stages,
        )
    return BucketEvents(
        log=EventLog.of_run(context),
        assets=assets,
        buckets=assets.buckets,
        ledger=runtime.ledger,
        worker=runtime.worker,
        stages=stages,
        named=named,
    )


def slices(
    assets: SiteAssets, runtime: SiteRuntime, selection: Selection, named: Sequence[str]
) -> Iterator[Selection]:
    """``selection``, or in its place what can be led on in the buckets ``named``, part by part."""
    if assets.buckets is None or not named:
        yield selection
        return
    each = [assets.buckets.slots(name) for name in named]
    for topics in bucket_rows.unfinished(runtime.ledger, assets.name, each, selection.stages):
        yield replace(selection, topics=tuple(topics))


def tell_checks(
    context: RunContext,
    assets: SiteAssets,
    runtime: SiteRuntime,
    stages: frozenset[Stage],
    partitions: Sequence[str] | None,
) -> None:
    """Tell how ``partitions`` stand, in their checks, and do nothing else; None means all."""
    if assets.buckets is not None:
        names = list(assets.buckets.names()) if partitions is None else partitions
        log = EventLog.of_run(context)
        evaluate_buckets(log, assets, assets.buckets, runtime.ledger, stages, names)
        return
    with runtime.ledger.begin() as connection:
        pages = reports.page_reports(connection, assets.name, partitions)
    evaluate_checks(context, assets, stages, pages)
