"""Telling a site's hooks from a run, and showing each as the materialization of its asset.

What belongs here: ``operations.announce`` with how each hook stands afterwards, as metadata.
"""

from collections.abc import Collection
from dataclasses import dataclass

import dagster as dg

from content_pipeline.components.page_metadata import Metadata
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Announcement
from content_pipeline.ledger import announcements, effects, intake, publications
from content_pipeline.ledger.announcements import HookStanding
from content_pipeline.ledger.schema import EffectState
from content_pipeline.operations.announce import announce
from content_pipeline.operations.runtime import SiteRuntime

PASSES_BY_ITSELF = frozenset(
    {FailureClass.NOT_SENT, FailureClass.TRANSIENT, FailureClass.THROTTLED}
)
"""A service that is not well for a while is no reason for a red run; a full disk is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldHook:
    """One hook, and what came of telling it."""

    urls: int
    """Proved public pages of the site."""
    answer: Announcement | None
    """None: it was not told now, or the call failed."""
    standing: HookStanding | None
    """None: it was never to be told anything."""

    @property
    def complaint(self) -> str:
        """Why a person should act; empty while nobody must."""
        found = self.standing
        if found is None or found.failure_class is None:
            return ""
        if found.state is not EffectState.FAILED and found.failure_class in PASSES_BY_ITSELF:
            return ""
        return f"{found.kind}: {found.failure_message}"

    def metadata(self) -> Metadata:
        """Numbers for a plot, the last call, and where to look."""
        changed = self.answer is not None and self.answer.changed
        shown: Metadata = {
            "urls": dg.MetadataValue.int(self.urls),
            "changed": dg.MetadataValue.bool(changed),
        }
        found = self.standing
        if found is None:
            return shown
        texts = {
            "outcome": found.outcome,
            "location": found.result_reference,
            "failure_class": found.failure_class,
            "failure": found.failure_message,
        }
        shown |= {name: dg.MetadataValue.text(text) for name, text in texts.items() if text}
        if found.pages_told is not None:
            shown["pages_told"] = dg.MetadataValue.int(found.pages_told)
        times = {"last_call": found.called_at, "next_attempt": found.next_attempt_at}
        stamps = {name: at.timestamp() for name, at in times.items() if at is not None}
        return shown | {name: dg.MetadataValue.timestamp(at) for name, at in stamps.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of telling a site's hooks."""

    hooks: dict[str, ToldHook]
    """By kind, those that were told or waited for."""

    @property
    def complaint(self) -> str:
        """What a person must put in order, in a sentence; empty without any."""
        told = [hook.complaint for hook in self.hooks.values() if hook.complaint]
        return f"not announced: {'; '.join(told)}" if told else ""


def tell_hooks(runtime: SiteRuntime, *, even_if_unasked: Collection[str] | None = None) -> Told:
    """Tell each hook that is due.

    ``even_if_unasked``: these and no others, now: their files are verified, and what gathers is
    told. Harmless to repeat. A hook that fails is told again later, or reported when it failed for
    good.
    """
    site = runtime.site
    if even_if_unasked is not None:
        with runtime.ledger.begin() as connection:
            if intake.topic_keys(connection, site.site):
                at_once = dict.fromkeys(even_if_unasked, 0.0)
                effects.want_for_site(connection, site.site, at_once, site.owner)
                announcements.hurry(connection, site.site, even_if_unasked)
    outcomes = announce(runtime, kinds=even_if_unasked)
    kinds = sorted({*outcomes, *(even_if_unasked or ())})
    if not kinds:
        return Told(hooks={})
    with runtime.ledger.begin() as connection:
        urls = publications.count(connection, site.site)
        found = {each.kind: each for each in announcements.standings(connection, site.site)}
    return Told(
        hooks={
            kind: ToldHook(urls=urls, answer=_answer(outcomes.get(kind)), standing=found.get(kind))
            for kind in kinds
        }
    )


def _answer(outcome: Announcement | Failure | None) -> Announcement | None:
    return outcome if isinstance(outcome, Announcement) else None
