"""Many processes after one cap: each reserves and settles until nothing fits any more.

What belongs here: the processes. One imports everything and becomes the others by forking, so that
64 of them cost one start. Prints what each made as JSON.
"""

import json
import os
import sys
import time
from decimal import Decimal
from typing import TypedDict

from content_pipeline.core.errors import BudgetExhausted
from content_pipeline.ledger import spend
from content_pipeline.ledger.database import Ledger, create_ledger_engine
from content_pipeline.ledger.spend import Caps

PATIENCE = 25
"""Refusals in a row after which a racer takes the cap for used up: others may still settle."""


class Order(TypedDict):
    """What to race for."""

    url: str
    jobs: list[tuple[str, str]]
    """Site and page job of each racer."""
    worst_usd: str
    cost_usd: str
    cap_usd: str


def race(ledger: Ledger, order: Order, racer: int) -> int:
    """Reserve the worst case and settle at the cost, until refused for long; how often it fit."""
    site, page_job_id = order["jobs"][racer]
    caps = Caps(
        page_usd=Decimal(1_000),
        site_day_usd=Decimal(1_000),
        global_day_usd=Decimal(order["cap_usd"]),
    )
    made = refused = 0
    while refused < PATIENCE:
        attempt_id = f"{page_job_id}-{made}"
        try:
            with ledger.begin() as connection:
                spend.reserve(
                    connection,
                    attempt_id=attempt_id,
                    page_job_id=page_job_id,
                    site=site,
                    worst_case_usd=Decimal(order["worst_usd"]),
                    caps=caps,
                )
        except BudgetExhausted:
            refused += 1
            time.sleep(0.004)
            continue
        made, refused = made + 1, 0
        with ledger.begin() as connection:
            spend.settle(connection, attempt_id, Decimal(order["cost_usd"]))
    return made


def _child(order: Order, racer: int, output: int) -> None:
    ledger = Ledger(create_ledger_engine(order["url"]))
    made = race(ledger, order, racer)
    ledger.dispose()
    os.write(output, f"{made}\n".encode())


def main() -> None:
    order: Order = json.load(sys.stdin)
    reading, writing = os.pipe()
    children = []
    for racer in range(len(order["jobs"])):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                _child(order, racer, writing)
                status = 0
            finally:
                os._exit(status)
        children.append(pid)
    os.close(writing)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    with os.fdopen(reading) as made:
        json.dump({"statuses": statuses, "made": [int(line) for line in made]}, sys.stdout)


if __name__ == "__main__":
    main()
