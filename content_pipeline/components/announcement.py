"""Telling a site's hooks from a run, and showing it as the materialization of ``sitemap``.

What belongs here: ``operations.announce`` with what each hook answered, as metadata.
"""

from dataclasses import dataclass

import dagster as dg

from content_pipeline.components.page_metadata import Metadata, table
from content_pipeline.core.failures import Failure
from content_pipeline.core.ports import Announcement
from content_pipeline.ledger import effects, intake, publications
from content_pipeline.operations.announce import announce
from content_pipeline.operations.runtime import SiteRuntime


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of telling a site's hooks."""

    urls: int
    """Proved public pages, all of which stand in the sitemap."""
    answers: dict[str, Announcement]
    failures: dict[str, Failure]

    @property
    def complaint(self) -> str:
        """The failures in a sentence; empty without any."""
        told = [f"{kind}: {failure.message}" for kind, failure in self.failures.items()]
        return f"not announced: {'; '.join(told)}" if told else ""

    def metadata(self) -> Metadata:
        """Numbers for a plot, and where to look."""
        rows = [
            {
                "hook": kind,
                "location": answer.location,
                "changed": "yes" if answer.changed else "no",
            }
            for kind, answer in sorted(self.answers.items())
        ]
        columns = (("hook", "string"), ("location", "string"), ("changed", "string"))
        changed = any(answer.changed for answer in self.answers.values())
        return {
            "urls": dg.MetadataValue.int(self.urls),
            "changed": dg.MetadataValue.bool(changed),
            "hooks": table(columns, rows),
        }


def tell_hooks(runtime: SiteRuntime, *, even_if_unasked: bool = False) -> Told:
    """Tell each hook that is due; ``even_if_unasked``: every hook, so that its files are verified.

    Harmless to repeat. A hook that fails is told again later, or reported when it failed for good.
    """
    site = runtime.site
    if even_if_unasked:
        kinds = tuple(hook.kind for hook in runtime.hooks)
        with runtime.ledger.begin() as connection:
            if intake.topic_keys(connection, site.site):
                effects.want_for_site(connection, site.site, kinds, site.owner)
    outcomes = announce(runtime)
    with runtime.ledger.begin() as connection:
        urls = len(publications.listing(connection, site).pages)
    return Told(
        urls=urls,
        answers={
            kind: outcome for kind, outcome in outcomes.items() if isinstance(outcome, Announcement)
        },
        failures={
            kind: outcome for kind, outcome in outcomes.items() if isinstance(outcome, Failure)
        },
    )
