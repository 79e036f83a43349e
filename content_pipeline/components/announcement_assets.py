"""``sitemap``, ``indexnow``, …: one asset for each hook that is told once pages are proved.

What belongs here: the assets. Every run that publishes tells the hooks that are due and logs these
assets, so materializing one by hand is for verifying what stands there, for bringing it back, and
for telling at once what it would gather.
"""

import dagster as dg

from content_pipeline.components.announcement import tell_hooks
from content_pipeline.components.asset_metadata import hook_metadata
from content_pipeline.components.site_assets import ANNOUNCEMENT_VERSION, SiteAssets
from content_pipeline.components.site_at_work import INFRASTRUCTURE_RETRIES, site_at_work
from content_pipeline.core.states import Stage

_DESCRIPTIONS: dict[str, str] = {
    "sitemap": (
        "The sitemap: it lists exactly the pages that were published and proved. Written again "
        "only where it differs."
    ),
    "index_page": (
        "The front page, with a link to every page that was published and proved. Written again "
        "only where it differs."
    ),
    "redirects": "Where visitors of retired topics' pages are led.",
    "indexnow": "Search engines, told of each page once for each change of its text.",
    "cloudflare_purge": "The cache of the zone, rid of each page that changed.",
    "cache_purge": "The cache, rid of each page that changed.",
    "deploy_hook": "The site's host, asked for one build for all that changed.",
    "webhook": "The receiver, told of each page that was published or taken off.",
    "mail": "A mail about what was published and taken off.",
}


def build_announcements(assets: SiteAssets) -> list[dg.AssetsDefinition]:
    """The assets of a site's hooks."""
    return [_build(assets, hook.name, hook.kind) for hook in assets.site.settings.hooks]


def _build(assets: SiteAssets, name: str, kind: str) -> dg.AssetsDefinition:
    @dg.asset(
        key=assets.announcement(name),
        deps=[dg.AssetDep(assets.key(Stage.ARTIFACT), partition_mapping=dg.AllPartitionMapping())],
        description=_DESCRIPTIONS[kind],
        group_name=assets.name,
        kinds={kind},
        owners=assets.owners,
        tags=assets.tags,
        code_version=ANNOUNCEMENT_VERSION,
        metadata=hook_metadata(assets.site, kind),
        retry_policy=INFRASTRUCTURE_RETRIES,
    )
    def announcement(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        with site_at_work(assets.site, context.run.run_id) as site:
            told = tell_hooks(site, even_if_unasked=(name,))
        hook = told.hooks[name]
        if hook.standing is not None and hook.standing.failure_class is not None:
            raise dg.Failure(
                description=f"not announced: {name}: {hook.standing.failure_message}",
                metadata=hook.metadata(),
                allow_retries=False,
            )
        return dg.MaterializeResult(metadata=hook.metadata())

    return announcement
