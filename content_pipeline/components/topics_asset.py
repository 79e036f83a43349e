"""``topics``: the table of topics taken into the ledger, and a partition for each of its pages.

What belongs here: the asset, its check of the rows, and the registration of partitions.
"""

from dataclasses import dataclass

import dagster as dg
from sqlalchemy import Connection

from content_pipeline.bootstrap import topic_rows
from content_pipeline.components.asset_metadata import ROW_COUNT, topics_metadata
from content_pipeline.components.page_metadata import Metadata, table
from content_pipeline.components.site_assets import (
    TOPICS_CODE_VERSION,
    TOPICS_VERSION,
    SiteAssets,
)
from content_pipeline.components.site_at_work import INFRASTRUCTURE_RETRIES, site_at_work
from content_pipeline.ledger import intake, overview, reports
from content_pipeline.ledger.intake import Intake
from content_pipeline.operations.submit import submit

CHECK = "usable_rows"

SHOWN_REASONS = 200
"""A table with more bad rows has one cause, which these show; the rest is in the ledger."""


def build_topics(assets: SiteAssets) -> dg.AssetsDefinition:
    """The asset of a site's table."""
    source = assets.site.settings.topics

    @dg.asset(
        key=assets.topics,
        description=(
            "The table of topics, taken into the ledger: each row wants a page. Taking the same "
            "row in again changes nothing and costs nothing."
        ),
        group_name=assets.name,
        kinds={"sql" if source.table is None else source.table.rpartition(".")[2].lower()},
        owners=assets.owners,
        tags=assets.tags,
        code_version=TOPICS_CODE_VERSION,
        metadata=topics_metadata(assets.site),
        check_specs=[
            dg.AssetCheckSpec(
                CHECK, asset=assets.topics, description="Whether every row can become a page."
            )
        ],
        retry_policy=INFRASTRUCTURE_RETRIES,
    )
    def topics(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        with site_at_work(assets.site, context.run.run_id) as site:
            taken = submit(site, topic_rows(assets.site), requested_by=site.worker)
            with site.ledger.begin() as connection:
                reasons = _reasons(connection, assets.name, taken)
                new = register(context.instance, assets, connection)
        return dg.MaterializeResult(
            metadata=_metadata(taken, new, reasons),
            data_version=dg.DataVersion(TOPICS_VERSION),
            check_results=[_check(taken, reasons)],
        )

    return topics


def register(instance: dg.DagsterInstance, assets: SiteAssets, connection: Connection) -> int:
    """Make a partition of each topic in the table that has none yet; how many those are.

    None on a site of buckets: there they are known without a topic.
    """
    if assets.buckets is not None:
        return 0
    new = unregistered(instance, assets, intake.topic_keys(connection, assets.name))
    instance.add_dynamic_partitions(assets.partitions_name, new)
    return len(new)


def unregistered(
    instance: dg.DagsterInstance, assets: SiteAssets, topic_keys: list[str]
) -> list[str]:
    """Those of ``topic_keys``, in their order, that are no partition yet."""
    known = set(instance.get_dynamic_partitions(assets.partitions_name))
    return [key for key in topic_keys if key not in known]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reason:
    """Why one row cannot become a page."""

    topic: str
    message: str


def _reasons(connection: Connection, site: str, taken: Intake) -> list[_Reason]:
    if not taken.rejected:
        return []
    nameless = overview.site_status(connection, site).rejected_rows
    refused = reports.page_reports(connection, site, taken.refused[:SHOWN_REASONS])
    return [_Reason(topic="", message=message) for message in nameless] + [
        _Reason(topic=page.topic_key, message=page.failure_message or "") for page in refused
    ]


def _metadata(taken: Intake, new_partitions: int, reasons: list[_Reason]) -> Metadata:
    counts = {
        "rows": taken.wanted + taken.unchanged + taken.rejected,
        "new_or_changed": taken.wanted,
        "unchanged": taken.unchanged,
        "rejected": taken.rejected,
        "retired": len(taken.retired),
        "new_partitions": new_partitions,
    }
    found: Metadata = {name: dg.MetadataValue.int(count) for name, count in counts.items()}
    found[ROW_COUNT] = dg.MetadataValue.int(counts["rows"])
    if taken.rolled_back is not None:
        found["rolled_back"] = dg.MetadataValue.text(taken.rolled_back)
    if taken.retired:
        left = [{"topic": key} for key in taken.retired[:SHOWN_REASONS]]
        found["retired_topics"] = table((("topic", "string"),), left)
    if reasons:
        rows = [{"topic": item.topic, "reason": item.message} for item in reasons[:SHOWN_REASONS]]
        found["rejected_rows"] = table((("topic", "string"), ("reason", "string")), rows)
    return found


def _check(taken: Intake, reasons: list[_Reason]) -> dg.AssetCheckResult:
    first = f": {reasons[0].message}" if reasons else ""
    return dg.AssetCheckResult(
        check_name=CHECK,
        passed=not taken.rejected,
        severity=dg.AssetCheckSeverity.WARN,
        description=(
            f"{taken.rejected} rows cannot become a page{first}"
            if taken.rejected
            else "Every row can become a page."
        ),
        metadata={"rejected": taken.rejected},
    )
