"""News: tell one hook exactly what changed since it was last told, batch by batch.

What belongs here: the hooks that are told of changes rather than of everything. What a batch holds
is read right before the call, and each batch is on record as told before the next one goes out: a
worker that dies repeats the batch under way and no other.
"""

from content_pipeline.core.ports import Announcement, NewsHook
from content_pipeline.ledger import announcements, effects
from content_pipeline.ledger.effects import SiteEffect
from content_pipeline.operations.runtime import SiteRuntime

NOTHING_NEW = "nothing_new"
"""Outcome of an announcement whose changes were told already, or taken back meanwhile."""


def meet_hooks(runtime: SiteRuntime) -> None:
    """Record the hooks that are told of changes, so that what is published next is news to them.

    Must come before anything is published: what is public when a hook is first met is no news to
    it, unless it wants to be told of that as well.
    """
    wanted = {
        hook.kind: hook.terms.tells_existing for hook in runtime.hooks if isinstance(hook, NewsHook)
    }
    if wanted:
        with runtime.ledger.begin() as connection:
            announcements.meet_hooks(connection, runtime.site.site, wanted)


def tell_news(runtime: SiteRuntime, effect: SiteEffect, hook: NewsHook) -> Announcement | None:
    """Tell ``hook`` all its news; None when there was none. Raises CallFailed.

    What was told before a failure stays told. Ends early when another dispatcher took over.
    """
    announced = None
    while True:
        with runtime.ledger.begin() as connection:
            if not announcements.keep(connection, effect):
                return announced
            most = hook.terms.batch
            batch = announcements.next_batch(connection, runtime.site, effect, most)
            if batch is None:
                effects.finish(
                    connection,
                    effect.effect_key,
                    outcome=NOTHING_NEW if announced is None else "told",
                    result_reference="" if announced is None else announced.location,
                )
                return announced
        announced = hook.tell(batch.news)
        runtime.on_checkpoint("announced")
        with runtime.ledger.begin() as connection:
            announcements.mark_told(connection, runtime.site.site, effect, batch)
