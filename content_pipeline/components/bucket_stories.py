"""One bucket in Dagster: the event that shows it done on an asset, and the story of how it stands.

What belongs here: from a bucket's stock to what people see, as ``page_stories`` for single pages.
"""

import dagster as dg

from content_pipeline.components.bucket_stock import BucketStock
from content_pipeline.components.page_metadata import Metadata, next_action, table
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.standing import Standing, is_news
from content_pipeline.components.stories import DONE, Story, materialization
from content_pipeline.core.states import NEXT, Stage
from content_pipeline.ledger.reports import PageReport

_COLUMNS = (
    ("page", "string"),
    ("state", "string"),
    ("error_class", "string"),
    ("error", "string"),
    ("attempts", "int"),
    ("usd", "float"),
    ("next_action", "string"),
)


def bucket_materialization(
    assets: SiteAssets, stage: Stage, stock: BucketStock
) -> dg.AssetMaterialization:
    """The event of a bucket whose pages are all done on the asset of ``stage``."""
    return materialization(
        assets,
        stage,
        stock.name,
        text=_text(stock, stage),
        metadata=_metadata(stock, stage),
        generation_version=stock.generation_version,
    )


def stories_of_bucket(stock: BucketStock) -> list[Story]:
    """How ``stock`` stands on each asset it was taken for; one that is not green is observed."""
    return [_story(stock, stage) for stage in stock.stages]


def _story(stock: BucketStock, stage: Stage) -> Story:
    stands = stock.stages[stage]
    return Story(
        stage=stage,
        partition=stock.name,
        text=_text(stock, stage),
        metadata=_metadata(stock, stage),
        is_green=stands.is_green,
        needs_person=stands.counts[Standing.FAILED] > 0,
        is_observed=not stands.is_green,
    )


def _text(stock: BucketStock, stage: Stage) -> str:
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
        "next_action": next_action(page) if changed else NEXT[page.state],
    }
