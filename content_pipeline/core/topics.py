"""From one raw row of the topic table to a topic, or to the reason why it cannot become a page.

What belongs here: pure checks of a single row and of ids and paths within one table. A bad row is
one failed page with a message; it never fails the table. Rows are text from strangers: bounded,
free of control characters, and unable to choose anything but their own facts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from slugify import slugify

from content_pipeline.core.identity import input_hash
from content_pipeline.core.site import PATH_FIELD, SiteSettings

MAX_CELL_BYTES = 20_000
"""A fact is a phrase; 20 kB is a long text and still a bounded prompt. 10 MB cells do occur."""

MAX_TOPIC_KEY_LENGTH = 100
TOPIC_KEY = re.compile(r"[A-Za-z0-9._-]+")
"""Also the Dagster partition key: commas break the UI's selection, slashes break paths."""

UNREADABLE = "\N{REPLACEMENT CHARACTER}"
"""What the table reader leaves for bytes that are not UTF-8."""

MALFORMED = "\ufdd0"
"""What the table reader puts before the cells of a row with more fields than the header, and
behind its first cell, which alone cannot have moved and may still be the id."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One usable row."""

    key: str
    name: str
    path: str
    columns: Mapping[str, str] = field(repr=False)
    """Column → value, for exactly the columns that the site uses."""
    input_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRow:
    """One row that cannot become a page. ``key`` is None when not even its id is usable."""

    row_number: int
    """1-based among the data rows, as a spreadsheet counts them below the header."""
    key: str | None
    message: str


_MISPLACED = "is misplaced: the row has more fields than the header; quote values with commas"


def path_columns(template: str) -> frozenset[str]:
    """The columns that a path template uses."""
    return frozenset(PATH_FIELD.findall(template))


def used_columns(site: SiteSettings, template_columns: frozenset[str]) -> frozenset[str]:
    """All columns that enter a page: the only ones that are stored or can change it."""
    return (
        template_columns
        | frozenset(site.article.must_state)
        | path_columns(site.topics.path)
        | {site.topics.name}
    )


def key_in(row: Mapping[str, str], site: SiteSettings) -> str:
    """The id that ``row`` states, usable or not."""
    return row[site.topics.id].removesuffix(MALFORMED)


def parse_row(
    row_number: int, row: Mapping[str, str], *, site: SiteSettings, columns: frozenset[str]
) -> Topic | RejectedRow:
    """The topic in ``row``, or why there is none. ``columns``: those of ``used_columns``."""
    raw_key = key_in(row, site)
    problem = _key_problem(raw_key)
    if problem:
        return RejectedRow(
            row_number=row_number,
            key=None,
            message=f"row {row_number}: column {site.topics.id!r} {problem}",
        )
    values = {column: row[column].strip() for column in sorted(columns)}
    for column, value in values.items():
        problem = _cell_problem(value, required=column in site.article.must_state)
        if problem is None and column == site.topics.name and not value:
            problem = "is empty, and it names the page"
        if problem:
            message = f"row {row_number} ({raw_key}): column {column!r} {problem}"
            return RejectedRow(row_number=row_number, key=raw_key, message=message)
    path = page_path(site.topics.path, values)
    if path is None:
        message = (
            f"row {row_number} ({raw_key}): the path {site.topics.path!r} has an empty part; "
            "give the row values that letters or digits can be made from"
        )
        return RejectedRow(row_number=row_number, key=raw_key, message=message)
    return Topic(
        key=raw_key,
        name=values[site.topics.name],
        path=path,
        columns=values,
        input_hash=input_hash(path, values),
    )


def page_path(template: str, columns: Mapping[str, str]) -> str | None:
    """The canonical path of a row, or None when one of its parts comes out empty."""
    slugs = {name: slugify(columns[name], max_length=100) for name in path_columns(template)}
    if not all(slugs.values()):
        return None
    return PATH_FIELD.sub(lambda match: slugs[match.group(1)], template)


def _key_problem(key: str) -> str | None:
    shown = ascii(key[:40])
    if MALFORMED in key:
        return _MISPLACED
    if not key:
        return "is empty; every topic needs a stable id"
    if len(key) > MAX_TOPIC_KEY_LENGTH:
        return f"holds an id of {len(key)} characters; at most {MAX_TOPIC_KEY_LENGTH} are allowed"
    if not TOPIC_KEY.fullmatch(key):
        return f"holds the id {shown}; only letters, digits, '.', '_' and '-' are allowed"
    if key in (".", ".."):
        return f"holds the id {shown}, which is a folder's name"
    return None


def _cell_problem(value: str, *, required: bool) -> str | None:
    size = len(value.encode(errors="surrogatepass"))
    if size > MAX_CELL_BYTES:
        return f"holds {size:,} bytes; at most {MAX_CELL_BYTES:,} can enter a prompt"
    if MALFORMED in value:
        return _MISPLACED
    if UNREADABLE in value:
        return "is not UTF-8; save the table as UTF-8"
    control = _CONTROL.search(value)
    if control:
        return f"holds the control character {control.group()!a}; remove it"
    if required and not value:
        return "is empty, and the page must state it"
    return None
