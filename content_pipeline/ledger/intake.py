"""Intake: making the ledger want what the topic table says, all of it or nothing.

What belongs here: one transaction that turns parsed rows into topics, pages and page jobs. Asking
again for what is already wanted writes nothing. A row that cannot become a page becomes a failed
page job with the reason, so that it is seen wherever pages are seen.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, func, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.core.topics import RejectedRow, Topic
from content_pipeline.ledger import known_topics, planner, row_numbers, taken_tables, wishes
from content_pipeline.ledger.refused import (
    Refused,
    note_rejected_rows,
    refusal_of,
    refused_row,
)
from content_pipeline.ledger.retirement import count_others, retire_absent
from content_pipeline.ledger.rollbacks import cause_of_refusal
from content_pipeline.ledger.schema import TopicStatus, sites, topics
from content_pipeline.ledger.wishes import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What came of one intake."""

    topic_keys: tuple[str, ...]
    """All topics of the table that the ledger knows by key, refused ones included."""
    wanted: int
    """Page jobs that did not exist before or are wanted again."""
    unchanged: int
    rejected: int
    refused: tuple[str, ...] = ()
    """Topics that cannot become a page, the known ones too."""
    retired: tuple[str, ...] = ()
    """Topics that left the table."""
    rolled_back: str | None = None
    """Why nothing new is wanted: the way of making pages was rolled back, and who said so."""
    changed: int = 0
    """As ``wanted``, with the page jobs that say why a topic is refused."""
    seen: int = 0
    """Topics that were in the table before."""


def joined(intakes: Iterable[Intake]) -> Intake:
    """What came of several intakes of one site, as of one."""
    topic_keys: list[str] = []
    refused: list[str] = []
    retired: list[str] = []
    wanted = unchanged = rejected = changed = seen = 0
    rolled_back = None
    for each in intakes:
        topic_keys += each.topic_keys
        refused += each.refused
        retired += each.retired
        wanted += each.wanted
        unchanged += each.unchanged
        rejected += each.rejected
        changed += each.changed
        seen += each.seen
        rolled_back = each.rolled_back
    return Intake(
        topic_keys=tuple(topic_keys),
        wanted=wanted,
        unchanged=unchanged,
        rejected=rejected,
        refused=tuple(refused),
        retired=tuple(retired),
        rolled_back=rolled_back,
        changed=changed,
        seen=seen,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some rows of a table, read; no topic is in two parts of it."""

    topics: Sequence[tuple[int, Topic]]
    """With their row numbers."""
    rejected: Sequence[RejectedRow] = ()
    refused: Sequence[Refused] = ()
    """Topics that were refused at an earlier intake of these very rows."""


def take_in(connection: Connection, request: Request, parts: Iterable[Part]) -> Intake:
    """Make the ledger want a whole table, a part of it in memory at a time.

    Which one it was is forgotten: who knows remembers it (``taken_tables``). Raises
    TopicTableError, as the reading of ``parts`` may as well: the caller's transaction is then
    rolled back, and nothing was changed.
    """
    begin(connection, request)
    site, worker = request.site, request.requested_by
    taken_tables.forget(connection, site.site)
    before = count_others(connection, site.site)
    nameless: list[RejectedRow] = []

    def each() -> Iterator[Intake]:
        for part in parts:
            nameless.extend(row for row in part.rejected if row.key is None)
            yield _take_part(connection, request, part)

    took = joined(each())
    note_rejected_rows(connection, site.site, nameless)
    retired: tuple[str, ...] = ()
    if took.seen < before:  # else to say which are there takes 200 MB for 1,000,000
        present = took.topic_keys
        retired = retire_absent(
            connection, site.site, site.topics, present, of=before, worker=worker
        )
    planner.learn_of(connection, took.changed)
    rolled_back = cause_of_refusal(connection, site.site, request.generation_version)
    return replace(
        took, rejected=took.rejected + len(nameless), retired=retired, rolled_back=rolled_back
    )


def take_in_some(
    connection: Connection, request: Request, part: Part, only: Container[str]
) -> Intake:
    """Make the ledger want the topics of ``only``; all of ``part`` decide to whom a path belongs.

    No topic is missed that is not in it. The topics may be of two tables afterwards.
    """
    begin(connection, request)
    taken_tables.forget(connection, request.site.site)
    took = _take_part(connection, request, part, only)
    planner.learn_of(connection, took.changed)
    return took


def take_in_kept(connection: Connection, request: Request, parts: Iterable[Part]) -> Intake:
    """Make the ledger want some topics of the table that all of them are of, by what it holds."""
    begin(connection, request)
    took = joined(_take_part(connection, request, part) for part in parts)
    planner.learn_of(connection, took.changed)
    return took


def begin(connection: Connection, request: Request) -> None:
    """Keep other intakes of the site out, and keep what it declares of itself."""
    site = request.site
    lock(connection, site.site)
    declared = {
        "title": site.title,
        "base_url": site.base_url,
        "owner": site.owner,
        "model_route": request.model_route,
        "page_deadline_s": site.lane.page_deadline_s,
    }
    statement = upsert(sites).values(site=site.site, **declared)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[sites.c.site],
            set_=declared,
            where=or_(*(sites.c[name] != value for name, value in declared.items())),
        )
    )


def lock(connection: Connection, site: str) -> None:
    """Until the transaction ends, nobody else changes what the site's topics want."""
    connection.execute(
        select(func.pg_advisory_xact_lock(func.hashtextextended(f"intake:{site}", 0)))
    )


def _take_part(
    connection: Connection, request: Request, part: Part, only: Container[str] | None = None
) -> Intake:
    site = request.site.site
    refused = [*map(refused_row, _with_a_key(part.rejected)), *part.refused]
    keys = [topic.key for _, topic in part.topics] + [item.key for item in refused]
    known = known_topics.known(connection, site, keys)
    owners = known_topics.path_owners(connection, site, [t.path for _, t in part.topics])
    accepted: list[tuple[int, Topic]] = []
    for number, topic in part.topics:
        before = known.get(topic.key)
        failure = refusal_of(topic, before["path"] if before else None, owners)
        if failure is None:
            owners[topic.path] = topic.key
            accepted.append((number, topic))
        else:
            refused.append(
                Refused(key=topic.key, row_number=number, name=topic.name, failure=failure)
            )
    if only is not None:
        accepted = [(number, topic) for number, topic in accepted if topic.key in only]
        refused = [item for item in refused if item.key in only]
    rolled_back = cause_of_refusal(connection, site, request.generation_version)
    wanted = 0 if rolled_back else wishes.want(connection, request, accepted, known)
    new_refusals = wishes.refuse(connection, request, refused, known)
    numbers = {topic.key: number for number, topic in accepted}
    numbers |= {item.key: item.row_number for item in refused}
    row_numbers.keep(connection, site, numbers, known)
    return Intake(
        topic_keys=tuple(numbers),
        wanted=wanted,
        unchanged=len(accepted) - wanted,
        rejected=len(refused),
        refused=tuple(item.key for item in refused),
        rolled_back=rolled_back,
        changed=wanted + new_refusals,
        seen=sum(known[key]["status"] != TopicStatus.RETIRED for key in numbers if key in known),
    )


def _with_a_key(rejected: Sequence[RejectedRow]) -> list[RejectedRow]:
    return [row for row in rejected if row.key is not None]


def topic_keys(connection: Connection, site: str) -> list[str]:
    """The keys of all topics in a site's table, in its order."""
    return list(
        connection.execute(
            select(topics.c.topic_key)
            .where(topics.c.site == site, topics.c.status != TopicStatus.RETIRED)
            .order_by(topics.c.row_number, topics.c.topic_key)
        ).scalars()
    )
