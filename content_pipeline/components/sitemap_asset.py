"""``sitemap``: what is announced of a site once its pages are proved.

What belongs here: the asset. Every run that publishes announces as well and logs this asset, so
materializing it by hand is for verifying what stands there, and for bringing it back.
"""

import dagster as dg

from content_pipeline.components.announcement import tell_hooks
from content_pipeline.components.site_assets import SITEMAP_VERSION, SiteAssets
from content_pipeline.components.site_at_work import INFRASTRUCTURE_RETRIES, site_at_work
from content_pipeline.core.states import Stage


def build_sitemap(assets: SiteAssets) -> dg.AssetsDefinition:
    """The asset of a site's announcements."""

    @dg.asset(
        key=assets.sitemap,
        deps=[dg.AssetDep(assets.key(Stage.ARTIFACT), partition_mapping=dg.AllPartitionMapping())],
        description=(
            "The sitemap and the index page: they list exactly the pages that were published and "
            "proved. Written again only where they differ."
        ),
        group_name=assets.name,
        kinds={"xml"},
        owners=assets.owners,
        tags={"site": assets.name},
        code_version=SITEMAP_VERSION,
        retry_policy=INFRASTRUCTURE_RETRIES,
    )
    def sitemap(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        with site_at_work(assets.site, context.run.run_id) as site:
            told = tell_hooks(site, even_if_unasked=True)
        if told.complaint:
            raise dg.Failure(
                description=told.complaint, metadata=told.metadata(), allow_retries=False
            )
        return dg.MaterializeResult(metadata=told.metadata())

    return sitemap
