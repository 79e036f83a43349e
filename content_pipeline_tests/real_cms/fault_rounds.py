"""Publishing while every answer of WordPress is lost and every publisher killed, and the count.

What belongs here: the rounds, and the judge, which asks WordPress's own database and never the
ledger. A test runs it with a few pages, a benchmark with many.
"""

import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.context import ForkServerContext, ForkServerProcess

from content_pipeline.core.identity import page_id
from content_pipeline.core.states import Stage
from content_pipeline_tests.operations.small_site import path_of, rows_of
from content_pipeline_tests.real_cms.publisher import Order, publish, started
from content_pipeline_tests.real_cms.wordpress_server import WordPressServer

FAULTS = ("fatal", "exit", "noise", "slow")
"""What goes wrong once a page is stored: a 500, a 502, an unreadable 201, 3 s of silence."""

LATE = "late"
"""The database itself is locked: what was sent is stored after its sender gave up."""

LOCKED_S = 2.5
"""Longer than a publisher waits for an answer, shorter than it stays quiet afterwards."""

LONGEST_S = 1200.0
"""For hundreds of pages on a busy machine."""

PERSON = "A person was here."

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What WordPress holds for the pages of one fault."""

    fault: str
    pages: int
    once: int
    """Keys with exactly one page outside the trash."""
    public_doubles: int
    lost: int
    """Keys without a public page."""
    edits_overwritten: int


def rows_with_faults(faults: Sequence[str], pages: int) -> tuple[Row, ...]:
    """``pages`` rows for each fault; the first word of a name says which."""
    rows = rows_of(pages * len(faults))
    return tuple(
        row | {"name": f"{faults[number % len(faults)]} {number}"}
        for number, row in enumerate(rows)
    )


def changed(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The same rows as they stand a year later."""
    return tuple({**row, "river": "Rhine"} for row in rows)


def fault_of(row: Row) -> str:
    return row["name"].partition(" ")[0]


def publish_through_faults(
    context: ForkServerContext, order: Order, *, kills: int, draw: random.Random
) -> None:
    """Publish the rows while every write's answer is lost, killing publishers on the way."""
    order.server.set_faults({})
    publish(order, frozenset({Stage.DRAFT, Stage.PAGE}))
    order.server.set_faults({fault: fault for fault in FAULTS})
    _killed(context, order, kills=kills, draw=draw)
    _finished(started(context, order))
    order.server.set_faults({})


def publish_into_a_locked_table(context: ForkServerContext, order: Order) -> None:
    """Publish the order's rows while nothing can be stored; the first publisher is killed then."""
    publish(order, frozenset({Stage.DRAFT, Stage.PAGE}))
    with _publishing(context, order), order.server.locked():
        time.sleep(LOCKED_S)
    _finished(started(context, order))


def edit_as_a_person(server: WordPressServer, rows: Sequence[Row]) -> None:
    """Add a sentence to the page of each row."""
    for row in rows:
        page = server.id_at(path_of(row))
        held = server.as_person("GET", f"pages/{page}?context=edit")["content"]["raw"]
        content = f"{held}\n<p>{PERSON}</p>"
        server.as_person("POST", f"pages/{page}", {"content": content})


def counts(order: Order, edited: Sequence[Row] = ()) -> list[Count]:
    """What WordPress's database holds, by fault."""
    held = order.server.sql(
        "SELECT post_status, post_content FROM wp_posts WHERE post_type = 'page' "
        "AND post_status NOT IN ('trash', 'auto-draft')"
    )
    return [
        _count(
            order.site, fault, [row for row in order.rows if fault_of(row) == fault], held, edited
        )
        for fault in dict.fromkeys(map(fault_of, order.rows))
    ]


def public_revisions(order: Order) -> dict[str, int]:
    """Which revision of each row's page is public, by the row's name."""
    held = order.server.sql(
        "SELECT post_content FROM wp_posts WHERE post_type = 'page' AND post_status = 'publish'"
    )
    found = {}
    for row in order.rows:
        mark = re.compile(f"cp:key={page_id(order.site, path_of(row))} rev=([0-9]+) ")
        for (content,) in held:
            if match := mark.search(content):
                found[row["name"]] = int(match[1])
    return found


def _count(
    site: str,
    fault: str,
    rows: Sequence[Row],
    held: Sequence[Sequence[str]],
    edited: Sequence[Row],
) -> Count:
    once = doubles = lost = overwritten = 0
    names = {row["name"] for row in edited}
    for row in rows:
        mark = f"cp:key={page_id(site, path_of(row))} "
        ours = [(status, content) for status, content in held if mark in content]
        public = [content for status, content in ours if status == "publish"]
        once += len(ours) == 1
        doubles += max(0, len(public) - 1)
        lost += not public
        overwritten += row["name"] in names and not any(PERSON in text for text in public)
    return Count(
        fault=fault,
        pages=len(rows),
        once=once,
        public_doubles=doubles,
        lost=lost,
        edits_overwritten=overwritten,
    )


def _killed(context: ForkServerContext, order: Order, *, kills: int, draw: random.Random) -> None:
    for _ in range(kills):
        with _publishing(context, order):
            # Within it the first answers are lost, and later ones waited for.
            time.sleep(draw.uniform(0.5, 3.0))


@contextmanager
def _publishing(context: ForkServerContext, order: Order) -> Iterator[None]:
    """A publisher that is killed at the end of the block."""
    process = started(context, order)
    try:
        yield
    finally:
        process.kill()
        process.join(LONGEST_S)
        process.close()


def _finished(process: ForkServerProcess) -> None:
    try:
        process.join(LONGEST_S)
        assert process.exitcode == 0, f"the last publisher ended with {process.exitcode}"
    finally:
        process.kill()
        process.join(LONGEST_S)
        process.close()


def later(order: Order) -> Order:
    """The order a year later."""
    return replace(order, rows=changed(order.rows))
