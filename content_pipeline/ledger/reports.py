"""Reports: what people are shown of a page, always read fresh from the ledger.

What belongs here: reading pages with their attempts, history and effects. The same values feed the
command line, Dagster's metadata and the summary of a run, so they cannot disagree. A site as a
whole is ``overview``'s.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, and_, select

from content_pipeline.core.errors import ConfigurationError, UnknownPage
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import FINAL, NEEDS_PERSON, PageJobState
from content_pipeline.ledger import attempts as attempt_rows
from content_pipeline.ledger.schema import (
    AttemptKind,
    SpendState,
    TopicStatus,
    effects,
    page_jobs,
    pages,
    topics,
    transitions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """One attempt as people see it."""

    kind: AttemptKind
    step: str
    """Of the chain, for a paid call; ``publish`` for a publish."""
    number: int
    state: str
    failure_class: str | None
    failure_message: str | None
    model: str | None
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    usd: Decimal
    """Settled, or the worst case while nobody knows."""
    is_certain: bool
    latency_s: float | None
    started_at: datetime
    request_id: str | None
    worker: str
    revision: int | None
    recovered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReport:
    """One topic's current page job with everything about it that is worth a look."""

    topic_key: str
    name: str
    page_job_id: str
    page_id: str | None
    path: str | None
    state: PageJobState
    cancel_requested: bool
    failure_class: FailureClass | None
    failure_message: str | None
    next_attempt_at: datetime
    deadline_at: datetime
    """Nothing is tried again after this."""
    generation_version: str
    input_hash: str
    owner: str
    revision: int | None
    published_revision: int | None
    published_title: str | None
    remote_id: str | None
    remote_url: str | None
    verified_at: datetime | None
    topic_is_retired: bool
    """Whether its topic is no longer in the table."""
    site_change: SiteChange | None
    """What somebody did to it on the site, as long as that is on record."""
    site_change_reason: str | None
    site_change_found_at: datetime | None
    withdrawn_at: datetime | None
    """When it was proved to be off the site, where it is not published again since."""
    attempts: tuple[AttemptReport, ...] = field(repr=False)

    def of_kind(self, kind: AttemptKind) -> tuple[AttemptReport, ...]:
        """The attempts of one kind, oldest first."""
        return tuple(attempt for attempt in self.attempts if attempt.kind is kind)

    @property
    def needs_person(self) -> bool:
        """Whether somebody must act; a page that nobody wants any more needs that only to go."""
        if self.state not in NEEDS_PERSON:
            return False
        return not self.topic_is_retired or bool(self.of_kind(AttemptKind.WITHDRAW))

    @property
    def awaits_decision(self) -> bool:
        """Whether a person must say what becomes of a change on the site.

        A job that is on its way looks at the site itself, and fails with a conflict if need be.
        """
        return self.site_change is not None and self.state in FINAL

    @property
    def usd(self) -> Decimal:
        """What the page job cost, uncertain calls at their worst case."""
        return sum((attempt.usd for attempt in self.attempts), Decimal(0))

    @property
    def uncertain_usd(self) -> Decimal:
        """The part of ``usd`` that may not have been billed."""
        return sum((item.usd for item in self.attempts if not item.is_certain), Decimal(0))

    @property
    def error_classes(self) -> tuple[str, ...]:
        """The classes of its failed attempts and of its present failure, each once, in order."""
        seen = [item.failure_class for item in self.attempts if item.failure_class]
        seen += [self.failure_class] if self.failure_class else []
        return tuple(dict.fromkeys(seen))


def page_reports(
    connection: Connection, site: str, topic_keys: Sequence[str] | None = None
) -> list[PageReport]:
    """The current page job of each topic, in table order; ``topic_keys``: only these.

    Of topics that left the table only those that are asked for, or whose page is still live.
    """
    query = _current_jobs(site)
    if topic_keys is None:
        in_table = topics.c.status != TopicStatus.RETIRED
        query = query.where(in_table | pages.c.published_revision.is_not(None))
    else:
        query = query.where(topics.c.topic_key.in_(list(topic_keys)))
    rows = connection.execute(query).mappings().all()
    by_job = _attempts_by_job(connection, [row["page_job_id"] for row in rows])
    return [_page_report(row, by_job[row["page_job_id"]]) for row in rows]


def _current_jobs(site: str) -> Select[Any]:
    return (
        select(
            page_jobs,
            topics.c.name,
            pages.c.path,
            pages.c.published_revision,
            pages.c.published_title,
            pages.c.remote_id,
            pages.c.remote_url,
            pages.c.verified_at,
            pages.c.site_change,
            pages.c.site_change_reason,
            pages.c.site_change_found_at,
            pages.c.withdrawn_at,
            topics.c.status.label("topic_status"),
        )
        .join(topics, topics.c.current_job_id == page_jobs.c.page_job_id)
        .outerjoin(pages, pages.c.page_id == page_jobs.c.page_id)
        .where(topics.c.site == site)
        .order_by(topics.c.row_number, topics.c.topic_key)
    )


def _attempts_by_job(
    connection: Connection, page_job_ids: Sequence[str]
) -> defaultdict[str, list[AttemptReport]]:
    by_job: defaultdict[str, list[AttemptReport]] = defaultdict(list)
    for row in attempt_rows.of_jobs(connection, page_job_ids):
        by_job[row.page_job_id].append(
            AttemptReport(
                kind=AttemptKind(row.kind),
                step=row.step,
                number=row.number,
                state=row.state,
                failure_class=row.failure_class,
                failure_message=row.failure_message,
                model=row.model,
                input_tokens=row.input_tokens or 0,
                cached_tokens=row.cached_tokens or 0,
                output_tokens=row.output_tokens or 0,
                usd=row.usd,
                is_certain=row.spend_state not in (SpendState.UNCERTAIN, SpendState.RESERVED),
                latency_s=row.latency_s,
                started_at=row.started_at,
                request_id=row.request_id,
                worker=row.worker,
                revision=row.revision,
                recovered=row.recovered,
            )
        )
    return by_job


def _page_report(row: RowMapping, own_attempts: Sequence[AttemptReport]) -> PageReport:
    return PageReport(
        topic_key=row["topic_key"],
        name=row["name"],
        page_job_id=row["page_job_id"],
        page_id=row["page_id"],
        path=row["path"],
        state=PageJobState(row["state"]),
        cancel_requested=row["cancel_requested_at"] is not None,
        failure_class=FailureClass(row["failure_class"]) if row["failure_class"] else None,
        failure_message=row["failure_message"],
        next_attempt_at=row["next_attempt_at"],
        deadline_at=row["deadline_at"],
        generation_version=row["generation_version"],
        input_hash=row["input_hash"],
        owner=row["owner"],
        revision=row["revision"],
        published_revision=row["published_revision"],
        published_title=row["published_title"],
        remote_id=row["remote_id"],
        remote_url=row["remote_url"],
        verified_at=row["verified_at"],
        topic_is_retired=row["topic_status"] == TopicStatus.RETIRED,
        site_change=SiteChange(row["site_change"]) if row["site_change"] else None,
        site_change_reason=row["site_change_reason"],
        site_change_found_at=row["site_change_found_at"],
        withdrawn_at=row["withdrawn_at"],
        attempts=tuple(own_attempts),
    )


def find_topic(
    connection: Connection, page: str, site: str | None = None
) -> tuple[str, str] | None:
    """The (site, topic key) that ``page`` means: a topic id, page id, page job id, path or URL.

    Without ``site`` raises ConfigurationError when it means a page of several sites.
    """
    is_key = topics.c.topic_key == page
    query = (
        select(topics.c.site, topics.c.topic_key, is_key.label("is_key"))
        .distinct()
        .outerjoin(pages, pages.c.page_id == topics.c.page_id)
        .outerjoin(
            page_jobs,
            and_(page_jobs.c.site == topics.c.site, page_jobs.c.topic_key == topics.c.topic_key),
        )
        .where(
            is_key
            | (pages.c.page_id == page)
            | (pages.c.path == page)
            | (pages.c.remote_url == page)
            | (page_jobs.c.page_job_id == page)
        )
        .order_by(is_key.desc(), topics.c.site, topics.c.topic_key)
    )
    if site is not None:
        query = query.where(topics.c.site == site)
    found = connection.execute(query).all()
    if not found:
        return None
    alike = [row.site for row in found if row.is_key == found[0].is_key]
    if len(set(alike)) > 1:
        raise ConfigurationError(
            f"{page!r} is a page of several sites; choose one with --site: "
            + ", ".join(dict.fromkeys(alike))
        )
    return found[0].site, found[0].topic_key


def page_of_site(connection: Connection, site: str, page: str) -> PageReport:
    """The current page job of what ``page`` means on ``site``. Raises UnknownPage."""
    found = find_topic(connection, page, site)
    if found is None:
        raise UnknownPage(f"site {site!r} has no page {page!r}; give its topic id, path or URL")
    (report,) = page_reports(connection, site, [found[1]])
    return report


def history(connection: Connection, page_job_id: str) -> list[RowMapping]:
    """All transitions of a page job, oldest first."""
    return list(
        connection.execute(
            select(transitions)
            .where(transitions.c.page_job_id == page_job_id)
            .order_by(transitions.c.sequence)
        ).mappings()
    )


def page_effects(connection: Connection, page_id: str) -> list[RowMapping]:
    """All effects of a page, oldest first."""
    return list(
        connection.execute(
            select(effects).where(effects.c.page_id == page_id).order_by(effects.c.created_at)
        ).mappings()
    )


def earlier_jobs(connection: Connection, site: str, topic_key: str) -> list[RowMapping]:
    """All page jobs of a topic, newest first."""
    return list(
        connection.execute(
            select(page_jobs)
            .where(page_jobs.c.site == site, page_jobs.c.topic_key == topic_key)
            .order_by(page_jobs.c.created_at.desc())
        ).mappings()
    )


def published_jobs(
    connection: Connection, site: str, topic_keys: Sequence[str] | None
) -> list[tuple[str, str]]:
    """Topic key and page job of what is published and wanted; ``topic_keys``: only these."""
    query = (
        select(topics.c.topic_key, page_jobs.c.page_job_id)
        .join(page_jobs, page_jobs.c.page_job_id == topics.c.current_job_id)
        .where(topics.c.site == site, page_jobs.c.state == PageJobState.PUBLISHED)
        .order_by(topics.c.row_number, topics.c.topic_key)
    )
    if topic_keys is not None:
        query = query.where(topics.c.topic_key.in_(topic_keys))
    return [(row.topic_key, row.page_job_id) for row in connection.execute(query)]
