"""Announce: tell a site's hooks (sitemap, index page) about pages that were proved.

What belongs here: taking the site's pending effects, telling each hook what the ledger proves, and
recording what came of it. One announcement serves however many pages asked for it.
"""

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure
from content_pipeline.core.ports import SiteListing
from content_pipeline.core.retries import RetryAfter, decide
from content_pipeline.ledger import effects, publications
from content_pipeline.ledger.effects import SiteEffect
from content_pipeline.ledger.schema import EffectState
from content_pipeline.operations.runtime import SiteRuntime

STALE_S = 60.0
"""An announcement takes well below a second; one untouched for a minute was interrupted."""


def announce(runtime: SiteRuntime) -> list[tuple[str, Failure | str]]:
    """Tell every hook that is due; per hook its kind and where to look, or the failure."""
    with runtime.ledger.begin() as connection:
        taken = effects.take_site_effects(connection, runtime.site.site, STALE_S)
    if not taken:
        return []
    # Read after the effects were taken: whoever relied on them has committed its pages by now.
    with runtime.ledger.begin() as connection:
        listing = publications.listing(connection, runtime.site)
    runtime.on_checkpoint("announcement_taken")
    return [(effect.kind, _tell(runtime, effect, listing)) for effect in taken]


def _tell(runtime: SiteRuntime, effect: SiteEffect, listing: SiteListing) -> Failure | str:
    hook = next((hook for hook in runtime.hooks if hook.kind == effect.kind), None)
    if hook is None:
        with runtime.ledger.begin() as connection:
            effects.finish(
                connection,
                effect.effect_key,
                outcome="not_wanted",
                result_reference="the site no longer has this hook",
            )
        return "not wanted any more"
    try:
        announced = hook.announce(listing)
    except CallFailed as failed:
        return _not_told(runtime, effect, failed.failure)
    runtime.on_checkpoint("announced")
    outcome = "changed" if announced.changed else "unchanged"
    with runtime.ledger.begin() as connection:
        effects.finish(
            connection, effect.effect_key, outcome=outcome, result_reference=announced.location
        )
    return announced.location


def _not_told(runtime: SiteRuntime, effect: SiteEffect, failure: Failure) -> Failure:
    decision = decide(
        failure,
        failed_attempts=effect.attempts,
        policies=runtime.site.retries,
        jitter=runtime.random(),
    )
    with runtime.ledger.begin() as connection:
        if isinstance(decision, RetryAfter):
            effects.put_back(connection, effect.effect_key, failure, decision.wait_s)
        else:
            effects.mark(connection, effect.effect_key, EffectState.FAILED, failure)
    return failure
