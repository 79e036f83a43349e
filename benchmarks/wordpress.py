"""``wordpress``: what a real WordPress holds after lost answers and killed publishers.

What belongs here: the rounds of the tests with many pages, and a first publish without faults, in
seconds and requests. The count comes from WordPress's own database.
"""

import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.machine import about, load
from benchmarks.place import temporary_project
from content_pipeline.bootstrap import open_ledger
from content_pipeline.config import Project, environment
from content_pipeline.core.states import Stage
from content_pipeline.postgres.urls import database_url
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline.sandbox.supervisor import ensure_provider_running
from content_pipeline_tests.operations.small_site import rows_of
from content_pipeline_tests.real_cms import fault_rounds
from content_pipeline_tests.real_cms.fault_rounds import FAULTS, LATE, Count, rows_with_faults
from content_pipeline_tests.real_cms.presence import search
from content_pipeline_tests.real_cms.publisher import Order, fork_server, publish
from content_pipeline_tests.real_cms.wordpress_server import WordPressServer, serving

KILLS = 5
SEED = 4
SMOOTH_PAGES = 40
"""Published without a fault, for seconds and requests per page."""


def bench_wordpress(console: Console, *, pages: int) -> None:
    """Measure and print, or say what is missing."""
    programs = search()
    if isinstance(programs, str):
        console.print(f"wordpress: skipped, {programs}")
        return
    before = load()
    with (
        temporary_project(pages=1) as project,
        tempfile.TemporaryDirectory(prefix="cp-wp-") as folder,
        serving(programs, Path(folder)) as server,
    ):
        open_ledger(project).dispose()
        order = _order(project, server, Path(folder))
        console.print(_smooth(order))
        console.print(_table(_rounds(order, pages), pages=pages, caption=about(before)))


def _order(project: Project, server: WordPressServer, folder: Path) -> Order:
    settings = ProviderSettings(latency_median_s=0)
    return Order(
        site="smooth",
        rows=tuple(rows_of(SMOOTH_PAGES)),
        ledger_url=database_url(environment(), project.data_home).ledger_url,
        provider_url=ensure_provider_running(project.data_home, settings).base_url,
        server=server,
        folder=folder,
    )


def _smooth(order: Order) -> str:
    publish(order, frozenset({Stage.DRAFT, Stage.PAGE}))
    before, began = len(order.server.requests()), time.monotonic()
    publish(order)
    took_s = time.monotonic() - began
    asked = len(order.server.requests()) - before
    pages = len(order.rows)
    return (
        f"wordpress: {pages} first publishes in {took_s:.1f} s ({pages / took_s:.1f} pages/s), "
        f"{asked / pages:.1f} requests each"
    )


def _rounds(order: Order, pages: int) -> list[Count]:
    context, draw = fork_server(), random.Random(SEED)
    order.server.empty()
    faulty = replace(order, site="faulty", rows=rows_with_faults(FAULTS, pages))
    fault_rounds.publish_through_faults(context, faulty, kills=KILLS, draw=draw)
    edited = faulty.rows[: len(FAULTS)]
    fault_rounds.edit_as_a_person(order.server, edited)
    later = fault_rounds.later(faulty)
    fault_rounds.publish_through_faults(context, later, kills=KILLS, draw=draw)
    late = replace(order, site="late", rows=rows_with_faults((LATE,), pages))
    fault_rounds.publish_into_a_locked_table(context, late)
    return fault_rounds.counts(later, edited) + fault_rounds.counts(late)


def _table(counts: Sequence[Count], *, pages: int, caption: str) -> Table:
    table = Table(
        title=f"wordpress: {pages} pages per fault, published twice, publishers killed with -9",
        caption=caption,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("fault")
    for name in ("pages", "one per key", "public doubles", "lost", "edits overwritten"):
        table.add_column(name, justify="right")
    for count in counts:
        table.add_row(
            count.fault,
            *map(
                str,
                (
                    count.pages,
                    count.once,
                    count.public_doubles,
                    count.lost,
                    count.edits_overwritten,
                ),
            ),
        )
    return table
