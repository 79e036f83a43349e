"""A publisher of pages to WordPress as a process of its own, that can be killed at any moment.

What belongs here: the order a test gives, and carrying it out from an empty process as the command
line does. Short waits: how long the faults of these tests last is known.
"""

import multiprocessing
import os
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from content_pipeline.core.site import SiteSettings
from content_pipeline.core.states import ALL_STAGES, Stage
from content_pipeline.ledger.database import Ledger, create_ledger_engine
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.lane import advance
from content_pipeline.operations.submit import submit
from content_pipeline_tests.operations.small_site import (
    Parts,
    real_model,
    runtime_of,
    settings_of,
    site_of,
)
from content_pipeline_tests.real_cms.wordpress_bench import connect
from content_pipeline_tests.real_cms.wordpress_server import WordPressServer

DEADLINE_S = 1.5
"""Of one request; the slow fault takes 3 s."""

QUIET_S = 4.0
"""Longer than anything a request of these tests still does after its client is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a publisher is to do."""

    site: str
    rows: tuple[Mapping[str, str], ...]
    ledger_url: str
    provider_url: str
    server: WordPressServer
    folder: Path


def publish(order: Order, stages: frozenset[Stage] = ALL_STAGES) -> None:
    """Bring every page of the order as far as ``stages`` go."""
    ledger = Ledger(create_ledger_engine(order.ledger_url))
    model = real_model(order.provider_url)
    cms = connect(order.server, deadline_s=DEADLINE_S)
    parts = Parts(
        site=site_of(_settings(order)), ledger=ledger, model=model, folder=order.folder, cms=cms
    )
    runtime = runtime_of(parts, worker=f"publisher-{os.getpid()}")
    submit(runtime, list(map(dict, order.rows)), requested_by=runtime.worker)
    for _ in advance(runtime, Selection(site=order.site, stages=stages)):
        continue
    cms.close()
    model.close()
    ledger.dispose()


def _settings(order: Order) -> SiteSettings:
    return settings_of(
        order.site,
        base_url=order.server.url,
        lane={"lease_s": 1, "patience_s": 300, "publish_quiet_s": QUIET_S},
        # A page whose every answer is lost, and whose publisher is killed again and again.
        retries={"uncertain": {"attempts": 20, "first_wait_s": 0}},
    )


def fork_server() -> ForkServerContext:
    """Where publishers are forked from; it ends with this process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def started(context: ForkServerContext, order: Order) -> ForkServerProcess:
    process = context.Process(target=publish, args=(order,), name=f"publisher of {order.site}")
    process.start()
    return process
