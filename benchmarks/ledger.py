"""``ledger``: what remembering everything costs, with calls that take no time at all.

What belongs here: the full lane over a model and a CMS in memory. CPU is measured in some passes,
statements and transactions are counted in another.
"""

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from benchmarks.instant import FlatPrices, InstantCMS, InstantModel, article_of
from benchmarks.machine import CpuSeconds, about, cpu_seconds, load, spread
from benchmarks.place import site_of_example, temporary_project
from benchmarks.statements import counted, statement_table
from content_pipeline.bootstrap import open_ledger, open_site, topic_rows
from content_pipeline.config import Project
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import jobs, reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.lane import advance
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.submit import submit
from content_pipeline.site_files import site_of

GOAL_MS = 20
"""CPU milliseconds a page may take, client and database together."""


def bench_ledger(console: Console, *, pages: int, rounds: int) -> None:
    """Measure and print."""
    before = load()
    with temporary_project(pages=pages) as project:
        ledger = open_ledger(project)
        try:
            _advance(_instant_site(project, ledger, "warm"), pages)
            costs = []
            for number in range(rounds):
                runtime = _instant_site(project, ledger, f"round{number}")
                started = cpu_seconds(project)
                _advance(runtime, pages)
                costs.append(cpu_seconds(project).since(started))
            runtime = _instant_site(project, ledger, "counted")
            with counted(ledger.engine) as transactions:
                _advance(runtime, pages)
        finally:
            ledger.dispose()
    console.print(_cost_table(costs, pages, caption=about(before)))
    title = "ledger: what is said to the database for one page"
    console.print(statement_table(title, transactions, pages))


def _instant_site(project: Project, ledger: Ledger, name: str) -> SiteRuntime:
    """A site of its own, submitted, whose calls return at once."""
    example = site_of_example(project)
    settings = example.settings.model_copy(update={"site": name})
    site = site_of(settings, example.file)
    runtime = open_site(site, project, ledger, purpose="bench")
    submit(runtime, topic_rows(site), requested_by=runtime.worker)
    facts = settings.article.facts
    with ledger.begin() as connection:
        wanted = reports.page_reports(connection, name)
        loaded = [jobs.load(connection, page.page_job_id) for page in wanted]
    articles = {
        job.page_job_id: article_of(
            {label: job.input_columns[column] for column, label in facts.items()}
        )
        for job in loaded
    }
    return replace(runtime, model=InstantModel(articles), prices=FlatPrices(), cms=InstantCMS())


def _advance(runtime: SiteRuntime, pages: int) -> None:
    states = [settled.state for settled in advance(runtime, Selection(site=runtime.site.site))]
    if states.count(PageJobState.PUBLISHED) != pages:
        raise SystemExit(f"{states.count(PageJobState.PUBLISHED)} of {pages} pages were published")


def _cost_table(costs: Sequence[CpuSeconds], pages: int, caption: str) -> Table:
    table = Table(
        title=f"ledger: {pages} pages, {len(costs)} passes",
        caption=caption,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("CPU, ms a page")
    table.add_column("median (range)", justify="right")
    clients = [1000 * cost.client / pages for cost in costs]
    databases = [1000 * cost.database / pages for cost in costs]
    table.add_row("client: ledger, validation, rendering", spread(clients, ".1f"))
    table.add_row("database", spread(databases, ".1f"))
    both = [mine + its for mine, its in zip(clients, databases, strict=True)]
    table.add_row(f"both (goal: {GOAL_MS})", spread(both, ".1f"))
    return table
