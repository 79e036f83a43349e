"""The events of a run on a site whose partitions are its pages.

What belongs here: when a run tells of a page. Its events go out as pages come to rest, so a run
that dies leaves what it did on record. What they say is in ``page_stories``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import dagster as dg
from sqlalchemy import Connection

from content_pipeline.components.event_log import EventLog
from content_pipeline.components.made import Made
from content_pipeline.components.page_metadata import PageInRun
from content_pipeline.components.page_stories import page_materialization, stories_of_page
from content_pipeline.components.run_summary import Seen
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.standing import Standing, in_order, standing
from content_pipeline.components.stories import tell
from content_pipeline.core.states import Stage
from content_pipeline.ledger import reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.reports import PageReport


@dataclass(frozen=True, slots=True, kw_only=True)
class PageEvents:
    """The events of one run's pages; a page's asset is materialized at most once in it."""

    log: EventLog
    assets: SiteAssets
    ledger: Ledger
    made: Made
    stages: frozenset[Stage]
    """The assets that the run is about."""
    logged: set[tuple[Stage, str]] = field(default_factory=set)
    told: dict[str, PageReport] = field(default_factory=dict)
    """Failed pages by topic, as they stood when their checks were evaluated."""

    def begin(self, wanted: Sequence[str]) -> None:
        """Log what is done already of the topics ``wanted``.

        Else they would read as being made for as long as the slowest page of the run takes.
        """
        self._materialize_done(self._reports(wanted))

    def page_came_to_rest(self, topic_key: str) -> None:
        """Materialize what is done of a page that this run worked on; tell at once why it failed.

        A run may go on for minutes, and a person who must act need not wait for its end.
        """
        with self.ledger.begin() as connection:
            page = self.made.note(connection, self.assets.name, topic_key)
            events = self._events(connection, page)
        self._log(events)
        if page.needs_person:
            self._tell([page])
            self.told[topic_key] = page

    def finish(self, wanted: Sequence[str]) -> Seen:
        """Log what is done of the topics ``wanted`` and was not logged, and evaluate their checks.

        What is found. A page whose story was told at once is not told of again, unless it stands
        otherwise now.
        """
        pages = self._reports(wanted)
        self._materialize_done(pages)
        self._tell([page for page in pages if self.told.get(page.topic_key) != page])
        known = {page.topic_key for page in pages}
        return Seen(pages=pages, unknown=[key for key in wanted if key not in known])

    def _reports(self, topic_keys: Sequence[str]) -> list[PageReport]:
        with self.ledger.begin() as connection:
            return reports.page_reports(connection, self.assets.name, topic_keys)

    def _materialize_done(self, pages: Iterable[PageReport]) -> None:
        with self.ledger.begin() as connection:
            events = [event for page in pages for event in self._events(connection, page)]
        self._log(events)

    def _events(self, connection: Connection, page: PageReport) -> list[dg.AssetMaterialization]:
        """The materializations of what is done of ``page`` and was not logged."""
        events = []
        for stage in in_order(self.stages):
            key = (stage, page.topic_key)
            if key in self.logged or standing(page, stage) is not Standing.DONE:
                continue
            self.logged.add(key)
            reused = page.topic_key not in self.made.topics[stage]
            seen = PageInRun(page=page, worker=self.made.worker, reused=reused)
            events.append(page_materialization(connection, self.assets, stage, seen))
        return events

    def _log(self, events: Iterable[dg.AssetMaterialization]) -> None:
        for event in events:
            self.log.log(event)

    def _tell(self, pages: Sequence[PageReport]) -> None:
        stages = in_order(self.stages)
        stories = [story for page in pages for story in stories_of_page(page, stages)]
        tell(self.log, self.assets, stories)
