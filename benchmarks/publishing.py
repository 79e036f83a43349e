"""``publishing``: requests and seconds that it takes to put many finished pages on a site.

What belongs here: the lane over drafts that are there already, eight writers, and the sandbox CMS,
which counts the requests: a first publish of all pages, and putting in place what is in place.
"""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.machine import CpuSeconds, about, cpu_seconds, load
from benchmarks.place import temporary_project
from content_pipeline.adapters.cms.wordpress_pages import PAGE_FIELDS
from content_pipeline.adapters.cms.wordpress_rest import WordPressREST
from content_pipeline.bootstrap import open_ledger
from content_pipeline.config import Project
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import reports, resting
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.lane import advance
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.submit import submit
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.cms.supervisor import ensure_cms_running
from content_pipeline_tests.operations.fakes import ScriptedModel
from content_pipeline_tests.operations.published_site import (
    draft_all,
    sandbox_rest,
    sandbox_wordpress,
)
from content_pipeline_tests.operations.small_site import (
    Parts,
    rows_of,
    runtime_of,
    settings_of,
    site_of,
)

SITE = "publishing"
WRITERS = 8
LATENCY_S = 0.05

GOAL = 1.3
"""Times the bound: what publishing may take."""

FIRST_PUBLISH = 4
"""Requests a page: the look, the draft, the publish by its id, and reading back."""

IN_PLACE = 2

BARE_REQUESTS = 40
"""Of each thread: two seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """All pages of the site published once, measured."""

    name: str
    goal: int
    """Requests a page may take."""
    pages: int
    requests: Mapping[str, int]
    """By operation, as the CMS noted them."""
    wall_s: float
    bare_s: float
    """What one request took, with nothing but requests to do, right after."""
    cpu: CpuSeconds

    @property
    def requests_a_page(self) -> float:
        """Of all operations."""
        return sum(self.requests.values()) / self.pages

    @property
    def bound_s(self) -> float:
        """The time that the requests themselves take, spread over the writers."""
        return sum(self.requests.values()) * LATENCY_S / WRITERS

    @property
    def bare_bound_s(self) -> float:
        """The same with the requests as this machine managed them."""
        return sum(self.requests.values()) * self.bare_s / WRITERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """A site whose pages are finished, and the ways to both of its sides."""

    project: Project
    runtime: SiteRuntime
    client: CMSClient
    pages: int

    def want_back(self) -> None:
        """Have every published page looked at again."""
        with self.runtime.ledger.begin() as connection:
            for page in reports.page_reports(connection, SITE):
                assert resting.want_back(
                    connection, page.page_job_id, worker=self.runtime.worker, cause="measured"
                )

    def publish(self, name: str, *, goal: int) -> Published:
        """Let the lane publish all pages, and measure."""
        asked = self.client.truth()["requests_by_operation"]
        before, began = cpu_seconds(self.project), time.monotonic()
        states = [settled.state for settled in advance(self.runtime, Selection(site=SITE))]
        wall_s, cpu = time.monotonic() - began, cpu_seconds(self.project).since(before)
        if states != [PageJobState.PUBLISHED] * self.pages:
            raise SystemExit(f"not all of {self.pages} pages were published at once: {set(states)}")
        truth = self.client.truth()
        if truth["live"] != self.pages or truth["public_doubles"]:
            raise SystemExit(f"the CMS shows {truth['live']} of {self.pages} pages")
        by_operation = truth["requests_by_operation"]
        new = {name: times - asked.get(name, 0) for name, times in by_operation.items()}
        requests = {name: times for name, times in new.items() if times}
        return Published(
            name=name,
            goal=goal,
            pages=self.pages,
            requests=requests,
            wall_s=wall_s,
            bare_s=self._bare_request_s(),
            cpu=cpu,
        )

    def _bare_request_s(self) -> float:
        """Seconds a request takes when as many threads do nothing but ask for a page."""

        def ask(rest: WordPressREST) -> None:
            for _ in range(BARE_REQUESTS):
                rest.get("1", fields=PAGE_FIELDS, doing="measuring")

        with closing(sandbox_rest(self.client.base_url)) as rest:
            began = time.monotonic()
            with ThreadPoolExecutor(WRITERS) as pool:
                list(pool.map(ask, [rest] * WRITERS))
            return (time.monotonic() - began) / BARE_REQUESTS


def bench_publishing(console: Console, *, pages: int) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=1) as project:
        ledger = open_ledger(project)
        try:
            with _drafted_site(project, ledger, pages) as site:
                passes = [site.publish("a first publish", goal=FIRST_PUBLISH)]
                site.want_back()
                passes.append(site.publish("the same again", goal=IN_PLACE))
        finally:
            ledger.dispose()
    console.print(_table(passes, caption=about(before)))


@contextmanager
def _drafted_site(project: Project, ledger: Ledger, pages: int) -> Iterator[Drafted]:
    cms = ensure_cms_running(
        project.data_home,
        SITE,
        CMSSettings(latency_median_s=LATENCY_S, latency_sigma=0, idle_exit_s=0),
    )
    lane = {"cms_requests_at_once": WRITERS, "lease_s": 60}
    with closing(sandbox_wordpress(cms.base_url, at_once=WRITERS)) as wordpress:
        runtime = runtime_of(
            Parts(
                site=site_of(settings_of(SITE, lane=lane)),
                ledger=ledger,
                model=ScriptedModel(),
                folder=project.root / "public",
                cms=wordpress,
                hooks=(),
            )
        )
        submit(runtime, rows_of(pages), requested_by=runtime.worker)
        draft_all(runtime)
        yield Drafted(project=project, runtime=runtime, client=cms.client(), pages=pages)


def _table(passes: list[Published], *, caption: str) -> Table:
    table = Table(
        title=f"publishing: {passes[0].pages:,} pages, {WRITERS} writers, "
        f"{1000 * LATENCY_S:.0f} ms a request",
        caption=caption,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("")
    for each in passes:
        table.add_column(each.name, justify="right")
    table.add_row(
        "requests a page (goal)", *(f"{p.requests_a_page:.3f} (<= {p.goal})" for p in passes)
    )
    table.add_row(
        "by operation", *(", ".join(f"{n} {c}" for n, c in p.requests.items()) for p in passes)
    )
    table.add_row("bound, s", *(f"{each.bound_s:.1f}" for each in passes))
    table.add_row("wall, s", *(f"{each.wall_s:.1f}" for each in passes))
    table.add_row(f"wall to bound (goal: {GOAL})", *(f"{p.wall_s / p.bound_s:.2f}" for p in passes))
    table.add_row("a bare request, ms", *(f"{1000 * each.bare_s:.0f}" for each in passes))
    table.add_row("wall to as many of those", *(f"{p.wall_s / p.bare_bound_s:.2f}" for p in passes))
    for name in ("client", "database"):
        costs = [1000 * getattr(each.cpu, name) / each.pages for each in passes]
        table.add_row(f"{name} CPU, ms a page", *(f"{cost:.1f}" for cost in costs))
    return table
