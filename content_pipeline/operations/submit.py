"""Submit: make the ledger want a page for every row of a topic table.

What belongs here: from raw rows to one intake, and going without the rows where the ledger holds
them all already. Asking again for the same costs nothing; a row that cannot become a page is one
failed page with a reason.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice

from sqlalchemy import Connection

from content_pipeline.core.buckets import TopicsOf
from content_pipeline.core.errors import TopicTableError
from content_pipeline.core.identity import digest
from content_pipeline.core.ports import TopicTable
from content_pipeline.core.topics import RejectedRow, Topic, key_in, parse_row
from content_pipeline.ledger import input_fixes, intake, kept_rows, regenerations, taken_tables
from content_pipeline.ledger.input_fixes import InputFix
from content_pipeline.ledger.intake import Intake, Part
from content_pipeline.ledger.wishes import Request
from content_pipeline.operations.corrections import Corrections
from content_pipeline.operations.runtime import SiteAsking

PART = 2_000
"""Rows of a whole table that are in memory at once, read: some 3 MB, with what the ledger holds of
them."""

Rows = Iterable[Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A topic table as its site reads it."""

    topics: tuple[tuple[int, Topic], ...]
    """With their row numbers."""
    rejected: tuple[RejectedRow, ...]
    outdated: tuple[InputFix, ...]
    """Corrections that the table itself has overtaken."""
    identity: str | None = None
    """Of all its rows, as they are with the corrections; None where none is known."""


def submit(
    runtime: SiteAsking,
    rows: Rows,
    *,
    requested_by: str,
    only: Collection[str] | TopicsOf | None = None,
    alone: bool = False,
) -> Intake:
    """Take in ``rows`` (column → text; the columns the site uses must be there).

    What a person corrected beside the table holds until the table itself changes there. ``only``:
    the topics that are asked for. Whoever tries a new prompt on one page does not thereby want,
    and pay for, all the others. ``alone``: no other row is looked at, so to whom a path belongs
    is for the ledger to say: of two new topics with one path, the one that is asked for first.

    A ``TopicTable`` that was the last to be taken in as a whole is not read for some topics: what
    it says of them is in the ledger. All the rest is done as ever, so a new prompt is noticed. A
    whole one is always read, which also puts right whatever else became of its topics. Raises
    TopicTableError, also for a table that is changed while it is read; nothing was changed then.
    """
    request = request_of(runtime, requested_by)
    if only is None:
        return _take_in_whole(runtime, request, rows)
    identity = _identity(rows)
    with runtime.ledger.begin() as connection:
        taken = _take_in_kept(connection, request, identity, only)
    if taken is not None:
        return taken
    table = read_table(runtime, rows, of=only if alone else None)
    with runtime.ledger.begin() as connection:
        # Somebody may have taken it in as a whole meanwhile, which is not to be forgotten then.
        taken = _take_in_kept(connection, request, identity, only)
        if taken is None:
            taken = want(connection, runtime, table, requested_by=requested_by, only=only)
    return taken


def _take_in_whole(runtime: SiteAsking, request: Request, rows: Rows) -> Intake:
    site, identity = runtime.site.site, _identity(rows)
    begun = _begun(rows)
    with runtime.ledger.begin() as connection:
        intake.lock(connection, site)
        corrections = _corrections(connection, runtime)
        parts = _parts(_parsed(runtime, begun, corrections))
        taken = _want_all(connection, runtime, request, parts)
        input_fixes.retire(connection, site, corrections.outdated)
        _refuse_changed(rows, identity)
        _remember(connection, site, taken, _with(corrections, identity))
    return taken


def _remember(connection: Connection, site: str, taken: Intake, identity: str | None) -> None:
    """The table that was just taken in as a whole, unless that left topics as they were."""
    if identity is not None and taken.rolled_back is None:
        taken_tables.remember(connection, site, identity)


def _identity(rows: Rows) -> str | None:
    return rows.identity() if isinstance(rows, TopicTable) else None


def _refuse_changed(rows: Rows, identity: str | None) -> None:
    """Raise TopicTableError when the table is not what it was before its rows were read."""
    if _identity(rows) != identity:
        raise TopicTableError(
            "the topic table was changed while it was read; nothing was taken in. Run again once "
            "it is written"
        )


def _begun(rows: Rows) -> Iterator[Mapping[str, str]]:
    """``rows``, begun to be read: a query may take minutes to its first, in no transaction."""
    each = iter(rows)
    return chain(list(islice(each, 1)), each)


def _take_in_kept(
    connection: Connection,
    request: Request,
    identity: str | None,
    only: Collection[str] | TopicsOf,
) -> Intake | None:
    """Take in the topics of ``only`` from the ledger; None when it may not hold all of them so.

    It is compared under the intake lock, so that no other intake comes between.
    """
    site = request.site.site
    if identity is None:
        return None
    intake.lock(connection, site)
    corrections = Corrections(input_fixes.in_force(connection, site), request.site.topics.id)
    if taken_tables.last(connection, site) != _with(corrections, identity):
        return None
    parts = kept_rows.of_topics(connection, site, only)
    return intake.take_in_kept(connection, request, parts)


def _with(corrections: Corrections, identity: str | None) -> str | None:
    """Of a table with what people corrected beside it."""
    if identity is None:
        return None
    return digest("table as it is taken in", identity, corrections.identity())


def request_of(runtime: SiteAsking, requested_by: str) -> Request:
    """What an intake for the site is to know."""
    return Request(
        site=runtime.site,
        generation_version=runtime.generation_version,
        model_route=runtime.model_route,
        requested_by=requested_by,
    )


def _corrections(connection: Connection, runtime: SiteAsking) -> Corrections:
    site = runtime.site
    return Corrections(input_fixes.in_force(connection, site.site), site.topics.id)


def read_table(runtime: SiteAsking, rows: Rows, of: Container[str] | None = None) -> Table:
    """``rows`` with the corrections in force, each as a topic or as the reason why it is none.

    ``of``: only the rows of these topics, under the numbers that they have in the whole table.
    Raises TopicTableError.
    """
    identity = _identity(rows)
    with runtime.ledger.begin() as connection:
        corrections = _corrections(connection, runtime)
    topics: list[tuple[int, Topic]] = []
    rejected: list[RejectedRow] = []
    for part in _parts(_parsed(runtime, rows, corrections, of)):
        topics += part.topics
        rejected += part.rejected
    _refuse_changed(rows, identity)
    return Table(
        topics=tuple(topics),
        rejected=tuple(rejected),
        outdated=tuple(corrections.outdated),
        identity=_with(corrections, identity) if of is None else None,
    )


def _parsed(
    runtime: SiteAsking, rows: Rows, corrections: Corrections, of: Container[str] | None = None
) -> Iterator[tuple[int, Topic] | RejectedRow]:
    site = runtime.site
    first_row_of: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        if of is not None and key_in(row, site) not in of:
            continue
        parsed = parse_row(number, corrections.of(row), site=site, columns=runtime.columns)
        earlier = None if parsed.key is None else first_row_of.setdefault(parsed.key, number)
        if earlier not in (None, number):
            yield _repeated(number, parsed.key or "", earlier)
        elif isinstance(parsed, Topic):
            yield number, parsed
        else:
            yield parsed


def _parts(parsed: Iterable[tuple[int, Topic] | RejectedRow]) -> Iterator[Part]:
    """A whole table in parts of at most PART rows; one at least, for a table without rows."""
    topics: list[tuple[int, Topic]] = []
    rejected: list[RejectedRow] = []
    for each in parsed:
        if isinstance(each, RejectedRow):
            rejected.append(each)
        else:
            topics.append(each)
        if len(topics) + len(rejected) == PART:
            yield Part(topics=topics, rejected=rejected)
            topics, rejected = [], []
    yield Part(topics=topics, rejected=rejected)


def want(
    connection: Connection,
    runtime: SiteAsking,
    table: Table,
    *,
    requested_by: str,
    only: Container[str] | None = None,
) -> Intake:
    """Take ``table`` in, in the caller's transaction; a whole one also wants stale pages anew."""
    request = request_of(runtime, requested_by)
    input_fixes.retire(connection, runtime.site.site, table.outdated)
    part = Part(topics=table.topics, rejected=table.rejected)
    if only is not None:
        return intake.take_in_some(connection, request, part, only)
    taken = _want_all(connection, runtime, request, [part])
    _remember(connection, runtime.site.site, taken, table.identity)
    return taken


def _want_all(
    connection: Connection, runtime: SiteAsking, request: Request, parts: Iterable[Part]
) -> Intake:
    site, requested_by = runtime.site, request.requested_by
    taken = intake.take_in(connection, request, parts)
    days = site.schedule.stale_after_days
    if days is None or taken.rolled_back:
        return taken
    stale = regenerations.stale(connection, site.site, runtime.generation_version, days)
    why = f"made anew: its draft is older than schedule.stale_after_days ({days:g})"
    for page_job_id in stale:
        regenerations.begin_anew(connection, page_job_id, why=why, requested_by=requested_by)
    return replace(taken, wanted=taken.wanted + len(stale), unchanged=taken.unchanged - len(stale))


def _repeated(number: int, key: str, earlier: int | None) -> RejectedRow:
    return RejectedRow(
        row_number=number,
        key=None,
        message=(
            f"row {number} repeats the id {key!r} of row {earlier}, which is the one that is used; "
            "give it an id of its own or remove it"
        ),
    )
