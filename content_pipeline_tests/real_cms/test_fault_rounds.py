"""Every answer after a write is lost and every publisher killed: what does WordPress hold then?"""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from content_pipeline.sandbox.client import SandboxClient
from content_pipeline_tests.real_cms import fault_rounds
from content_pipeline_tests.real_cms.fault_rounds import FAULTS, LATE, Count, rows_with_faults
from content_pipeline_tests.real_cms.publisher import Order, fork_server
from content_pipeline_tests.real_cms.wordpress_server import WordPressServer

PAGES = 5
"""Per fault."""

KILLS = 3
SEED = 4


@pytest.fixture
def order(
    wordpress: WordPressServer,
    ledger_url: str,
    sandbox: SandboxClient,
    site_name: str,
    tmp_path: Path,
) -> Order:
    return Order(
        site=site_name,
        rows=rows_with_faults(FAULTS, PAGES),
        ledger_url=ledger_url,
        provider_url=sandbox.base_url,
        server=wordpress,
        folder=tmp_path,
    )


def perfect(fault: str) -> Count:
    return Count(
        fault=fault, pages=PAGES, once=PAGES, public_doubles=0, lost=0, edits_overwritten=0
    )


@pytest.mark.timeout(500)  # 25 s idle; every lost answer is waited for, on a busy machine longer
def test_lost_answers_and_killed_publishers_leave_one_page_per_key_and_no_edit_overwritten(
    order: Order,
) -> None:
    context, draw = fork_server(), random.Random(SEED)
    fault_rounds.publish_through_faults(context, order, kills=KILLS, draw=draw)
    assert fault_rounds.counts(order) == [perfect(fault) for fault in FAULTS]
    struck = Counter(order.server.struck())
    assert min(struck[fault] for fault in FAULTS) >= 2 * PAGES, "a draft and its publish each"

    edited = order.rows[: len(FAULTS)]
    fault_rounds.edit_as_a_person(order.server, edited)
    later = fault_rounds.later(order)
    fault_rounds.publish_through_faults(context, later, kills=1, draw=draw)
    assert fault_rounds.counts(later, edited) == [perfect(fault) for fault in FAULTS]
    names = {row["name"] for row in edited}
    assert fault_rounds.public_revisions(later) == {
        row["name"]: 1 if row["name"] in names else 2 for row in later.rows
    }


@pytest.mark.parametrize("guarded", [False, True], ids=["alone", "with our plugin"])
def test_writes_that_take_effect_after_their_sender_gave_up_leave_one_page_per_key(
    order: Order, guarded: bool
) -> None:
    order.server.install_guard(wanted=guarded)
    order = replace(order, rows=rows_with_faults((LATE,), PAGES))
    fault_rounds.publish_into_a_locked_table(fork_server(), order)
    assert fault_rounds.counts(order) == [perfect(LATE)]
