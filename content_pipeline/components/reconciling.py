"""Reconcile: publishes and withdrawals whose outcome nobody knows are settled by asking the CMS.

What belongs here: a job for exactly these pages, and the sensor that starts it once their quiet
period is over. The due work settles them as well; this one pays for nothing, so it may run where
the due work, which does, is not switched on.
"""

import dagster as dg

from content_pipeline.components.dagster_private import MAX_RUNTIME_SECONDS_TAG, PRIORITY_TAG
from content_pipeline.components.due_work import PAGES_PER_RUN, PRIORITY, RUN_TAG
from content_pipeline.components.interruption import interruptible
from content_pipeline.components.page_work import end_run, work_on
from content_pipeline.components.sensor_ticks import A_RUN_IS_AT_IT, Tick, asking, is_at_work
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.site_at_work import (
    INFRASTRUCTURE_RETRIES,
    opened_ledger,
    site_at_work,
)
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import leases, routes
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Selection
from content_pipeline.site_cms import cms_route

INTERVAL_S = 30

UNSETTLED = frozenset(
    {PageJobState.PUBLISHING, PageJobState.PUBLISH_UNCERTAIN, PageJobState.WITHDRAWING}
)
"""A page may be on the site, or off it, and nobody has proved it."""


def unsettled(site: str) -> Selection:
    """The pages of ``site`` that only the CMS's word leads on."""
    return Selection(site=site, stages=frozenset({Stage.ARTIFACT}), states=UNSETTLED)


def build_reconcile_job(assets: SiteAssets) -> dg.JobDefinition:
    """The job that asks the CMS what became of lost writes, and goes on from its answers."""

    @dg.op(
        name=f"{assets.name}_ask_the_cms",
        retry_policy=INFRASTRUCTURE_RETRIES,
        tags={"site": assets.name},
    )
    def ask_the_cms(context: dg.OpExecutionContext) -> None:
        with interruptible() as interruption, site_at_work(assets.site, context.run_id) as site:
            pages = unsettled(assets.name)
            summary = work_on(context, assets, site, pages, interruption, at_most=PAGES_PER_RUN)
            end_run(context, summary)

    @dg.job(
        name=f"{assets.name}_reconcile",
        description=(
            "Asks the CMS about publishes whose answer was lost, and publishes what it proves to "
            "be absent. Nothing is paid."
        ),
        executor_def=dg.in_process_executor,
        tags=assets.tags
        | {
            RUN_TAG: assets.name,
            PRIORITY_TAG: PRIORITY,
            MAX_RUNTIME_SECONDS_TAG: assets.run_limit,
        },
    )
    def reconcile() -> None:
        ask_the_cms()

    return reconcile


def run_once(instance: dg.DagsterInstance, ledger: Ledger, assets: SiteAssets) -> Tick:
    """Whether the quiet period of a lost write is over and nobody is at it."""
    if is_at_work(instance, tags={RUN_TAG: assets.name}):
        return A_RUN_IS_AT_IT
    with asking(ledger) as connection:
        cms_wait_s = routes.wait_s(connection, cms_route(assets.site))
        outlook = leases.outlook(connection, unsettled(assets.name), cms_wait_s=cms_wait_s)
    if outlook.wait_s is None:
        return Tick(said="No page is unsettled.")
    if outlook.wait_s > 0:
        told = f"{outlook.count} pages are unsettled; the CMS is asked in"
        return Tick(said=f"{told} {outlook.wait_s:.0f} s.")
    return Tick(asks_for_run=True)


def build_reconcile_sensor(assets: SiteAssets, job: dg.JobDefinition) -> dg.SensorDefinition:
    """Starts ``job`` when the quiet period of a lost write is over. On: it finishes what began."""

    @dg.sensor(
        name=f"{assets.name}_reconcile_sensor",
        job=job,
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Once a quiet period is over, asks the CMS about publishes whose answer was lost. Pays "
            "for nothing and begins no page, so it is on."
        ),
        owners=assets.owners,
        tags=assets.tags,
    )
    def reconcile_sensor(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        with opened_ledger() as ledger:
            return run_once(context.instance, ledger, assets).answer()

    return reconcile_sensor
