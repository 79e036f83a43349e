"""``content-pipeline run``: the main job, from the topic table to proved pages and a sitemap."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy import Connection

from content_pipeline.bootstrap import open_site, topic_rows
from content_pipeline.cli.context import choose_site, opened_ledger, plain_console, site_option
from content_pipeline.cli.summary import RunSummary, print_summary
from content_pipeline.config import Project, find_project
from content_pipeline.core.states import FINAL, PageJobState
from content_pipeline.ledger import announcements, overview, reports, routes
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.intake import Intake, topic_keys
from content_pipeline.ledger.leases import Selection
from content_pipeline.ledger.routes import RouteReport
from content_pipeline.operations.announce import announce
from content_pipeline.operations.lane import advance
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.submit import submit
from content_pipeline.site_cms import where_to_look
from content_pipeline.site_files import Site


@click.command()
@site_option
@click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A site file elsewhere, instead of one of the project's.",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors; the exit status tells.")
def run(site_name: str | None, file: Path | None, *, quiet: bool) -> None:
    """Bring every topic's page to the site: generate, validate, publish, prove, announce.

    Running it again costs nothing for pages that are done and goes on with the others. Ctrl-C
    finishes the pages at work; a second Ctrl-C stops at once, which is safe too.
    """
    project = find_project()
    site = choose_site(project, site_name, file)
    with opened_ledger(project) as ledger:
        runtime = open_site(site, project, ledger, purpose="cli")
        with closing(runtime):
            intake = submit(runtime, topic_rows(site), requested_by=runtime.worker)
            summary = _work(runtime, project, site, intake, quiet=quiet)
    if not quiet:
        print_summary(summary, plain_console())
    sys.exit(0 if summary.all_settled else 1)


def _work(
    runtime: SiteRuntime, project: Project, site: Site, intake: Intake, *, quiet: bool
) -> RunSummary:
    keys = intake.topic_keys
    selection = _selection(runtime.ledger, site.settings.site, keys)
    already_published = _published(runtime.ledger, selection)
    console = plain_console(stderr=True)
    with _interruptible() as stop, _progress(console, quiet=quiet) as progress:
        done = set(already_published)
        task = progress.add_task(site.settings.title, total=len(keys), completed=len(done))
        for settled in advance(runtime, selection, stop=stop):
            if settled.state in FINAL:
                done.add(settled.topic_key)
                progress.update(task, completed=len(done))
    patience_s = 0.0 if stop.is_set() else runtime.site.lane.patience_s
    announced = announce(runtime, even_given_up=True, patience_s=patience_s)
    with runtime.ledger.begin() as connection:
        found = overview.site_status(connection, site.settings.site)
        hooks = announcements.standings(connection, site.settings.site)
        gathering = tuple(hook for hook in hooks if hook.gathers)
        return RunSummary(
            site=site.settings,
            pages=tuple(reports.page_reports(connection, selection.site, selection.topics)),
            reused=frozenset(already_published),
            rejected_rows=found.rejected_rows,
            work=overview.work_of(connection, runtime.worker),
            announced=announced,
            untold=found.pending_announcements - len(gathering),
            gathering=gathering,
            closed_routes=_closed_routes(connection, runtime),
            look_at=where_to_look(site, project),
            interrupted=stop.is_set(),
            retired_topics=found.retired_topics,
            newly_retired=intake.retired,
            rolled_back=intake.rolled_back,
        )


def _closed_routes(connection: Connection, runtime: SiteRuntime) -> tuple[RouteReport, ...]:
    stands = [routes.report(connection, name) for name in (runtime.model_route, runtime.cms_route)]
    return tuple(stand for stand in stands if stand is not None and stand.is_closed)


def _selection(ledger: Ledger, site: str, keys: tuple[str, ...]) -> Selection:
    """What the table names, and the pages of topics that have left it, which may have to go.

    Without the keys where they are all that the table has: naming 20,000 of them made a claim take
    18 ms instead of 1, and each page is claimed.
    """
    with ledger.begin() as connection:
        is_all = set(topic_keys(connection, site)) <= set(keys)
    return Selection(site=site, topics=None if is_all else keys)


def _published(ledger: Ledger, selection: Selection) -> set[str]:
    with ledger.begin() as connection:
        pages = reports.page_reports(connection, selection.site, selection.topics)
    return {
        page.topic_key
        for page in pages
        if page.state is PageJobState.PUBLISHED and not page.topic_is_retired
    }


def _progress(console: Console, *, quiet: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=quiet or not console.is_terminal,
    )


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Let SIGINT and SIGTERM end the work in order, and a second one end the process."""
    stop = threading.Event()

    def handle(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(128 + number)  # every checkpoint is durable: nothing is lost by leaving now
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
