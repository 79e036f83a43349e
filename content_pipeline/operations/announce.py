"""Announce: tell a site's hooks (sitemap, index page) about pages that were proved.

What belongs here: taking the site's pending effects, telling each hook what the ledger proves, and
recording what came of it. One announcement serves however many pages asked for it.
"""

import time

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure
from content_pipeline.core.ports import Announcement, SiteListing
from content_pipeline.core.retries import LONGEST_WAIT_S, RetryAfter, decide
from content_pipeline.ledger import effects, publications
from content_pipeline.ledger.effects import SiteEffect
from content_pipeline.ledger.schema import EffectState
from content_pipeline.operations.runtime import SiteRuntime

POLL_S = 0.1
"""How often is looked whether another dispatcher has finished."""


def announce(
    runtime: SiteRuntime, *, even_given_up: bool = False
) -> dict[str, Announcement | Failure]:
    """Tell every hook that is due; by kind of hook what it answered, or the failure.

    Waits for another dispatcher that is telling the site's hooks just now, and takes over from one
    that took longer than a lease: afterwards every page published before is announced, or waits
    for a retry. ``even_given_up``: hooks that failed for good are tried again, because a person
    who starts a run has seen that and may have put it in order.
    """
    if even_given_up:
        _want_again(runtime)
    told: dict[str, Announcement | Failure] = {}
    while True:
        taken, wait_s = _take(runtime)
        if taken:
            told |= _tell_all(runtime, taken)
        elif wait_s is None:
            return told
        else:
            time.sleep(min(wait_s, POLL_S))


def _want_again(runtime: SiteRuntime) -> None:
    site = runtime.site
    with runtime.ledger.begin() as connection:
        given_up = effects.given_up(connection, site.site)
        effects.want_for_site(connection, site.site, given_up, site.owner)


def _take(runtime: SiteRuntime) -> tuple[list[SiteEffect], float | None]:
    """What is to be told now, or until when another dispatcher must be waited for."""
    site, stale_s = runtime.site.site, runtime.site.lane.lease_s
    with runtime.ledger.begin() as connection:
        taken = effects.take_site_effects(connection, site, stale_s)
        if taken:
            return taken, None
        return [], effects.seconds_until_stale(connection, site, stale_s)


def _tell_all(runtime: SiteRuntime, taken: list[SiteEffect]) -> dict[str, Announcement | Failure]:
    # Read after the effects were taken: whoever relied on them has committed its pages by now.
    with runtime.ledger.begin() as connection:
        listing = publications.listing(connection, runtime.site)
    runtime.on_checkpoint("announcement_taken")
    told = {effect.kind: _tell(runtime, effect, listing) for effect in taken}
    return {kind: outcome for kind, outcome in told.items() if outcome is not None}


def _tell(
    runtime: SiteRuntime, effect: SiteEffect, listing: SiteListing
) -> Announcement | Failure | None:
    """What came of telling one hook; None when the site no longer has it."""
    hook = next((hook for hook in runtime.hooks if hook.kind == effect.kind), None)
    if hook is None:
        with runtime.ledger.begin() as connection:
            effects.finish(
                connection,
                effect.effect_key,
                outcome="not_wanted",
                result_reference="the site no longer has this hook",
            )
        return None
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
    return announced


def _not_told(runtime: SiteRuntime, effect: SiteEffect, failure: Failure) -> Failure:
    """Tell it again later. It is no page's, so no deadline ends it but the longest wait of any."""
    decision = decide(
        failure,
        failed_attempts=effect.attempts,
        policies=runtime.site.retries,
        jitter=runtime.random(),
        failing_for_s=0,
        page_left_s=LONGEST_WAIT_S,
    )
    with runtime.ledger.begin() as connection:
        if isinstance(decision, RetryAfter):
            effects.put_back(connection, effect.effect_key, failure, decision.wait_s)
        else:
            effects.mark(connection, effect.effect_key, EffectState.FAILED, failure)
    return failure
