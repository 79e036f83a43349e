"""Submit: make the ledger want a page for every row of a topic table.

What belongs here: from raw rows to one intake. Asking again for the same costs nothing; a row that
cannot become a page is one failed page with a reason.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from content_pipeline.core.topics import RejectedRow, Topic, key_in, parse_row
from content_pipeline.ledger import input_fixes, intake, regenerations
from content_pipeline.ledger.input_fixes import InputFix
from content_pipeline.ledger.intake import Intake, Request
from content_pipeline.operations.corrections import Corrections
from content_pipeline.operations.runtime import SiteAsking


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A topic table as its site reads it."""

    topics: tuple[tuple[int, Topic], ...]
    """With their row numbers."""
    rejected: tuple[RejectedRow, ...]
    outdated: tuple[InputFix, ...]
    """Corrections that the table itself has overtaken."""


def submit(
    runtime: SiteAsking,
    rows: Iterable[Mapping[str, str]],
    *,
    requested_by: str,
    only: Container[str] | None = None,
    alone: bool = False,
) -> Intake:
    """Take in ``rows`` (column → text; the columns the site uses must be there).

    What a person corrected beside the table holds until the table itself changes there. ``only``:
    the topics that are asked for. Whoever tries a new prompt on one page does not thereby want,
    and pay for, all the others. ``alone``: no other row is looked at, so to whom a path belongs
    is for the ledger to say: of two new topics with one path, the one that is asked for first.
    """
    table = read_table(runtime, rows, of=only if alone else None)
    with runtime.ledger.begin() as connection:
        return want(connection, runtime, table, requested_by=requested_by, only=only)


def read_table(
    runtime: SiteAsking, rows: Iterable[Mapping[str, str]], of: Container[str] | None = None
) -> Table:
    """``rows`` with the corrections in force, each as a topic or as the reason why it is none.

    ``of``: only the rows of these topics, under the numbers that they have in the whole table.
    """
    site = runtime.site
    with runtime.ledger.begin() as connection:
        corrections = Corrections(input_fixes.in_force(connection, site.site), site.topics.id)
    topics: list[tuple[int, Topic]] = []
    rejected: list[RejectedRow] = []
    first_row_of: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        if of is not None and key_in(row, site) not in of:
            continue
        parsed = parse_row(number, corrections.of(row), site=site, columns=runtime.columns)
        earlier = None if parsed.key is None else first_row_of.setdefault(parsed.key, number)
        if earlier not in (None, number):
            rejected.append(_repeated(number, parsed.key or "", earlier))
        elif isinstance(parsed, Topic):
            topics.append((number, parsed))
        else:
            rejected.append(parsed)
    return Table(
        topics=tuple(topics), rejected=tuple(rejected), outdated=tuple(corrections.outdated)
    )


def want(
    connection: Connection,
    runtime: SiteAsking,
    table: Table,
    *,
    requested_by: str,
    only: Container[str] | None = None,
) -> Intake:
    """Take ``table`` in, in the caller's transaction; a whole one also wants stale pages anew."""
    site = runtime.site
    request = Request(
        site=site,
        generation_version=runtime.generation_version,
        model_route=runtime.model_route,
        requested_by=requested_by,
    )
    input_fixes.retire(connection, site.site, table.outdated)
    taken = intake.take_in(connection, request, table.topics, table.rejected, only)
    days = site.schedule.stale_after_days
    if only is not None or days is None or taken.rolled_back:
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
