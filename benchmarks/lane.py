"""``lane``: how close the pipeline comes to the time that the calls themselves take.

What belongs here: the whole lane against the sandbox provider, next to a bare script that makes
the same calls with the same latencies, and the bound that neither can pass.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from openai import AsyncOpenAI
from rich.console import Console
from rich.table import Table

from benchmarks.bare import generate_all
from benchmarks.machine import CpuSeconds, about, cpu_seconds, load, spread
from benchmarks.place import IN_FLIGHT, site_of_example, temporary_project
from content_pipeline.bootstrap import SANDBOX_KEY, open_ledger, open_site, topic_rows
from content_pipeline.config import Project
from content_pipeline.core.ports import GenerationRequest
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import attempts, jobs, reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.schema import AttemptKind
from content_pipeline.operations.lane import advance
from content_pipeline.operations.requests import build_request, position
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.submit import submit
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.supervisor import ensure_provider_running
from content_pipeline.site_files import Site, site_of

LATENCY_MEDIAN_S = 0.4

GOAL = 1.25
"""Times the bound: what the lane may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One way to make the pages, measured once."""

    pages: int
    wall_s: float
    bound_s: float
    """The latencies that the provider really served, spread over the calls in flight."""
    cpu: CpuSeconds

    @property
    def ratio(self) -> float:
        """Wall seconds to the bound."""
        return self.wall_s / self.bound_s


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshSite:
    """A site with nothing generated yet, and the calls that its pages will make."""

    runtime: SiteRuntime
    selection: Selection
    requests: Sequence[GenerationRequest]


def bench_lane(console: Console, *, pages: int, rounds: int) -> None:
    """Measure and print."""
    lanes, scripts = [], []
    before = load()
    with temporary_project(pages=pages, latency_median_s=LATENCY_MEDIAN_S) as project:
        ledger = open_ledger(project)
        try:
            for number in range(rounds):
                fresh = _fresh_site(project, ledger, number)
                # Taking turns at going first, so that neither has the quieter machine.
                if number % 2:
                    scripts.append(_script(project, fresh))
                    lanes.append(_lane(project, fresh))
                else:
                    lanes.append(_lane(project, fresh))
                    scripts.append(_script(project, fresh))
        finally:
            ledger.dispose()
    console.print(_table(lanes, scripts, caption=about(before)))


def _fresh_site(project: Project, ledger: Ledger, number: int) -> FreshSite:
    """A site of its own for each round, submitted."""
    example = site_of_example(project)
    cms = example.settings.cms.model_copy(update={"folder": f"public/round{number}"})
    settings = example.settings.model_copy(update={"site": f"round{number}", "cms": cms})
    site: Site = site_of(settings, example.file)
    runtime = open_site(site, project, ledger, purpose="bench")
    intake = submit(runtime, topic_rows(site), requested_by=runtime.worker)
    with ledger.begin() as connection:
        wanted = reports.page_reports(connection, site.settings.site)
        page_jobs = [jobs.load(connection, page.page_job_id) for page in wanted]
    requests = [_first_request(runtime, job) for job in page_jobs]
    selection = Selection(site=site.settings.site, topics=intake.topic_keys)
    return FreshSite(runtime=runtime, selection=selection, requests=requests)


def _first_request(runtime: SiteRuntime, job: PageJob) -> GenerationRequest:
    """The paid call that the lane is about to make for ``job``."""
    asked = position(runtime, job)
    assert asked.step is not None
    attempt_id = attempts.attempt_id(job.page_job_id, AttemptKind.GENERATE, 1)
    return build_request(runtime, job, asked.step, asked.prompt, attempt_id)


def _lane(project: Project, fresh: FreshSite) -> Work:
    provider, pages = _provider(project), len(fresh.requests)
    provider.reset()
    before, started_at = cpu_seconds(project), time.monotonic()
    ended_at, published = started_at, 0
    for settled in advance(fresh.runtime, fresh.selection):
        if settled.state is PageJobState.PUBLISHED:
            published += 1
            ended_at = time.monotonic()
    if published != pages:
        raise SystemExit(f"the lane published {published} of {pages} pages: nothing to compare")
    return _work(project, provider, pages, ended_at - started_at, before)


def _script(project: Project, fresh: FreshSite) -> Work:
    provider, requests = _provider(project), fresh.requests
    provider.reset()
    folder = project.root / "bare" / fresh.selection.site
    folder.mkdir(parents=True)

    async def timed() -> Work:
        async with AsyncOpenAI(base_url=provider.base_url, api_key=SANDBOX_KEY) as client:
            before, started_at = cpu_seconds(project), time.monotonic()
            await generate_all(client, requests, folder, IN_FLIGHT)
            wall_s = time.monotonic() - started_at
            return _work(project, provider, len(requests), wall_s, before)

    return asyncio.run(timed())


def _provider(project: Project) -> SandboxClient:
    return ensure_provider_running(project.data_home).client()


def _work(
    project: Project, provider: SandboxClient, pages: int, wall_s: float, before: CpuSeconds
) -> Work:
    cpu = cpu_seconds(project).since(before)
    served = [generation["latency_s"] for generation in provider.truth()["generations"]]
    if len(served) != pages:
        raise SystemExit(f"the provider served {len(served)} calls for {pages} pages")
    return Work(pages=pages, wall_s=wall_s, bound_s=sum(served) / IN_FLIGHT, cpu=cpu)


def _table(lanes: Sequence[Work], scripts: Sequence[Work], caption: str) -> Table:
    pages = lanes[0].pages
    table = Table(
        title=f"lane: {pages} pages, {IN_FLIGHT} calls in flight, {len(lanes)} rounds",
        caption=caption,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("median (range)")
    for name in ("lane", "bare script", "lane minus script"):
        table.add_column(name, justify="right")
    table.add_row("bound, s", *(spread([w.bound_s for w in works]) for works in (lanes, scripts)))
    table.add_row(
        "wall, s",
        *(spread([work.wall_s for work in works]) for works in (lanes, scripts)),
        spread([lane.wall_s - script.wall_s for lane, script in zip(lanes, scripts, strict=True)]),
    )
    table.add_row(
        f"wall to bound (goal: {GOAL})",
        *(spread([work.ratio for work in works], ".3f") for works in (lanes, scripts)),
        spread([lane.ratio - other.ratio for lane, other in zip(lanes, scripts, strict=True)]),
    )
    for name in ("client", "database", "provider"):
        costs = [[1000 * getattr(w.cpu, name) / pages for w in works] for works in (lanes, scripts)]
        table.add_row(
            f"{name} CPU, ms a page",
            *(spread(values, ".1f") for values in costs),
            spread([mine - other for mine, other in zip(*costs, strict=True)], ".1f"),
        )
    return table
