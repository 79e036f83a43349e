"""The events of a run on a site's partitions, be they pages or buckets of pages.

What belongs here: the one place that knows both. What is logged of a page is in ``page_events``, of
a bucket in ``bucket_events``; runs, sensors and jobs do not ask which it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from content_pipeline.components.bucket_events import BucketEvents
from content_pipeline.components.bucket_stock import take_stock
from content_pipeline.components.bucket_stories import stories_of_bucket
from content_pipeline.components.event_log import EventLog
from content_pipeline.components.made import Made
from content_pipeline.components.page_events import PageEvents
from content_pipeline.components.page_stories import stories_of_page
from content_pipeline.components.run_summary import Seen
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.standing import in_order
from content_pipeline.components.stories import tell
from content_pipeline.core.states import Stage
from content_pipeline.ledger import buckets as bucket_rows
from content_pipeline.ledger import reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.runtime import SiteRuntime

TOLD_AT_ONCE = 500
"""Pages whose stories are in memory together."""


class RunEvents(Protocol):
    """What a run logs as its pages come to rest, and at its end."""

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
    log: EventLog,
    assets: SiteAssets,
    ledger: Ledger,
    stages: frozenset[Stage],
    named: Sequence[str],
    made: Made,
) -> RunEvents:
    """The events of a run; ``named``: the buckets that it is about, if it is about buckets."""
    if assets.buckets is None:
        return PageEvents(log=log, assets=assets, ledger=ledger, made=made, stages=stages)
    return BucketEvents(
        log=log,
        assets=assets,
        buckets=assets.buckets,
        ledger=ledger,
        made=made,
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
    log: EventLog,
    assets: SiteAssets,
    ledger: Ledger,
    stages: frozenset[Stage],
    partitions: Sequence[str] | None,
) -> None:
    """Tell how ``partitions`` stand, in their checks, and do nothing else; None means all."""
    told = in_order(stages)
    if assets.buckets is not None:
        for name in assets.buckets.names() if partitions is None else partitions:
            stock = take_stock(ledger, assets.name, assets.buckets, name, told)
            tell(log, assets, stories_of_bucket(stock))
        return
    with ledger.begin() as connection:
        pages = reports.page_reports(connection, assets.name, partitions)
    for begin in range(0, len(pages), TOLD_AT_ONCE):
        some = pages[begin : begin + TOLD_AT_ONCE]
        tell(log, assets, [story for page in some for story in stories_of_page(page, told)])
