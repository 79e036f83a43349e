"""The work of a run on its pages: the lane of ``operations``, with events as pages come to rest.

What belongs here: what the partitioned assets and the job for due work have in common. Which pages,
and which of the assets, is the caller's choice.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import dagster as dg

from content_pipeline.components.announcement import Told, tell_hooks
from content_pipeline.components.dagster_private import (
    MAX_RUNTIME_SECONDS_TAG,
    RETRY_ON_ASSET_OR_OP_FAILURE_TAG,
    version_tags,
)
from content_pipeline.components.event_log import EventLog, RunContext
from content_pipeline.components.interruption import (
    AT_WORK,
    Interruption,
    heeding_its_status,
    status_of,
)
from content_pipeline.components.made import Made
from content_pipeline.components.partition_events import events_of_run, slices
from content_pipeline.components.run_summary import RunSummary, last_of
from content_pipeline.components.site_assets import ANNOUNCEMENT_VERSION, SiteAssets
from content_pipeline.core.states import Stage
from content_pipeline.ledger import overview, routes
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.lane import advance
from content_pipeline.operations.runtime import SiteRuntime


def work_on(
    context: RunContext,
    assets: SiteAssets,
    runtime: SiteRuntime,
    selection: Selection,
    interruption: Interruption,
    *,
    buckets: Sequence[str] = (),
    at_most: int | None = None,
) -> RunSummary:
    """Work on ``selection`` and log what comes of it; the run's summary.

    ``buckets``: only on pages of these, and the summary is about all their pages. ``at_most``:
    begin no new page once so many came to rest. Without topics in ``selection`` the summary is
    about the pages that came to rest, else about those topics.
    """
    made, rested = Made(worker=runtime.worker), dict[str, None]()
    stages, topics = selection.stages, selection.topics
    with EventLog.of_run(context) as log:
        events = events_of_run(log, assets, runtime.ledger, stages, buckets, made)
        if topics is not None:
            events.begin(topics)
        with (
            _within_run_limit(context, assets, interruption),
            heeding_its_status(context, interruption),
        ):
            for part in slices(assets, runtime, selection, buckets):
                for settled in advance(runtime, part, stop=interruption.stop):
                    events.page_came_to_rest(settled.topic_key)
                    rested[settled.topic_key] = None
                    if at_most is not None and len(rested) >= at_most:
                        interruption.stop.set()
                if interruption.stop.is_set():
                    break
        seen = events.finish(list(rested) if topics is None else list(topics))
        told = _announce(context, assets, runtime) if Stage.ARTIFACT in stages else None
    with runtime.ledger.begin() as connection:
        work = overview.work_of(connection, runtime.worker)
        stands = [
            routes.report(connection, name) for name in (runtime.model_route, runtime.cms_route)
        ]
    return RunSummary(
        stages=stages,
        pages=seen.pages,
        unknown=seen.unknown,
        besides=seen.besides,
        made=frozenset(made.topics[last_of(stages)]),
        work=work,
        complaint=told.complaint if told else "",
        closed_routes=[stand for stand in stands if stand is not None and stand.is_closed],
        interrupted=interruption.requested,
    )


@contextmanager
def _within_run_limit(
    context: RunContext, assets: SiteAssets, interruption: Interruption
) -> Iterator[None]:
    """Tell Dagster when to end the run, and begin no page that it could be ended with.

    So only a run that hangs is ever ended: the others stop by themselves while there is time for
    the pages at work. A run that somebody gave a limit of its own keeps it.
    """
    if MAX_RUNTIME_SECONDS_TAG not in context.run.tags:
        limit = {MAX_RUNTIME_SECONDS_TAG: assets.run_limit}
        context.instance.add_run_tags(context.run.run_id, limit)
    lane = assets.site.settings.lane
    timer = threading.Timer(lane.run_limit_s - lane.longest_hold_s, interruption.stop.set)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _announce(context: RunContext, assets: SiteAssets, runtime: SiteRuntime) -> Told:
    """Tell the site's hooks of what was published, so that the site is complete after any run."""
    told = tell_hooks(runtime)
    for kind, hook in told.hooks.items():
        key = assets.announcement(kind)
        if hook.answer is None:
            context.log_event(dg.AssetObservation(asset_key=key, metadata=hook.metadata()))
            continue
        context.log_event(
            dg.AssetMaterialization(
                asset_key=key,
                description=f"{hook.urls} pages are public",
                metadata=hook.metadata(),
                tags=version_tags(ANNOUNCEMENT_VERSION, {assets.key(Stage.ARTIFACT): ""}),
            )
        )
    return told


def end_run(context: RunContext, summary: RunSummary) -> None:
    """Show the summary on the run. Raises the Failure that ends a run whose pages need a person."""
    context.log.info(summary.line())
    tags = summary.tags()
    status = status_of(context)
    if summary.interrupted and status in AT_WORK:
        # The worker was taken away (a shutdown, a drained machine). For that there are run retries.
        tags[RETRY_ON_ASSET_OR_OP_FAILURE_TAG] = "true"
    context.instance.add_run_tags(context.run.run_id, tags)
    failure = summary.failure()
    if failure is not None:
        if status is dg.DagsterRunStatus.CANCELED:
            # Marked so by force: a failure now would take its place, and what is being cancelled
            # ends as cancelled whatever its step says.
            context.instance.report_run_canceling(
                context.run, "Its worker has heard of it and ends."
            )
        raise failure
