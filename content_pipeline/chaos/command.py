"""``content-pipeline chaos``: arguments, output and exit status of a chaos run."""

import json
import sys
from pathlib import Path

import click
from pydantic import ValidationError
from rich.console import Console

from content_pipeline.chaos.cms_plan import draw_cms_plan
from content_pipeline.chaos.evidence import gather
from content_pipeline.chaos.plan import ChaosPlan, draw_kills, draw_plan, poison_in
from content_pipeline.chaos.project import (
    DEADLINE_S,
    IN_FLIGHT,
    Arena,
    ArenaPlan,
    Target,
    arena,
    names_of,
    paths_of,
)
from content_pipeline.chaos.report import ChaosReport, print_report
from content_pipeline.chaos.second_run import change_inputs, draw_changes, edit_by_hand
from content_pipeline.chaos.site_truth import CMSRecords, Wanted
from content_pipeline.chaos.truth import Evidence, judge
from content_pipeline.chaos.waits import bound_s, paused_s, settling_s
from content_pipeline.chaos.workers import WORKERS, drive
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.sandbox.faults import FaultPlan

MOST_PAGES = 10_000
"""The folder of pages and the provider's records are read into memory at the end."""


@click.command()
@click.option("--pages", type=click.IntRange(1, MOST_PAGES), default=50, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True, help="Of faults and kills.")
@click.option(
    "--kill",
    "kills",
    type=click.IntRange(0, 50),
    default=1,
    show_default=True,
    help="How often all workers are killed, at drawn shares of finished pages.",
)
@click.option(
    "--kill-at",
    type=click.FloatRange(0, 1),
    multiple=True,
    help="A share of finished pages at which to kill; instead of --kill, may be repeated.",
)
@click.option(
    "--cms",
    "target",
    type=click.Choice([each.value for each in Target]),
    default=Target.SANDBOX.value,
    show_default=True,
    help="Publish to the offline CMS, a fifth of whose writes go wrong, or to a folder.",
)
@click.option(
    "--late",
    is_flag=True,
    help="Lost writes take effect 4 s after their connection is cut, lists are 2 s behind.",
)
@click.option(
    "--edits",
    type=click.IntRange(0, MOST_PAGES),
    default=5,
    show_default=True,
    help="Pages that people edit by hand before a second run with changed inputs.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A JSON plan of faults for the sandbox provider, instead of a drawn one.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the verdict here as JSON, too.",
)
@click.option("--keep", is_flag=True, help="Leave the project's files for a look.")
def chaos(
    pages: int,
    seed: int,
    kills: int,
    kill_at: tuple[float, ...],
    target: str,
    edits: int,
    plan_file: Path | None,
    json_file: Path | None,
    *,
    late: bool,
    keep: bool,
) -> None:
    """Prove the promise: faults on every call, workers killed, and the other side asked.

    Works in a project of its own with its own database, so nothing of yours is touched. Exit status
    1 when a promise was broken.
    """
    where = ArenaPlan(pages=pages, seed=seed, target=Target(target), late=late, keep=keep)
    if late and where.target is Target.FOLDER:
        raise click.UsageError("--late is about the CMS: a folder has no late writes")
    plan = _plan(pages, seed, kills, plan_file)
    report = run_chaos(where, plan, kill_shares=kill_at or plan.kill_shares, edits=edits)
    print_report(report, Console(emoji=False, highlight=False))
    if json_file is not None:
        json_file.write_text(json.dumps(report.document(), indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if report.numbers.broken_promises() else 0)


def _plan(pages: int, seed: int, kills: int, file: Path | None) -> ChaosPlan:
    names = list(names_of(pages).values())
    if file is None:
        return draw_plan(seed, names, kills=kills, deadline_s=DEADLINE_S)
    try:
        faults = FaultPlan.model_validate_json(file.read_bytes())
    except ValidationError as error:
        places = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        raise ConfigurationError(f"{file} is no plan of faults: {'; '.join(places)}") from None
    return ChaosPlan(
        faults=faults, poison=poison_in(faults, names), kill_shares=draw_kills(seed, kills)
    )


def run_chaos(
    where: ArenaPlan, plan: ChaosPlan, *, kill_shares: tuple[float, ...], edits: int
) -> ChaosReport:
    """Run the pipeline under ``plan`` and judge it. Raises ConfigurationError."""
    with arena(where) as place:
        place.sandbox.set_faults(plan.faults)
        if place.cms is not None:
            place.cms.set_faults(draw_cms_plan(where.seed, late=where.late))
        campaign = drive(place, sorted(kill_shares))
        names = frozenset(place.names.values()) - plan.poison
        changes = draw_changes(where.seed, sorted(names), edits if place.cms else 0)
        if changes.all:
            edit_by_hand(place, changes.edited)
            change_inputs(place, changes.all)
            campaign = campaign.followed_by(drive(place, ()))
        wanted = Wanted(
            live=paths_of(names), changed=paths_of(changes.all), edited=paths_of(changes.edited)
        )
        evidence = gather(place, wanted, poison=plan.poison, kills=campaign.kills)
        return ChaosReport(
            where=where,
            campaign=campaign,
            numbers=judge(evidence),
            bound_s=_bound_s(place, evidence),
            kept_at=str(place.project.root) if where.keep else None,
        )


def _bound_s(place: Arena, evidence: Evidence) -> float:
    """Seconds that no client could do without; waits of provider and CMS run side by side."""
    latencies = {each["id"]: each["latency_s"] for each in place.sandbox.truth()["generations"]}
    of_provider = bound_s(evidence.received, latencies, WORKERS * IN_FLIGHT)
    if not isinstance(evidence.site, CMSRecords):
        return of_provider
    told = evidence.site.received
    return max(of_provider, paused_s(told)) + settling_s(told, place.late_s)
