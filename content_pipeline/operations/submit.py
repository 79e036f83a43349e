"""Submit: make the ledger want a page for every row of a topic table.

What belongs here: from raw rows to one intake. Asking again for the same costs nothing; a row that
cannot become a page is one failed page with a reason.
"""

from collections.abc import Collection, Iterable, Mapping

from content_pipeline.core.topics import RejectedRow, Topic, parse_row
from content_pipeline.ledger import input_fixes, intake
from content_pipeline.ledger.intake import Intake, Request
from content_pipeline.operations.corrections import Corrections
from content_pipeline.operations.runtime import SiteRuntime


def submit(
    runtime: SiteRuntime,
    rows: Iterable[Mapping[str, str]],
    *,
    requested_by: str,
    only: Collection[str] | None = None,
) -> Intake:
    """Take in ``rows`` (column → text; the columns the site uses must be there).

    What a person corrected beside the table holds until the table itself changes there. ``only``:
    the topics that are asked for. Whoever tries a new prompt on one page does not thereby want,
    and pay for, all the others.
    """
    site = runtime.site
    with runtime.ledger.begin() as connection:
        corrections = Corrections(input_fixes.in_force(connection, site.site), site.topics.id)
    topics: list[tuple[int, Topic]] = []
    rejected: list[RejectedRow] = []
    first_row_of: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        parsed = parse_row(number, corrections.of(row), site=site, columns=runtime.columns)
        earlier = None if parsed.key is None else first_row_of.setdefault(parsed.key, number)
        if earlier not in (None, number):
            rejected.append(_repeated(number, parsed.key or "", earlier))
        elif isinstance(parsed, Topic):
            topics.append((number, parsed))
        else:
            rejected.append(parsed)
    request = Request(
        site=site,
        generation_version=runtime.generation_version,
        model_route=runtime.model_route,
        requested_by=requested_by,
    )
    with runtime.ledger.begin() as connection:
        input_fixes.retire(connection, site.site, corrections.outdated)
        return intake.take_in(connection, request, topics, rejected, only)


def _repeated(number: int, key: str, earlier: int | None) -> RejectedRow:
    return RejectedRow(
        row_number=number,
        key=None,
        message=(
            f"row {number} repeats the id {key!r} of row {earlier}, which is the one that is used; "
            "give it an id of its own or remove it"
        ),
    )
