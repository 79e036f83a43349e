"""Corrections: what a person corrected beside the topic table, laid over its rows.

What belongs here: making a correction and applying those in force to rows as they are read. The
table stays as it is, and wins again as soon as it says something new in that place.
"""

from collections.abc import Iterable, Mapping

from content_pipeline.core.errors import ConfigurationError, UnknownPage
from content_pipeline.core.identity import digest
from content_pipeline.core.site import SiteSettings
from content_pipeline.core.topics import RejectedRow, parse_row
from content_pipeline.ledger import input_fixes, reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.input_fixes import InputFix


class Corrections:
    """The fixes in force for a site's rows, and which of them the rows have outdated."""

    def __init__(self, fixes: Mapping[str, Mapping[str, InputFix]], id_column: str) -> None:
        self._all = [fix for of_topic in fixes.values() for fix in of_topic.values()]
        self._fixes = dict(fixes)
        self._id_column = id_column
        self.outdated: list[InputFix] = []

    def of(self, row: Mapping[str, str]) -> Mapping[str, str]:
        """``row`` with its fixes; only the first row of an id is that topic's."""
        fixes = self._fixes.pop(row[self._id_column], None)
        if not fixes:
            return row
        corrected = dict(row)
        for column, fix in fixes.items():
            if column not in row:
                continue  # the site does not use it at present
            if row[column].strip() == fix.table_value:
                corrected[column] = fix.value
            else:
                self.outdated.append(fix)
        return corrected

    def identity(self) -> str:
        """Equal for corrections that make the same of the same rows; without outdated ones."""
        fixes = [fix for fix in self._all if fix not in self.outdated]
        return digest(
            "corrections",
            sorted([fix.topic_key, fix.column, fix.table_value, fix.value] for fix in fixes),
        )


def fix_input(
    ledger: Ledger,
    site: SiteSettings,
    columns: frozenset[str],
    rows: Iterable[Mapping[str, str]],
    page: str,
    values: Mapping[str, str],
    *,
    cause: str,
    by: str,
) -> str:
    """Correct ``values`` (column → text) of ``page``; what happens next, in a sentence.

    ``columns``: those that the site uses; ``rows``: the table as it is now. Raises
    ConfigurationError for a column that cannot be corrected, UnknownPage without such a row.
    """
    _refuse_other_columns(site, columns, values)
    with ledger.begin() as connection:
        topic_key = reports.page_of_site(connection, site.site, page).topic_key
        fixes = input_fixes.in_force(connection, site.site)
    number, row = _row_of(rows, site, topic_key)
    before = Corrections(fixes, site.topics.id).of(row)
    changed = {
        column: (row[column].strip(), value.strip())
        for column, value in values.items()
        if before[column].strip() != value.strip()
    }
    if not changed:
        return f"{topic_key} is made from just that already: there is nothing to correct"
    with ledger.begin() as connection:
        input_fixes.add(connection, site.site, topic_key, changed, cause=cause, fixed_by=by)
    corrected = {**before, **{column: value for column, (_, value) in changed.items()}}
    parsed = parse_row(number, corrected, site=site, columns=columns)
    told = f"{topic_key} is corrected in {', '.join(changed)} until the table itself changes there"
    if isinstance(parsed, RejectedRow):
        return f"{told}; its row is still refused: {parsed.message}"
    return f"{told}; the next run makes the page from it"


def _refuse_other_columns(
    site: SiteSettings, columns: frozenset[str], values: Mapping[str, str]
) -> None:
    for column in values:
        if column == site.topics.id:
            raise ConfigurationError(
                f"{column!r} is the topic's id: a row with another id is another page; correct it "
                "in the table"
            )
        if column not in columns:
            raise ConfigurationError(
                f"site {site.site!r} makes its pages without a column {column!r}; it uses "
                f"{', '.join(sorted(columns))}"
            )


def _row_of(
    rows: Iterable[Mapping[str, str]], site: SiteSettings, topic_key: str
) -> tuple[int, Mapping[str, str]]:
    """The topic's row and its number. Raises UnknownPage."""
    for number, row in enumerate(rows, start=1):
        if row[site.topics.id] == topic_key:
            return number, row
    raise UnknownPage(
        f"the topic table of site {site.site!r} has no row {topic_key!r} any more, so there is "
        "nothing to correct"
    )
