"""The events of a run on a site whose partitions are buckets of pages.

What belongs here: when a run tells of a bucket: as a whole, at its end. It is materialized on an
asset when all its pages are done there, and its check tells at the end of every run that touched it
how they stand: a bucket that was green before turns there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from content_pipeline.components.bucket_stock import BucketStock, StageStock, take_stock
from content_pipeline.components.bucket_stories import bucket_materialization, stories_of_bucket
from content_pipeline.components.event_log import EventLog
from content_pipeline.components.made import Made
from content_pipeline.components.run_summary import Seen, count, last_of
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.standing import Standing, in_order, standing
from content_pipeline.components.stories import tell
from content_pipeline.core.buckets import Buckets
from content_pipeline.core.states import Stage
from content_pipeline.ledger import reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.reports import PageReport

NAMED = 100
"""Failed pages that a run on buckets names when it ends; the tables of its buckets have more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketEvents:
    """The events of one run's buckets; a bucket's asset is materialized once in it."""

    log: EventLog
    assets: SiteAssets
    buckets: Buckets
    ledger: Ledger
    made: Made
    stages: frozenset[Stage]
    """The assets that the run is about."""
    named: Sequence[str]
    """The buckets that it is about; none: those of the pages it worked on."""

    def begin(self, wanted: Sequence[str]) -> None:
        """Nothing: a bucket is told of as a whole, at the end."""

    def page_came_to_rest(self, topic_key: str) -> None:
        """Take note of how far this run brought a page."""
        with self.ledger.begin() as connection:
            self.made.note(connection, self.assets.name, topic_key)

    def finish(self, wanted: Sequence[str]) -> Seen:
        """Log how the buckets stand that this run is about, or those of the topics ``wanted``.

        What is found: of all pages of the former, else of ``wanted``.
        """
        names = self.named or sorted({self.buckets.name_of(key) for key in wanted})
        last = last_of(self.stages)
        failed: list[PageReport] = []
        found = count((), last, ())
        for name in names:
            stock = self._tell(name)
            at_last = stock.stages[last]
            named = [page for page in at_last.shown if standing(page, last) is Standing.FAILED]
            failed += named[: NAMED - len(failed)]
            for end, number in _counted(at_last, last).items():
                found[end] += number
        if self.named:
            found["failed"] -= len(failed)
            return Seen(pages=failed, besides=found)
        with self.ledger.begin() as connection:
            pages = reports.page_reports(connection, self.assets.name, wanted)
        known = {page.topic_key for page in pages}
        return Seen(pages=pages, unknown=[key for key in wanted if key not in known])

    def _tell(self, name: str) -> BucketStock:
        stages = in_order(self.stages)
        stock = take_stock(
            self.ledger, self.assets.name, self.buckets, name, stages, made=self.made
        )
        for stage in stages:
            if stock.stages[stage].is_done:
                self.log.log(bucket_materialization(self.assets, stage, stock))
        tell(self.log, self.assets, stories_of_bucket(stock))
        return stock


def _counted(stands: StageStock, last: Stage) -> dict[str, int]:
    """As ``run_summary.count`` counts single pages."""
    found = count((), last, ())
    made_here, reused = list(found)[:2]
    found[made_here] = stands.made
    found[reused] = stands.counts[Standing.DONE] - stands.made
    for other in (Standing.WAITING, Standing.FAILED, Standing.STOPPED):
        found[other.value] = stands.counts[other]
    return found
