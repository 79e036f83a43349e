"""``backfill``: what many pages cost as one asset backfill under a real `dagster dev`.

What belongs here: the backfill, the same pages by the lane alone, the time of both next to the
bound, and Dagster's own part of it: its events counted and timed where they were written.
"""

import csv
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table
from sqlalchemy import create_engine, text

from benchmarks.dagster_place import dagster_dev, wait_for
from benchmarks.machine import about, load
from benchmarks.place import site_of_example, temporary_project
from content_pipeline.bootstrap import open_ledger, open_site, topic_rows
from content_pipeline.components.site_assets import PAGES_PER_RUN, SiteAssets
from content_pipeline.components.storage import SCHEMA
from content_pipeline.config import Project, environment
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.lane import advance
from content_pipeline.operations.submit import submit
from content_pipeline.postgres.urls import database_url
from content_pipeline.sandbox.supervisor import ensure_provider_running
from content_pipeline.site_files import site_of
from content_pipeline_tests.machines.web_server import WebServer

LATENCY_S = 0.4
RUNS_AT_ONCE = 4
"""Of the instance's file."""
IN_FLIGHT = 64
"""In all runs together."""
GOAL = 1.3
"""Times the bound, besides the start-up of the runs: what a backfill may take."""

ENDS_WITHIN_S = 1800.0

_STATUS = """
query($id: String!) {
  partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } }
}
"""

_REPOSITORIES = """
{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } } } }
"""

_ADD = """
mutation($where: RepositorySelector!, $name: String!, $key: String!) {
  addDynamicPartition(repositorySelector: $where, partitionsDefName: $name, partitionKey: $key) {
    __typename
  }
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

    def each_ms(self, kind: str) -> float:
        """Between two events of ``kind`` that are written one right after the other."""
        events = self.events[kind]
        return 1000 * (events.last - events.first) / max(events.count - 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """One backfill, measured."""

    wall_s: float
    bound_s: float
    """The latencies really served, spread over the calls that its runs can have out."""
    runs: Sequence[Run]

    @property
    def start_up_s(self) -> float:
        """What starting costs on the longest way: so many runs begin after one another."""
        waves = ceil(len(self.runs) / RUNS_AT_ONCE)
        first = min(run.at("PIPELINE_ENQUEUED") for run in self.runs)
        queued = min(run.at("PIPELINE_STARTING") for run in self.runs) - first
        return queued + waves * statistics.median(run.start_up_s for run in self.runs)


def bench_backfill(console: Console, *, pages: int) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=1) as project:
        _write_site(project, pages)
        lane_s = _lane(project, pages)
        site = site_of_example(project)
        with dagster_dev(project, site.file) as dev:
            done = _backfill(project, dev, SiteAssets(site=site), pages)
    console.print(_table(done, lane_s, pages, caption=about(before)))
    console.print(_events_table(done, pages))


def _write_site(project: Project, pages: int) -> None:
    """As many topics as asked for, and equal latencies: the bound is then plain."""
    (file,) = project.site_files()
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    attributes = document["attributes"]
    attributes["generation"] |= {
        "in_flight": IN_FLIGHT // RUNS_AT_ONCE,
        "sandbox": {"latency_median_s": LATENCY_S, "latency_sigma": 0},
    }
    attributes["budgets"] |= {"site_day_usd": 10_000}
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    _multiply(file.with_name(attributes["topics"]["table"]), pages)


def _multiply(table: Path, pages: int) -> None:
    with table.open(encoding="utf-8", newline="") as source:
        head, row = list(csv.reader(source))[:2]
    place = {name: head.index(name) for name in ("iso", "name")}
    with table.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(head)
        for number in range(pages):
            made = list(row)
            made[place["iso"]] = f"P{number:05}"
            made[place["name"]] = f"Place {number:05}"
            writer.writerow(made)


def _lane(project: Project, pages: int) -> float:
    """The same pages for another site by the lane alone, with all calls in one process."""
    example = site_of_example(project)
    generation = example.settings.generation.model_copy(update={"in_flight": IN_FLIGHT})
    cms = example.settings.cms.model_copy(update={"folder": "public/lane"})
    renamed = {"site": "lane", "generation": generation, "cms": cms}
    site = site_of(example.settings.model_copy(update=renamed), example.file)
    ledger = open_ledger(project)
    try:
        runtime = open_site(site, project, ledger, purpose="bench")
        began = time.monotonic()
        intake = submit(runtime, topic_rows(site), requested_by=runtime.worker)
        selection = Selection(site="lane", topics=intake.topic_keys)
        states = [settled.state for settled in advance(runtime, selection)]
        wall_s = time.monotonic() - began
    finally:
        ledger.dispose()
    if states.count(PageJobState.PUBLISHED) != pages:
        raise SystemExit("the lane did not publish every page: nothing to compare")
    return wall_s


def _backfill(project: Project, dev: WebServer, assets: SiteAssets, pages: int) -> Backfill:
    keys = [f"P{number:05}" for number in range(pages)]
    _register(dev, assets, keys)
    provider = ensure_provider_running(project.data_home).client()
    provider.reset()
    began = time.monotonic()
    backfill = dev.launch_backfill([assets.key(stage).path for stage in Stage], keys)

    def ended() -> bool:
        told = dev.ask(_STATUS, id=backfill)["partitionBackfillOrError"]["status"]
        if told not in ("REQUESTED", "COMPLETED_SUCCESS"):
            raise SystemExit(f"the backfill ended as {told}; see dev.log")
        return bool(told == "COMPLETED_SUCCESS")

    wait_for("the backfill", ended, within_s=ENDS_WITHIN_S)
    noticed_s = time.monotonic() - began
    served = [generation["latency_s"] for generation in provider.truth()["generations"]]
    runs = _runs(project, backfill)
    # The daemon looks at a backfill every few seconds; its pages were done when its runs were.
    ended_at = max(run.events["PIPELINE_SUCCESS"].last for run in runs)
    wall_s = ended_at - min(run.at("PIPELINE_ENQUEUED") for run in runs)
    if len(served) != pages or wall_s > noticed_s:
        raise SystemExit(f"{len(served)} calls for {pages} pages: nothing to compare")
    in_flight = IN_FLIGHT * min(len(runs), RUNS_AT_ONCE) // RUNS_AT_ONCE
    return Backfill(wall_s=wall_s, bound_s=sum(served) / in_flight, runs=runs)


def _register(dev: WebServer, assets: SiteAssets, keys: Sequence[str]) -> None:
    """Add the pages' partitions, as the sensor would within a minute."""
    nodes = dev.ask(_REPOSITORIES)["repositoriesOrError"]["nodes"]
    selector = {
        "repositoryName": nodes[0]["name"],
        "repositoryLocationName": nodes[0]["location"]["name"],
    }
    for key in keys:
        dev.ask(_ADD, where=selector, name=assets.partitions_name, key=key)


def _runs(project: Project, backfill: str) -> list[Run]:
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


def _table(done: Backfill, lane_s: float, pages: int, caption: str) -> Table:
    table = Table(
        title=f"backfill: {pages} pages, {len(done.runs)} runs of at most {PAGES_PER_RUN}, "
        f"{RUNS_AT_ONCE} at once, {IN_FLIGHT} calls in flight, {LATENCY_S} s a call",
        caption=caption,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("one round")
    table.add_column("backfill", justify="right")
    table.add_column("lane alone", justify="right")
    after = done.wall_s - done.start_up_s
    lane_bound_s = pages * LATENCY_S / IN_FLIGHT
    table.add_row("bound, s", f"{done.bound_s:.2f}", f"{lane_bound_s:.2f}")
    table.add_row("wall, s", f"{done.wall_s:.2f}", f"{lane_s:.2f}")
    table.add_row("of it start-up of runs, s", f"{done.start_up_s:.2f}", "")
    table.add_row(
        f"wall after start-up to bound (goal: {GOAL})",
        f"{after / done.bound_s:.2f}",
        f"{lane_s / lane_bound_s:.2f}",
    )
    table.add_row("backfill to lane, after start-up", f"{after / lane_s:.2f}", "")
    for name, values in (
        ("a run: start-up, s", [run.start_up_s for run in done.runs]),
        ("a run: its pages, s", [run.work_s for run in done.runs]),
        ("a run: checks, hooks and end, s", [run.checks_s for run in done.runs]),
    ):
        table.add_row(name, f"{statistics.median(values):.2f}", "")
    return table


def _events_table(done: Backfill, pages: int) -> Table:
    table = Table(title="Dagster's events", title_justify="left")
    table.add_column("kind")
    table.add_column("a page", justify="right")
    table.add_column("ms each, in a row", justify="right")
    kinds = sorted({kind for run in done.runs for kind in run.events})
    in_a_row = ("ASSET_MATERIALIZATION_PLANNED", "ASSET_CHECK_EVALUATION")
    for kind in kinds:
        having = [run for run in done.runs if kind in run.events]
        count = sum(run.events[kind].count for run in having)
        if count < len(done.runs) * 2:
            continue
        each = statistics.median(run.each_ms(kind) for run in having)
        table.add_row(kind, f"{count / pages:.2f}", f"{each:.2f}" if kind in in_a_row else "")
    return table
