"""Two processes with the same order at the same time: together they do everything once."""

from content_pipeline.sandbox.client import SandboxClient
from content_pipeline_tests.conftest import INSTANT_PROVIDER
from content_pipeline_tests.crash.conftest import LONGEST_S, Start
from content_pipeline_tests.crash.other_side import assert_all_is_well
from content_pipeline_tests.crash.worker import Order

TOWNS = 24


def test_two_workers_at_once_share_the_site(
    start: Start, order: Order, sandbox: SandboxClient
) -> None:
    sandbox.set_settings(INSTANT_PROVIDER.model_copy(update={"latency_median_s": 0.03}))
    workers = [start(order, towns=TOWNS) for _ in range(2)]
    for worker in workers:
        worker.join(LONGEST_S)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert_all_is_well(sandbox, order.folder, TOWNS, kills=0)
