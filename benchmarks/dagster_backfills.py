"""Backfills of a running ``dagster dev``: launched as the UI does, and read back run by run.

What belongs here: asking for one, waiting for its end, and its runs as Dagster's own events tell
of them. What is compared with what is each benchmark's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import create_engine, text

from benchmarks.dagster_place import DagsterDev, wait_for
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.storage import SCHEMA
from content_pipeline.config import Project, environment
from content_pipeline.core.states import Stage
from content_pipeline.postgres.urls import database_url

_STATUS = """
query($id: String!) {
  partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } }
}
"""

_EVENTS = """
SELECT run_id, coalesce(dagster_event_type, 'log line') AS kind, count(*) AS events,
       extract(epoch FROM min(timestamp)) AS first, extract(epoch FROM max(timestamp)) AS last
FROM {schema}.event_logs WHERE run_id IN (SELECT run_id FROM {schema}.run_tags
  WHERE key = 'dagster/backfill' AND value = :backfill)
GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Those of one kind in one run; times in seconds of the epoch."""

    count: int
    first: float
    last: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the backfill: its events by kind."""

    events: Mapping[str, Events]

    def at(self, kind: str) -> float:
        """When the first event of ``kind`` was written."""
        return self.events[kind].first

    @property
    def start_up_s(self) -> float:
        """From being taken out of the queue to its step's begin."""
        return self.at("STEP_START") - self.at("PIPELINE_STARTING")

    @property
    def work_s(self) -> float:
        """From its step's begin to the first check: by then every page has come to rest."""
        return self.at("ASSET_CHECK_EVALUATION") - self.at("STEP_START")

    @property
    def checks_s(self) -> float:
        """From the first check to the step's end, the hooks included."""
        ended = self.events.get("STEP_SUCCESS") or self.events["STEP_FAILURE"]
        return ended.last - self.at("ASSET_CHECK_EVALUATION")

    @property
    def queued_s(self) -> float:
        """From standing in the queue to being taken out of it."""
        return self.at("PIPELINE_STARTING") - self.at("PIPELINE_ENQUEUED")

    @property
    def planned_s(self) -> float:
        """What its planned events took, before it stood in the queue."""
        events = self.events["ASSET_MATERIALIZATION_PLANNED"]
        return events.last - events.first

    def each_ms(self, kind: str) -> float:
        """Between two events of ``kind`` that are logged one right after the other.

        They are written many at once; what that takes is among the CPU of the processes.
        """
        events = self.events[kind]
        return 1000 * (events.last - events.first) / max(events.count - 1, 1)


def launch(dev: DagsterDev, assets: SiteAssets, keys: Sequence[str]) -> str:
    """Ask for all three assets of the pages ``keys``; the backfill's id."""
    return dev.web.launch_backfill([assets.key(stage).path for stage in Stage], keys)


def wait_until_done(dev: DagsterDev, backfill: str, *, within_s: float) -> None:
    """Until Dagster calls it completed. Ends the benchmark when a page of it is not out."""

    def ended() -> bool:
        told = dev.ask(_STATUS, id=backfill)["partitionBackfillOrError"]["status"]
        if told not in ("REQUESTED", "COMPLETED_SUCCESS"):
            raise SystemExit(f"the backfill ended as {told}; see dev.log")
        return bool(told == "COMPLETED_SUCCESS")

    wait_for("the backfill", ended, within_s=within_s)


def runs_of(project: Project, backfill: str) -> list[Run]:
    """The runs of a backfill with their events."""
    engine = create_engine(database_url(environment(), project.data_home).ledger_url)
    found: dict[str, dict[str, Events]] = {}
    try:
        with engine.connect() as connection:
            query = text(_EVENTS.format(schema=SCHEMA))
            for row in connection.execute(query, {"backfill": backfill}).mappings():
                events = Events(
                    count=row["events"], first=float(row["first"]), last=float(row["last"])
                )
                found.setdefault(row["run_id"], {})[row["kind"]] = events
    finally:
        engine.dispose()
    return [Run(events=events) for events in found.values()]
