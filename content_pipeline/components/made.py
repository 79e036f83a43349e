"""What a run itself brought about, in distinction from what it found done.

What belongs here: taking note, page by page, from the ledger's transitions.
"""

from dataclasses import dataclass, field

from sqlalchemy import Connection

from content_pipeline.components.standing import reached_by
from content_pipeline.core.states import Stage
from content_pipeline.ledger import reports
from content_pipeline.ledger.reports import PageReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """How far one run brought the pages it worked on."""

    worker: str
    """The run's name in the ledger."""
    topics: dict[Stage, set[str]] = field(default_factory=lambda: {stage: set() for stage in Stage})

    def note(self, connection: Connection, site: str, topic_key: str) -> PageReport:
        """Take note of how far the run brought a page; how it stands."""
        (page,) = reports.page_reports(connection, site, [topic_key])
        for stage in reached_by(self.worker, reports.history(connection, page.page_job_id)):
            self.topics[stage].add(topic_key)
        return page
