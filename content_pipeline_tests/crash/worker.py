"""A worker as a process of its own, that can be told to die at a checkpoint.

What belongs here: the order a test gives, and carrying it out from an empty process: the same as
the command line does, from the table to the sitemap. Processes are forked from a server that has
imported everything, so that a test of ten deaths does not wait for twenty starts of Python.
"""

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from content_pipeline.adapters.cms.wordpress import WordPressCMS
from content_pipeline.adapters.cms.wordpress_pages import PageForm
from content_pipeline.adapters.cms.wordpress_rest import WordPressREST
from content_pipeline.adapters.hooks.told_by_http import ToldByHTTP
from content_pipeline.adapters.hooks.webhook import Webhook
from content_pipeline.adapters.http_calls import HTTPService
from content_pipeline.core.generation_settings import GenerationAPI
from content_pipeline.core.ports import HookTerms, SiteHook
from content_pipeline.ledger.database import Ledger, create_ledger_engine
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.announce import announce
from content_pipeline.operations.lane import advance
from content_pipeline.operations.submit import submit
from content_pipeline.sandbox.cms.accounts import PIPELINE
from content_pipeline_tests.operations.small_site import (
    FACTS,
    MUST_STATE,
    Parts,
    clock,
    real_model,
    rows_of,
    runtime_of,
    settings_of,
    site_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a worker is to do; every worker of a test gets the same, but for its death."""

    site: str
    towns: int
    ledger_url: str
    provider_url: str
    folder: Path
    chain: bool = False
    """Make every page by two calls, the second of which is asked with the answer of the first."""
    embeds: bool = False
    """End every chain with a step that embeds, and compare the pages."""
    gone: int = 0
    """So many of the last towns are no longer in the table; their pages are taken off the site."""
    wordpress_url: str | None = None
    """Publish to this sandbox CMS instead of the folder."""
    background: bool = False
    """Make the calls as background responses, whose answers are asked for by id; one at a time,
    because a death while another call waits for its id loses that one's for good."""
    webhook_url: str | None = None
    """Who is told of each page by a call of its own, instead of the files beside the pages."""
    new_pages_per_day: int | None = None
    drafts_ahead_days: int = 0
    """The site's publish rate."""
    dies_at: str | None = None
    """The checkpoint at which it ends itself, without any chance to clean up."""
    dies_after: int = 1
    """... at the so-manieth time it comes there."""


STEPS = [
    {"name": "outline", "prompt": "outline.md", "output": "outline.json"},
    {"name": "page", "prompt": "page.md"},
]
VECTOR = {
    "name": "vector",
    "prompt": "vector.md",
    "output": "embedding",
    "model": "text-embedding-3-small",
}
BACKGROUND = {"api": GenerationAPI.RESPONSES, "background": True}
OUTLINE = {
    "type": "object",
    "properties": {"points": {"type": "array", "items": {"type": "string"}}},
    "required": ["points"],
    "additionalProperties": False,
}
FILES = {
    "outline.md": "Outline a page from {{ facts }}",
    "outline.json": json.dumps(OUTLINE),
    "page.md": "Write a page from {{ facts }} along {{ outline }}",
    "vector.md": "{{ page }}",
}


def work(order: Order) -> None:
    """Bring every page of the site to the end, or die as told."""
    settings = settings_of(
        order.site,
        generation={
            "deadline_s": 1.5,
            "answer_slack_s": 0.3,
            "in_flight": 4,
            **({"steps": STEPS} if order.chain else {}),
            **({"steps": [*STEPS, VECTOR]} if order.embeds else {}),
            **({**BACKGROUND, "in_flight": 1} if order.background else {}),
        },
        article={
            "facts": FACTS,
            "must_state": MUST_STATE,
            "rules": {"min_words": 60, **({"max_similarity": 0.99} if order.embeds else {})},
        },
        lane={"lease_s": 1, "patience_s": 8, "publish_quiet_s": 0.2},
        topics={"when_gone": "unpublish"},
        schedule={
            "new_pages_per_day": order.new_pages_per_day,
            "drafts_ahead_days": order.drafts_ahead_days,
        },
    )
    ledger = Ledger(create_ledger_engine(order.ledger_url))
    model = real_model(order.provider_url, **(BACKGROUND if order.background else {}))
    cms = _wordpress(order.wordpress_url) if order.wordpress_url else None
    runtime = runtime_of(
        Parts(
            site=site_of(settings, files=FILES),
            ledger=ledger,
            model=model,
            folder=order.folder,
            cms=cms,
            hooks=_webhook(order.webhook_url) if order.webhook_url else None,
            on_checkpoint=_death(order),
        ),
        worker=f"process-{os.getpid()}",
    )
    submit(runtime, rows_of(order.towns - order.gone), requested_by=runtime.worker)
    for _ in advance(runtime, Selection(site=order.site)):
        continue
    announce(runtime)
    model.close()
    if cms is not None:
        cms.close()
    ledger.dispose()


def _wordpress(url: str) -> WordPressCMS:
    rest = WordPressREST(
        url,
        user=PIPELINE.login,
        password=PIPELINE.app_password,
        content_type="pages",
        deadline_s=5,
        clock=clock,
    )
    form = PageForm(base_url=url, home_path="")
    return WordPressCMS(rest, form, content_type="pages", clock=clock)


def _webhook(url: str) -> tuple[SiteHook, ...]:
    service = HTTPService(url, name="The webhook", headers={}, deadline_s=5)
    told = ToldByHTTP(service=service, clock=clock, advice={})
    terms = HookTerms(debounce_s=0, batch=1)
    return (Webhook(told, kind="webhook", terms=terms, key=b"k" * 32, clock=clock),)


def _death(order: Order) -> Callable[[str], None]:
    lock, passed = threading.Lock(), [0]

    def die(checkpoint: str) -> None:
        if checkpoint != order.dies_at:
            return
        with lock:
            passed[0] += 1
            if passed[0] == order.dies_after:
                os.kill(os.getpid(), signal.SIGKILL)

    return die


def fork_server() -> ForkServerContext:
    """Where workers are forked from; it ends with this process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def started(context: ForkServerContext, order: Order) -> ForkServerProcess:
    process = context.Process(target=work, args=(order,), name=f"worker of {order.site}")
    process.start()
    return process
