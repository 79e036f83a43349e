"""Republish from the UI: stored pages are put in place again, without being made anew.

What belongs here: the job and what a person may say to it in the launchpad.
"""

import dagster as dg

from content_pipeline.components.dagster_private import MAX_RUNTIME_SECONDS_TAG, PRIORITY_TAG
from content_pipeline.components.due_work import PRIORITY
from content_pipeline.components.interruption import interruptible
from content_pipeline.components.page_work import end_run, work_on
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.site_at_work import INFRASTRUCTURE_RETRIES, site_at_work
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.states import Stage
from content_pipeline.ledger.leases import Selection
from content_pipeline.operations.republish import republish


class RepublishConfig(dg.Config):
    """Which pages, and why."""

    cause: str
    """Kept with the pages."""
    topics: list[str] = []  # noqa: RUF012 - a field of a pydantic model, copied for each
    """Partition keys; none with ``everything``."""
    everything: bool = False
    """All published pages of the site."""


def build_republish_job(assets: SiteAssets) -> dg.JobDefinition:
    """The job that looks at published pages on the site, and puts them back where they are not."""

    @dg.op(
        name=f"{assets.name}_put_in_place",
        retry_policy=INFRASTRUCTURE_RETRIES,
        tags={"site": assets.name},
    )
    def put_in_place(context: dg.OpExecutionContext, config: RepublishConfig) -> None:
        with interruptible() as interruption, site_at_work(assets.site, context.run_id) as site:
            if not config.cause.strip():
                raise ConfigurationError("`cause` must say why; it is kept with the pages")
            if bool(config.topics) == config.everything:
                raise ConfigurationError("give either `topics` or `everything: true`")
            wanted = None if config.everything else config.topics
            taken = republish(site, wanted, cause=config.cause, by=f"dagster run {context.run_id}")
            context.log.info(f"{len(taken)} pages are taken up")
            # By name: whatever else is ready to be published is not what was asked for.
            pages = Selection(
                site=assets.name,
                topics=tuple(wanted or taken),
                stages=frozenset({Stage.ARTIFACT}),
            )
            end_run(context, work_on(context, assets, site, pages, interruption))

    @dg.job(
        name=f"{assets.name}_republish",
        description=(
            "Publishes stored pages again without making them anew: those of `topics`, or "
            "`everything`. A page in place is confirmed without a write. Nothing is paid."
        ),
        executor_def=dg.in_process_executor,
        tags=assets.tags | {PRIORITY_TAG: PRIORITY, MAX_RUNTIME_SECONDS_TAG: assets.run_limit},
    )
    def republish_pages() -> None:
        put_in_place()

    return republish_pages
