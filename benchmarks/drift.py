"""``drift``: what it takes to find the few pages of many that people changed on the site.

What belongs here: surveys of a large published site in the sandbox CMS: one that has nothing to
find, one after people were at work, one more, and looks at recent changes alone. The CMS counts the
requests.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from benchmarks.machine import CpuSeconds, about, cpu_seconds, load
from benchmarks.place import temporary_project
from content_pipeline.bootstrap import open_ledger
from content_pipeline.config import Project
from content_pipeline.core.publishing import SiteChange
from content_pipeline.ledger.database import Ledger
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.survey import SurveyReport, survey
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.people import Act
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.cms.supervisor import FOLDER, ensure_cms_running
from content_pipeline_tests.operations.fakes import ScriptedModel
from content_pipeline_tests.operations.published_site import (
    held_by_cms,
    prove_all,
    put_into_cms,
    sandbox_rest,
    sandbox_wordpress,
    want,
)
from content_pipeline_tests.operations.small_site import (
    Parts,
    rows_of,
    runtime_of,
    settings_of,
    site_of,
)

SITE = "drifting"
LATENCY_S = 0.05
HOUR_S = 3600.0
PER_SLICE = 100

BY_HAND: Mapping[SiteChange, Mapping[str, str]] = {
    SiteChange.EDITED: {"act": "edit", "appended": "<p>A person was here.</p>"},
    SiteChange.RENAMED: {"act": "rename", "slug": "renamed-by-hand"},
    SiteChange.TRASHED: {"act": "trash"},
    SiteChange.UNPUBLISHED: {"act": "unpublish"},
    SiteChange.MISSING: {"act": "delete"},
}
"""What a page is to be found as, and what a person does to it before."""

TIMES_EACH = 2

FOR_CHANGES = 10
"""Requests that a sweep may take beyond one for each slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One survey, measured."""

    name: str
    goal: int
    """Requests that it may take."""
    requests: int
    report: SurveyReport
    wall_s: float
    cpu: CpuSeconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifting:
    """A published site, and the ways to both of its sides."""

    project: Project
    runtime: SiteRuntime
    client: CMSClient
    page_ids: Sequence[str]

    def let_hours_pass(self, hours: int) -> None:
        """On the CMS's clock, counted from now."""
        self.client.set_settings(cms_settings(clock_offset_s=hours * HOUR_S))

    def let_people_work(self) -> None:
        """Change some pages, evenly spread over the site, in every way that people have."""
        changes = [change for change in BY_HAND for _ in range(TIMES_EACH)]
        apart = len(self.page_ids) // len(changes)
        for number, change in enumerate(changes):
            act = {**BY_HAND[change], "key": self.page_ids[number * apart]}
            self.client.by_hand(Act.model_validate(act))

    def look(self, name: str, *, goal: int, slices: int) -> Look:
        """Survey and measure."""
        asked = self.client.health()["requests"]
        before, began = cpu_seconds(self.project), time.monotonic()
        report = survey(self.runtime, slices=slices)
        wall_s, cpu = time.monotonic() - began, cpu_seconds(self.project).since(before)
        if report.failure is not None:
            raise SystemExit(f"the survey stopped: {report.failure.message}")
        requests = self.client.health()["requests"] - asked
        return Look(name=name, goal=goal, requests=requests, report=report, wall_s=wall_s, cpu=cpu)


def cms_settings(*, clock_offset_s: float) -> CMSSettings:
    """A CMS whose every request takes equally long."""
    return CMSSettings(
        latency_median_s=LATENCY_S, latency_sigma=0, clock_offset_s=clock_offset_s, idle_exit_s=0
    )


def bench_drift(console: Console, *, pages: int) -> None:
    """Measure and print."""
    before, began = load(), time.monotonic()
    with temporary_project(pages=1) as project:
        ledger = open_ledger(project)
        try:
            with _published_site(project, ledger, pages) as site:
                made_s = time.monotonic() - began
                looks = _looks(site, pages)
        finally:
            ledger.dispose()
    caption = f"{about(before)}; the site was made in {made_s:.0f} s"
    console.print(_table(looks, pages=pages, caption=caption))


@contextmanager
def _published_site(project: Project, ledger: Ledger, count: int) -> Iterator[Drifting]:
    folder = project.data_home / FOLDER / SITE
    folder.mkdir(mode=0o700, parents=True)
    parts = Parts(
        site=site_of(settings_of(SITE, site_changes={SiteChange.MISSING: "ask"})),
        ledger=ledger,
        model=ScriptedModel(),
        folder=project.root / "public",
        hooks=(),
    )
    runtime = runtime_of(parts)
    documents = want(runtime, rows_of(count))
    put_into_cms(folder, documents)
    settings = CMSSettings(latency_median_s=0, idle_exit_s=0)
    cms = ensure_cms_running(project.data_home, SITE, settings)
    with closing(sandbox_rest(cms.base_url)) as rest:
        prove_all(runtime, documents, held_by_cms(rest))
    with closing(sandbox_wordpress(cms.base_url)) as wordpress:
        yield Drifting(
            project=project,
            runtime=replace(runtime, cms=wordpress),
            client=cms.client(),
            page_ids=[document.marker.page_id for document in documents],
        )


def _looks(site: Drifting, pages: int) -> list[Look]:
    slices = -(-pages // PER_SLICE)
    site.let_hours_pass(1)
    looks = [
        site.look("first sweep", goal=slices + 1, slices=slices),
        site.look("recent changes", goal=2, slices=0),
    ]
    site.let_hours_pass(2)
    site.let_people_work()
    looks.append(site.look("sweep", goal=slices + FOR_CHANGES, slices=slices))
    found, expected = looks[-1].report.found, dict.fromkeys(BY_HAND, TIMES_EACH)
    if found != expected:
        raise SystemExit(f"people made the changes {expected}, the sweep found {found}")
    site.let_hours_pass(3)
    looks += [
        site.look("next sweep", goal=slices + 1, slices=slices),
        site.look("recent changes", goal=2, slices=0),
    ]
    return looks


def _table(looks: Sequence[Look], *, pages: int, caption: str) -> Table:
    changed = TIMES_EACH * len(BY_HAND)
    table = Table(
        title=f"drift: {pages:,} pages, {changed} changed before the second sweep, "
        f"{1000 * LATENCY_S:.0f} ms a request",
        caption=caption,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("survey")
    for name in ("requests", "goal", "found", "wall, s", "client CPU", "database CPU"):
        table.add_column(name, justify="right")
    for look in looks:
        table.add_row(
            look.name,
            str(look.requests),
            f"<= {look.goal}",
            str(sum(look.report.found.values())),
            f"{look.wall_s:.1f}",
            f"{look.cpu.client:.2f}",
            f"{look.cpu.database:.2f}",
        )
    return table
