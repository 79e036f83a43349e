"""``nightly``: a night of a site whose 10,000 pages are all published and unchanged.

What belongs here: the schedule's tick and the plan that it asks for, and a backfill over every page
as a person launches it in the UI, both under a real ``dagster dev``; and where the time goes.
"""

import csv
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import psutil
import yaml
from rich.console import Console
from rich.table import Table
from sqlalchemy import create_engine, text

from benchmarks.dagster_backfills import Run, launch, runs_of, wait_until_done
from benchmarks.dagster_place import DagsterDev, dagster_dev, wait_for
from benchmarks.machine import about, cpu_seconds, load
from benchmarks.place import site_of_example, temporary_project
from benchmarks.sensors import ARTICLE, server_url
from benchmarks.waiting import EXAMPLE_ROWS, as_dagster, many
from content_pipeline.bootstrap import open_ledger, open_site, topic_rows, utc_now
from content_pipeline.components.repairing import RepairCursor
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.config import Project
from content_pipeline.ledger.changed_pages import Position
from content_pipeline.operations.submit import submit
from content_pipeline.site_files import Site
from content_pipeline_tests.ledger.large_ledger import count, without_guards

GOAL_S = 120
"""For the plan and the backfill together."""

RUNS_AT_ONCE = 4
"""Of the instance's file."""

ENDS_WITHIN_S = 1_800.0
PLANS_WITHIN_S = 300.0

_REPOSITORIES = """
{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } } } }
"""

_SET_CURSOR = """
mutation($where: SensorSelector!, $cursor: String) {
  setSensorCursor(sensorSelector: $where, cursor: $cursor) { __typename }
}
"""

_START = """
mutation($where: ScheduleSelector!) {
  startSchedule(scheduleSelector: $where) { __typename }
}
"""

_TICKS = """
query($where: ScheduleSelector!) {
  scheduleOrError(scheduleSelector: $where) { ... on Schedule { scheduleState { id ticks(limit: 1) {
    status timestamp endTimestamp skipReason runIds error { message } } } } }
}
"""

_STOP = """
mutation($id: String!) { stopRunningSchedule(id: $id) { __typename } }
"""

_RUN = """
query($id: ID!) {
  runOrError(runId: $id) { ... on Run { status creationTime startTime endTime } }
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The schedule's tick, and the run that it asked for."""

    evaluated_s: float
    queued_s: float
    """From the run's being asked for until its process is at work."""
    planned_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What a night came to."""

    tick: Tick
    backfill_s: float
    """Until Dagster calls the backfill completed."""
    asked_s: float
    """Of it until the first run is in the queue."""
    noticed_s: float
    """Of it after the last run had ended."""
    runs: Sequence[Run]
    cpu_s: float
    """Of all Dagster's processes, in the backfill."""
    database_cpu_s: float


def bench_nightly(console: Console, *, pages: int) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=EXAMPLE_ROWS) as project:
        _tick_each_minute(project)
        site = _all_published(project, pages)
        assets = SiteAssets(site=site)
        with as_dagster(project) as instance:
            keys = [row[site.settings.topics.id] for row in topic_rows(site)]
            instance.add_dynamic_partitions(assets.partitions_name, keys)
        with dagster_dev(project, site.file) as dev:
            night = _night(project, dev, assets, keys)
    console.print(_table(night, pages, caption=about(before)))


def _tick_each_minute(project: Project) -> None:
    """Let the schedule tick soon, whatever the hour."""
    (file,) = project.site_files()
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    document["attributes"]["schedule"] = {"cron": "* * * * *"}
    file.write_text(yaml.safe_dump(document), encoding="utf-8")


def _night(project: Project, dev: DagsterDev, assets: SiteAssets, keys: Sequence[str]) -> Night:
    _let_repair_agree(dev, assets)
    tick = _one_tick(dev, assets)
    before, database_before = _tree_cpu_s(), cpu_seconds(project).database
    began, began_at = time.monotonic(), time.time()
    backfill = launch(dev, assets, keys)
    wait_until_done(dev, backfill, within_s=ENDS_WITHIN_S)
    took_s = time.monotonic() - began
    runs = runs_of(project, backfill)
    ended_at = max(run.events["PIPELINE_SUCCESS"].last for run in runs)
    return Night(
        tick=tick,
        backfill_s=took_s,
        asked_s=min(run.at("PIPELINE_ENQUEUED") for run in runs) - began_at,
        noticed_s=began_at + took_s - ended_at,
        runs=runs,
        cpu_s=_tree_cpu_s() - before,
        database_cpu_s=cpu_seconds(project).database - database_before,
    )


def _selector(dev: DagsterDev, **name: str) -> dict[str, str]:
    nodes = dev.ask(_REPOSITORIES)["repositoriesOrError"]["nodes"]
    return {
        "repositoryName": nodes[0]["name"],
        "repositoryLocationName": nodes[0]["location"]["name"],
        **name,
    }


def _let_repair_agree(dev: DagsterDev, assets: SiteAssets) -> None:
    """As after a look that told Dagster of every page, long before this night."""
    cursor = str(RepairCursor(position=Position(at=utc_now())))
    where = _selector(dev, sensorName=f"{assets.name}_repair_sensor")
    dev.ask(_SET_CURSOR, where=where, cursor=cursor)


def _one_tick(dev: DagsterDev, assets: SiteAssets) -> Tick:
    """Switch the schedule on until it ticked, and wait for what it asked for."""
    where = _selector(dev, scheduleName=f"{assets.name}_schedule")
    dev.ask(_START, where=where)
    found: list[dict[str, Any]] = []

    def ticked() -> bool:
        state = dev.ask(_TICKS, where=where)["scheduleOrError"]["scheduleState"]
        found[:] = [tick for tick in state["ticks"] if tick["status"] != "STARTED"]
        if found:
            dev.ask(_STOP, id=state["id"])
        return bool(found)

    wait_for("the schedule's tick", ticked, within_s=PLANS_WITHIN_S)
    tick = found[0]
    evaluated_s = tick["endTimestamp"] - tick["timestamp"]
    if tick["status"] == "SKIPPED":
        return Tick(evaluated_s=evaluated_s, queued_s=0, planned_s=0)
    if tick["status"] != "SUCCESS":
        raise SystemExit(f"the schedule's tick failed: {tick}")
    (run_id,) = tick["runIds"]
    run = _ended(dev, run_id)
    return Tick(
        evaluated_s=evaluated_s,
        queued_s=run["startTime"] - run["creationTime"],
        planned_s=run["endTime"] - run["startTime"],
    )


def _ended(dev: DagsterDev, run_id: str) -> dict[str, Any]:
    """The run once it succeeded."""
    run: dict[str, Any] = {}

    def is_over() -> bool:
        run.update(dev.ask(_RUN, id=run_id)["runOrError"])
        if run["status"] in ("FAILURE", "CANCELED"):
            raise SystemExit(f"the plan ended as {run['status']}; see dev.log")
        return bool(run["status"] == "SUCCESS")

    wait_for("the plan", is_over, within_s=PLANS_WITHIN_S)
    return run


def _tree_cpu_s() -> float:
    """CPU seconds of the processes that this one started, of those that ended too."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _all_published(project: Project, pages: int) -> Site:
    """Want ``pages``, and let them be published by the database."""
    site = site_of_example(project)
    rows = list(many(list(topic_rows(site)), pages))
    assert site.table is not None
    with site.table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    ledger = open_ledger(project)
    try:
        runtime = open_site(site, project, ledger, purpose="bench")
        submit(runtime, topic_rows(site), requested_by=runtime.worker)
    finally:
        ledger.dispose()
    server = create_engine(server_url(project))
    with server.begin() as connection:
        without_guards(connection)
        for statement in _PUBLISHED:
            values = {"site": site.settings.site, "article": ARTICLE}
            connection.execute(text(statement), values)
    count(server)
    server.dispose()
    return site


_PUBLISHED = (
    """UPDATE content_pipeline.page_jobs SET state = 'published', sequence = 8, revision = 1,
       finished_at = now() WHERE site = :site AND state = 'queued'""",
    """UPDATE content_pipeline.pages SET last_revision = 1, published_revision = 1,
       published_content_hash = 'c', published_title = 't', published_meta_description = 'm',
       remote_id = page_id, remote_url = 'https://example.com', remote_fingerprint = 'f',
       content_changed_at = now(), verified_at = now(), first_public_at = now()
       WHERE site = :site""",
    """INSERT INTO content_pipeline.attempts (attempt_id, page_job_id, kind, step, number, epoch,
       state, worker, generation_version, input_hash, model, input_tokens, output_tokens,
       started_at, finished_at)
       SELECT page_job_id || kind, page_job_id, kind, 'article', 1, 1, 'succeeded', 'w',
              generation_version, input_hash, 'gpt-5-mini', 900, 700, now(), now()
       FROM content_pipeline.page_jobs, (VALUES ('generate'), ('publish')) k(kind)
       WHERE site = :site""",
    """INSERT INTO content_pipeline.draft_revisions (page_id, revision, page_job_id, attempt_id,
       article, output_hash)
       SELECT page_id, 1, page_job_id, page_job_id || 'generate', CAST(:article AS jsonb), 'h'
       FROM content_pipeline.page_jobs WHERE site = :site""",
    """INSERT INTO content_pipeline.spend (attempt_id, site, page_job_id, day, state, reserved_usd,
       settled_usd)
       SELECT page_job_id || 'generate', site, page_job_id, current_date - 1, 'settled', 0.02, 0.004
       FROM content_pipeline.page_jobs WHERE site = :site""",
)


def _table(night: Night, pages: int, caption: str) -> Table:
    runs = night.runs
    table = Table(
        title=f"nightly: {pages:,} published pages, a plan and a backfill of {len(runs)} runs, "
        f"{RUNS_AT_ONCE} at once",
        caption=caption,
        title_justify="left",
        caption_justify="left",
        show_header=False,
    )
    tick = night.tick
    table.add_row("the schedule's tick, s", f"{tick.evaluated_s:.1f}")
    table.add_row("its run until it works, s", f"{tick.queued_s:.1f}")
    table.add_row("its plan, s", f"{tick.planned_s:.1f}")
    table.add_row("backfill until it is called completed, s", f"{night.backfill_s:.1f}")
    together_s = tick.evaluated_s + tick.queued_s + tick.planned_s + night.backfill_s
    table.add_row(f"together, s (goal: {GOAL_S})", f"{together_s:.1f}")
    table.add_section()
    table.add_row("until its first run is queued, s", f"{night.asked_s:.1f}")
    table.add_row("after its last run ended, s", f"{night.noticed_s:.1f}")
    table.add_row("waves of runs", str(ceil(len(runs) / RUNS_AT_ONCE)))
    parts: tuple[tuple[str, Callable[[Run], float]], ...] = (
        ("a run: asked for to begun (Dagster's queue), s", lambda run: run.queued_s),
        ("a run: start-up, s", lambda run: run.start_up_s),
        ("a run: its pages, s", lambda run: run.work_s),
        ("a run: checks, hooks and end, s", lambda run: run.checks_s),
        ("a run: planned events, s", lambda run: run.planned_s),
    )
    for name, part in parts:
        table.add_row(name, f"{statistics.median(part(run) for run in runs):.2f}")
    table.add_section()
    table.add_row("CPU of Dagster's processes, s", f"{night.cpu_s:.0f}")
    table.add_row("CPU of the database, s", f"{night.database_cpu_s:.0f}")
    return table
