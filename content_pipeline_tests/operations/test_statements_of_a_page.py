"""What a page says to the database: counted, since each round trip costs both sides CPU.

On two CPUs a thousand pages of a backfill have 12 ms each; a statement takes 0.2 to 0.4 ms of them.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, event

from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.lane import advance
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.operations.fakes import ScriptedModel

TOWNS = 12

STATEMENTS = range(20, 35)
"""By the threads that walk pages. 34: seven transactions that move the page, six of which first
hold its lease, with the rows of its call, answer, draft, money and publish; and three statements by
themselves. Below 20 a promise is missing: each intent and each outcome is a row of its own."""

BEGUN = range(5, 7)
"""Transactions with a BEGIN and a COMMIT. 6: reserved, intended, answered, validated, publish
intended, proved. Fewer than five would hold a transaction open during a call."""

BY_THE_LANE = range(1, 12)
"""Statements of the lane itself for each of its claims, however many pages it takes: the routes,
both kinds of claim, the calls that are free, the page jobs; letting go; and now and then a look at
what is due."""


@contextmanager
def counting(engine: Engine) -> Iterator[Counter[str]]:
    """Statements and begun transactions, by threads of pages and by the lane's own."""
    said: Counter[str] = Counter()
    lock = threading.Lock()

    def whose(what: str) -> None:
        walks = threading.current_thread().name.startswith("page")
        with lock:
            said[f"{what} by {'pages' if walks else 'the lane'}"] += 1

    def began(connection: Connection) -> None:
        if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
            whose("begun")

    def executed(*_: object) -> None:
        whose("statements")

    event.listen(engine, "begin", began)
    event.listen(engine, "before_cursor_execute", executed)
    try:
        yield said
    finally:
        event.remove(engine, "begin", began)
        event.remove(engine, "before_cursor_execute", executed)


def test_a_page_takes_no_more_round_trips_than_its_promises_need(make_bench: MakeBench) -> None:
    bench = make_bench(model=ScriptedModel(), towns=TOWNS)
    bench.submit()
    with counting(bench.ledger.engine) as said:
        settled = list(advance(bench.worker(), Selection(site=bench.name)))
    assert [each.state for each in settled] == [PageJobState.PUBLISHED] * TOWNS
    assert said["statements by pages"] / TOWNS in STATEMENTS
    assert said["begun by pages"] / TOWNS in BEGUN


def test_the_lane_asks_for_many_pages_at_once(make_bench: MakeBench) -> None:
    bench = make_bench(model=ScriptedModel(), towns=TOWNS, generation={"in_flight": TOWNS})
    bench.submit()
    with counting(bench.ledger.engine) as said:
        settled = list(advance(bench.worker(), Selection(site=bench.name)))
    assert len(settled) == TOWNS
    # A claim, each time one or more pages came to rest, and at most as often as there are pages.
    claims = said["begun by the lane"]
    assert claims <= TOWNS + 4
    assert said["statements by the lane"] / claims <= BY_THE_LANE[-1]
