"""A bucket's stock: how its pages stand on each asset, counted, and which are not green.

What belongs here: the reading of many pages as one partition, in memory that does not grow with
them. No Dagster; no SQL but the reports.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from content_pipeline.components.made import Made
from content_pipeline.components.standing import Standing, is_news, standing
from content_pipeline.core.buckets import Buckets
from content_pipeline.core.states import Stage
from content_pipeline.ledger import buckets as bucket_rows
from content_pipeline.ledger import reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.reports import PageReport

SHOWN = 100
"""Pages of a bucket that are shown by name, on each asset: more rows than anybody reads."""

SEVERAL = "several"


@dataclass(slots=True, kw_only=True)
class StageStock:
    """How the pages of one bucket stand on one asset."""

    counts: Counter[Standing] = field(default_factory=Counter)
    news: int = 0
    """Done pages of which the site shows something else."""
    made: int = 0
    """Done pages that this run brought there."""
    _for_a_person: list[PageReport] = field(default_factory=list)
    _others: list[PageReport] = field(default_factory=list)

    def add(self, page: PageReport, stage: Stage, *, made: bool) -> None:
        """Count ``page``, and keep it when it is not green and there is room."""
        stands, news = standing(page, stage), is_news(page, stage)
        self.counts[stands] += 1
        self.news += news and stands is Standing.DONE
        self.made += made and stands is Standing.DONE
        if stands is Standing.DONE and not news:
            return
        kept = self._for_a_person if stands is Standing.FAILED or news else self._others
        if len(kept) < SHOWN:
            kept.append(page)

    @property
    def pages(self) -> int:
        """All pages of the bucket."""
        return self.counts.total()

    @property
    def is_done(self) -> bool:
        """Whether every page of the bucket is: one that has none is."""
        return self.counts[Standing.DONE] == self.pages

    @property
    def is_green(self) -> bool:
        """Whether it is done, and the site shows all of it."""
        return self.is_done and not self.news

    @property
    def not_green(self) -> int:
        """How many pages are not green."""
        return self.pages - self.counts[Standing.DONE] + self.news

    @property
    def shown(self) -> Sequence[PageReport]:
        """Pages that are not green, those for a person first; at most SHOWN."""
        return (self._for_a_person + self._others)[:SHOWN]


@dataclass(slots=True, kw_only=True)
class BucketStock:
    """How the pages of one bucket stand."""

    name: str
    stages: Mapping[Stage, StageStock]
    usd: Decimal = Decimal(0)
    uncertain_usd: Decimal = Decimal(0)
    run_usd: Decimal = Decimal(0)
    """What this run's own calls cost."""
    versions: set[str] = field(default_factory=set)
    """The ways that its pages were made in."""

    @property
    def generation_version(self) -> str:
        """The way that all pages were made in; SEVERAL when there is no such."""
        return next(iter(self.versions)) if len(self.versions) == 1 else SEVERAL


def take_stock(
    ledger: Ledger,
    site: str,
    buckets: Buckets,
    name: str,
    stages: Iterable[Stage],
    *,
    made: Made | None = None,
) -> BucketStock:
    """How the pages of the bucket ``name`` stand, and what of it a run made; None without one."""
    stock = BucketStock(name=name, stages={stage: StageStock() for stage in stages})
    for keys in bucket_rows.pages(ledger, site, buckets.slots(name)):
        with ledger.begin() as connection:
            found = reports.page_reports(connection, site, keys)
        for page in found:
            add_page(stock, page, made)
    return stock


def add_page(stock: BucketStock, page: PageReport, made: Made | None) -> None:
    """Count ``page`` in; ``made``: by the run that tells, None without a run."""
    stock.usd += page.usd
    stock.uncertain_usd += page.uncertain_usd
    stock.versions.add(page.generation_version)
    if made is not None:
        own = (item.usd for item in page.attempts if item.worker == made.worker)
        stock.run_usd += sum(own, Decimal(0))
    for stage, counted in stock.stages.items():
        is_made = made is not None and page.topic_key in made.topics[stage]
        counted.add(page, stage, made=is_made)
