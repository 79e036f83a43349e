"""Announce: tell a site's hooks (sitemap, IndexNow, webhook) about pages that were proved.

What belongs here: taking the site's pending effects, telling each hook what the ledger proves, and
recording what came of it. One announcement serves however many pages asked for it. What is news to
a hook, and telling it in batches, is ``news``'s.
"""

import time
from collections.abc import Collection

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure
from content_pipeline.core.ports import Announcement, ListingHook, NewsHook
from content_pipeline.core.retries import CLOSES_CIRCUIT, LONGEST_WAIT_S, RetryAfter, decide
from content_pipeline.ledger import announcements, effects, publications
from content_pipeline.ledger.effects import SiteEffect
from content_pipeline.ledger.schema import EffectState
from content_pipeline.operations.news import meet_hooks, tell_news
from content_pipeline.operations.runtime import SiteRuntime

POLL_S = 0.1
"""How often is looked whether another dispatcher has finished."""

BREATH_S = 0.02
"""Before one that has just become due, or that another dispatcher is just taking, is looked at."""


def announce(
    runtime: SiteRuntime,
    *,
    even_given_up: bool = False,
    kinds: Collection[str] | None = None,
    patience_s: float = 0.0,
) -> dict[str, Announcement | Failure]:
    """Tell every hook that is due; by kind of hook what it answered, or the failure.

    Waits for another dispatcher that is telling the site's hooks just now, and takes over from one
    that was not heard of for too long: afterwards every page published before is announced, or
    waits for a retry, or for more to tell. ``even_given_up``: hooks that failed for good are tried
    again, because a person who starts a run has seen that and may have put it in order. ``kinds``:
    only these hooks. ``patience_s``: wait so long for hooks that gather what they are told.
    """
    meet_hooks(runtime)
    if even_given_up:
        _want_again(runtime)
    told: dict[str, Announcement | Failure] = {}
    patient_until = time.monotonic() + patience_s
    while True:
        taken, wait_s = _take(runtime, kinds, patient_until - time.monotonic())
        if taken:
            told |= _tell_all(runtime, taken)
        elif wait_s is None:
            return told
        else:
            time.sleep(min(max(wait_s, BREATH_S), POLL_S))


def _want_again(runtime: SiteRuntime) -> None:
    site = runtime.site
    with runtime.ledger.begin() as connection:
        given_up = effects.given_up(connection, site.site)
        effects.want_for_site(connection, site.site, dict.fromkeys(given_up, 0.0), site.owner)


def _take(
    runtime: SiteRuntime, kinds: Collection[str] | None, patience_s: float
) -> tuple[list[SiteEffect], float | None]:
    """What is to be told now, or how long another dispatcher or a hook must be waited for."""
    site, stale_s = runtime.site.site, runtime.site.telling_s
    with runtime.ledger.begin() as connection:
        taken = effects.take_site_effects(connection, site, stale_s, kinds)
        if taken:
            return taken, None
        waits = [effects.seconds_until_stale(connection, site, stale_s, kinds)]
        gathering_s = announcements.seconds_until_told(connection, site, kinds)
        if gathering_s is not None and gathering_s <= patience_s:
            waits.append(gathering_s)
    return [], min((wait_s for wait_s in waits if wait_s is not None), default=None)


def _tell_all(runtime: SiteRuntime, taken: list[SiteEffect]) -> dict[str, Announcement | Failure]:
    runtime.on_checkpoint("announcement_taken")
    told = {effect.kind: _tell(runtime, effect) for effect in taken}
    return {kind: outcome for kind, outcome in told.items() if outcome is not None}


def _tell(runtime: SiteRuntime, effect: SiteEffect) -> Announcement | Failure | None:
    """What came of telling one hook; None when there was nothing to tell, or nobody."""
    hook = next((hook for hook in runtime.hooks if hook.kind == effect.kind), None)
    try:
        if hook is None:
            _nobody(runtime, effect)
            return None
        if isinstance(hook, NewsHook):
            return tell_news(runtime, effect, hook)
        return _tell_listing(runtime, effect, hook)
    except CallFailed as failed:
        return _not_told(runtime, effect, failed.failure)


def _nobody(runtime: SiteRuntime, effect: SiteEffect) -> None:
    with runtime.ledger.begin() as connection:
        effects.finish(
            connection,
            effect.effect_key,
            outcome="not_wanted",
            result_reference="the site no longer has this hook",
        )


def _tell_listing(
    runtime: SiteRuntime, effect: SiteEffect, hook: ListingHook
) -> Announcement | None:
    # Read after the effect was taken: whoever relied on it has committed its pages by now.
    with runtime.ledger.begin() as connection:
        if not announcements.keep(connection, effect):
            return None
        listing = publications.listing(connection, runtime.site)
    announced = hook.announce(listing)
    runtime.on_checkpoint("announced")
    outcome = "changed" if announced.changed else "unchanged"
    with runtime.ledger.begin() as connection:
        announcements.count_told(connection, effect, len(listing.pages))
        effects.finish(
            connection, effect.effect_key, outcome=outcome, result_reference=announced.location
        )
    return announced


def _not_told(runtime: SiteRuntime, effect: SiteEffect, failure: Failure) -> Failure:
    """Tell it again later. It is no page's, so no deadline ends it but the longest wait of any.

    Refused credentials end it at once: no circuit holds the calls of a hook back, and every one of
    fifty tries would be refused alike. It is tried again with the next change.
    """
    decision = decide(
        failure,
        failed_attempts=effect.attempts,
        policies=runtime.site.retries,
        jitter=runtime.random(),
        failing_for_s=0,
        page_left_s=LONGEST_WAIT_S,
    )
    with runtime.ledger.begin() as connection:
        if isinstance(decision, RetryAfter) and failure.failure_class not in CLOSES_CIRCUIT:
            effects.put_back(connection, effect.effect_key, failure, decision.wait_s)
        else:
            effects.mark(connection, effect.effect_key, EffectState.FAILED, failure)
    return failure
