"""The component that a site file declares: ``type: content_pipeline.ContentSite``.

What belongs here: from the file to definitions. The attributes are the settings the command line
reads from the same file, so both always mean the same site.
"""

import warnings

import dagster as dg
from pydantic import BaseModel

from content_pipeline.bootstrap import refuse_hopeless_caps
from content_pipeline.components.announcement_assets import build_announcements
from content_pipeline.components.broken_site import (
    BrokenSite,
    broken_definitions,
    is_being_checked,
    set_aside,
)
from content_pipeline.components.due_work import build_due_job, build_due_sensor
from content_pipeline.components.lane_assets import build_lane
from content_pipeline.components.nightly_plan import build_nightly_plan, build_plan_job
from content_pipeline.components.partitions_sensor import build_partitions_sensor
from content_pipeline.components.planned_runs import build_planned_runs_sensor
from content_pipeline.components.reconciling import build_reconcile_job, build_reconcile_sensor
from content_pipeline.components.repairing import build_repair_sensor
from content_pipeline.components.report_assets import (
    build_reports,
    build_reports_schedule,
)
from content_pipeline.components.republishing import build_republish_job
from content_pipeline.components.schedule import build_pages_job, build_schedule
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.site_attributes import SiteAttributes
from content_pipeline.components.site_scaffold import SiteScaffolder
from content_pipeline.components.site_watch import (
    build_site_changes_sensor,
    build_survey_job,
    build_sweep_schedule,
)
from content_pipeline.components.topics_asset import build_topics
from content_pipeline.config import SITE_FILE
from content_pipeline.core.errors import SiteFileError
from content_pipeline.site_files import Site, load_site


@dg.scaffold_with(SiteScaffolder)
class ContentSite(dg.Component):
    """One site: its topics, the pages made of them, and what is announced of them."""

    def __init__(self, site: Site | BrokenSite) -> None:
        self.site = site

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """What may stand in ``attributes``."""
        return SiteAttributes

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """What ``dg list components`` shows."""
        return dg.ComponentTypeSpec(
            description="A site of generated pages: topics, drafts, pages, announcements.",
            produces=["asset", "asset_check", "job", "sensor", "schedule"],
        )

    @classmethod
    def load(
        cls,
        attributes: BaseModel | None,  # noqa: ARG003 - see below
        context: dg.ComponentLoadContext,
    ) -> "ContentSite":
        """The site of the file that ``context`` is about; a broken one is set aside.

        Raises SiteFileError to those who check definitions. Dagster has read ``attributes`` by
        then; what is wrong with them, and what it does not look for (a key given twice, a
        credential, a missing prompt, a cap below the price of one call), is found here, as on the
        command line.
        """
        try:
            site = load_site(context.path / SITE_FILE)
            refuse_hopeless_caps(site)
            return cls(site)
        except SiteFileError as error:
            if is_being_checked():
                raise
            return cls(set_aside(context.path, error))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:  # noqa: ARG002
        """The site's assets, checks, jobs, sensors and schedules."""
        if isinstance(self.site, BrokenSite):
            return broken_definitions(self.site)
        return site_definitions(self.site)


def site_definitions(site: Site) -> dg.Definitions:
    """All definitions of ``site``."""
    assets = SiteAssets(site=site)
    with warnings.catch_warnings():
        # Runs of many partitions and checks of partitions are used on purpose, and tested here.
        for category in (dg.BetaWarning, dg.PreviewWarning):
            warnings.simplefilter("ignore", category)
        due_job = build_due_job(assets)
        reconcile_job, survey_job = build_reconcile_job(assets), build_survey_job(assets)
        pages_job, plan_job = build_pages_job(assets), build_plan_job(assets)
        return dg.Definitions(
            assets=[
                build_topics(assets),
                build_lane(assets),
                *build_announcements(assets),
                build_nightly_plan(assets),
                build_reports(assets),
            ],
            jobs=[
                due_job,
                plan_job,
                pages_job,
                reconcile_job,
                survey_job,
                build_republish_job(assets),
            ],
            sensors=[
                build_due_sensor(assets, due_job),
                build_planned_runs_sensor(assets, pages_job),
                # Buckets are partitions from the start: there is nothing to register.
                *([] if assets.buckets else [build_partitions_sensor(assets)]),
                build_reconcile_sensor(assets, reconcile_job),
                build_repair_sensor(assets),
                build_site_changes_sensor(assets, survey_job),
            ],
            schedules=[
                build_schedule(assets, plan_job),
                build_sweep_schedule(assets, survey_job),
                build_reports_schedule(assets),
            ],
        )
