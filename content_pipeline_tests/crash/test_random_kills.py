"""Deaths at any moment: after a row of them one whole run brings everything to its end."""

import random
import signal

from content_pipeline.ledger import overview
from content_pipeline.ledger.database import Ledger
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline_tests.conftest import INSTANT_PROVIDER
from content_pipeline_tests.crash.conftest import LONGEST_S, Start
from content_pipeline_tests.crash.other_side import assert_announced, assert_written_once
from content_pipeline_tests.crash.worker import Order

TOWNS = 60
KILLS = 7
SEED = 11


def test_workers_killed_at_random_moments_pay_and_write_every_page_once(
    start: Start, order: Order, sandbox: SandboxClient, ledger: Ledger
) -> None:
    # Slow enough that no machine is done before the last kill: 60 pages, 4 at once, are 6 s.
    sandbox.set_settings(
        INSTANT_PROVIDER.model_copy(update={"latency_median_s": 0.4, "latency_sigma": 0.3})
    )
    draw = random.Random(SEED)
    killed = 0
    for _ in range(KILLS):
        worker = start(order, towns=TOWNS)
        worker.join(draw.uniform(0.15, 1.2))
        worker.kill()
        worker.join(LONGEST_S)
        killed += worker.exitcode == -signal.SIGKILL
    assert killed >= KILLS // 2  # the others were already done
    finishing = start(order, towns=TOWNS)
    finishing.join(LONGEST_S)
    assert finishing.exitcode == 0

    assert_written_once(order.folder, TOWNS, kills=KILLS)
    assert_announced(order.folder, TOWNS)
    truth = sandbox.truth()
    assert set(truth["creates_by_attempt_id"].values()) == {1}
    billed = truth["generations_by_page_job_id"]
    assert len(billed) == TOWNS
    with ledger.begin() as connection:
        listed = [row["page_job_id"] for row in overview.uncertain_calls(connection, order.site)]
    # Paid once, or twice and then the first of the two stands in the list of uncertain calls.
    assert {job for job, times in billed.items() if times != 1 + listed.count(job)} == set()
    assert listed == []  # this provider can always be asked
