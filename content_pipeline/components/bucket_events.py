"""From buckets of pages to Dagster's events: one materialization, one check, one table each.

What belongs here: building and logging the events of a run on a site whose partitions are buckets.
A bucket is materialized on an asset when all its pages are done there, and its check tells at the
end of every run that touched it how they stand: a bucket that was green before turns there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import dagster as dg

from content_pipeline.components.bucket_stock import BucketStock, StageStock, take_stock
from content_pipeline.components.dagster_private import (
    CheckedMaterialization,
    checked_materializations,
    version_tags,
)
from content_pipeline.components.page_events import DONE, EventLog
from content_pipeline.components.page_metadata import Metadata, table
from content_pipeline.components.run_summary import Seen, count, last_of
from content_pipeline.components.site_assets import CHECKS, SiteAssets
from content_pipeline.components.standing import (
    Standing,
    in_order,
    is_news,
    reached_by,
    standing,
)
from content_pipeline.core.buckets import Buckets
from content_pipeline.core.states import NEXT, Stage
from content_pipeline.ledger import reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.reports import PageReport

NAMED = 100
"""Failed pages that a run on buckets names when it ends; the tables of its buckets have more."""

_COLUMNS = (
    ("page", "string"),
    ("state", "string"),
    ("error_class", "string"),
    ("error", "string"),
    ("attempts", "int"),
    ("usd", "float"),
    ("next_action", "string"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketEvents:
    """The events of one run's buckets, at its end; a bucket's asset is materialized once in it."""

    log: EventLog
    assets: SiteAssets
    buckets: Buckets
    ledger: Ledger
    worker: str
    """The run's name in the ledger."""
    stages: frozenset[Stage]
    """The assets that the run is about."""
    named: Sequence[str]
    """The buckets that it is about; none: those of the pages it worked on."""
    made: dict[Stage, set[str]] = field(default_factory=lambda: {stage: set() for stage in Stage})
    """The topics that this run itself brought to each stage."""

    @property
    def made_last(self) -> frozenset[str]:
        """The topics that this run itself brought to the last of its stages."""
        return frozenset(self.made[last_of(self.stages)])

    def begin(self, wanted: Sequence[str]) -> None:
        """Nothing: a bucket is told of as a whole, at the end."""

    def page_came_to_rest(self, topic_key: str) -> None:
        """Take note of how far this run brought a page."""
        with self.ledger.begin() as connection:
            (page,) = reports.page_reports(connection, self.assets.name, [topic_key])
            history = reports.history(connection, page.page_job_id)
        for stage in reached_by(self.worker, history):
            self.made[stage].add(topic_key)

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
        stock = take_stock(
            self.ledger,
            self.assets.name,
            self.buckets,
            name,
            in_order(self.stages),
            worker=self.worker,
            made=self.made,
        )
        for stage, stands in stock.stages.items():
            if stands.is_done:
                self.log.log(materialization(self.assets, stage, stock))
        tell_stock(self.log, self.assets, stock)
        return stock


def evaluate_buckets(
    log: EventLog,
    assets: SiteAssets,
    buckets: Buckets,
    ledger: Ledger,
    stages: frozenset[Stage],
    names: Sequence[str],
) -> None:
    """Tell in the checks of ``stages`` how the buckets ``names`` stand, and do nothing else."""
    for name in names:
        tell_stock(log, assets, take_stock(ledger, assets.name, buckets, name, in_order(stages)))


def _counted(stands: StageStock, last: Stage) -> dict[str, int]:
    """As ``run_summary.count`` counts single pages."""
    found = count((), last, ())
    made_here, reused = list(found)[:2]
    found[made_here] = stands.made
    found[reused] = stands.counts[Standing.DONE] - stands.made
    for other in (Standing.WAITING, Standing.FAILED, Standing.STOPPED):
        found[other.value] = stands.counts[other]
    return found


def materialization(
    assets: SiteAssets, stage: Stage, stock: BucketStock
) -> dg.AssetMaterialization:
    """The event of a bucket whose pages are all done on the asset of ``stage``."""
    return dg.AssetMaterialization(
        asset_key=assets.key(stage),
        partition=stock.name,
        description=_story(stock, stage),
        metadata=_metadata(stock, stage),
        tags=version_tags(stock.generation_version, assets.parents_of(stage, None)),
    )


def tell_stock(log: EventLog, assets: SiteAssets, stock: BucketStock) -> None:
    """The check of each asset; what is not green is an observation too, for the bucket's pane."""
    for stage, stands in stock.stages.items():
        checked = checked_materializations(log.instance, assets.key(stage), [stock.name])
        log.log(evaluation(assets, stage, stock, checked.get(stock.name)))
        if not stands.is_green:
            log.log(
                dg.AssetObservation(
                    asset_key=assets.key(stage),
                    partition=stock.name,
                    description=_story(stock, stage),
                    metadata=_metadata(stock, stage),
                )
            )


def evaluation(
    assets: SiteAssets,
    stage: Stage,
    stock: BucketStock,
    checked: CheckedMaterialization | None,
) -> dg.AssetCheckEvaluation:
    """The bucket's story on the check of ``stage``, about the materialization ``checked``."""
    stands = stock.stages[stage]
    needs_person = stands.counts[Standing.FAILED] > 0
    return dg.AssetCheckEvaluation(
        asset_key=assets.key(stage),
        check_name=CHECKS[stage],
        passed=stands.is_green,
        severity=dg.AssetCheckSeverity.ERROR if needs_person else dg.AssetCheckSeverity.WARN,
        description=_story(stock, stage),
        metadata=_metadata(stock, stage),
        target_materialization_data=checked,
        partition=stock.name,
    )


def _story(stock: BucketStock, stage: Stage) -> str:
    """How many pages are done, and what becomes of the others."""
    stands = stock.stages[stage]
    done = stands.counts[Standing.DONE]
    parts = [f"{done:,} of {stands.pages:,} pages: {DONE[stage]}"]
    told = {
        "wait for a later run": stands.counts[Standing.WAITING],
        "need a person": stands.counts[Standing.FAILED],
        "stopped": stands.counts[Standing.STOPPED],
        "changed on the site; see `content-pipeline conflicts`": stands.news,
    }
    parts += [f"{number:,} {what}" for what, number in told.items() if number]
    return "; ".join(parts) + "."


def _metadata(stock: BucketStock, stage: Stage) -> Metadata:
    stands = stock.stages[stage]
    counts = {
        "pages": stands.pages,
        "done": stands.counts[Standing.DONE],
        "waiting": stands.counts[Standing.WAITING],
        "failed": stands.counts[Standing.FAILED],
        "stopped": stands.counts[Standing.STOPPED],
        "changed_on_the_site": stands.news,
    }
    found: Metadata = {name: dg.MetadataValue.int(number) for name, number in counts.items()}
    found["cost_usd"] = dg.MetadataValue.float(float(stock.run_usd))
    found["cost_in_all"] = dg.MetadataValue.float(float(stock.usd))
    found["uncertain_usd"] = dg.MetadataValue.float(float(stock.uncertain_usd))
    found["generation_version"] = dg.MetadataValue.text(stock.generation_version)
    if stands.not_green:
        rows = [_row(page, stage) for page in stands.shown]
        found["not_green"] = table(_COLUMNS, rows)
        found["not_green_shown"] = dg.MetadataValue.text(f"{len(rows)} of {stands.not_green:,}")
    return found


def _row(page: PageReport, stage: Stage) -> dict[str, str | int | float]:
    changed = is_news(page, stage)
    return {
        "page": page.topic_key,
        "state": page.site_change.value if changed and page.site_change else page.state.value,
        "error_class": page.failure_class.value if page.failure_class else "",
        "error": (page.site_change_reason if changed else page.failure_message) or "",
        "attempts": len(page.attempts),
        "usd": float(page.usd),
        "next_action": (
            "a person decides which text stands; see `content-pipeline conflicts`"
            if changed and page.awaits_decision
            else NEXT[page.state]
        ),
    }
