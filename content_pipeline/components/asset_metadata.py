"""What is known of a site's assets before any is made: where each lies, and its columns.

What belongs here: metadata of definitions under the names that Dagster itself knows, so that its
catalog can search and show them. What a materialization brings is in the module of each asset.
"""

from collections.abc import Sequence

import dagster as dg

from content_pipeline.components.page_metadata import Metadata
from content_pipeline.site_files import Site

URI = "dagster/uri"
COLUMN_SCHEMA = "dagster/column_schema"
ROW_COUNT = "dagster/row_count"

COST_DAYS: tuple[tuple[str, str], ...] = (
    ("day", "string"),
    ("usd", "float"),
    ("usd_not_ok", "float"),
    ("published", "int"),
)
"""The columns of the cost report's table of days: name and Dagster's name of the type."""

HEALTH_FIGURES: tuple[tuple[str, str], ...] = (
    ("due", "int"),
    ("queue_age_s", "float"),
    ("uncertain", "int"),
    ("uncertain_age_s", "float"),
    ("possible_double_spend_usd", "float"),
    ("written_off_usd", "float"),
    ("need_a_person", "int"),
    ("stopped_in_24_hours", "int"),
)
"""The figures of the health report, one row of them each time it is made."""

PLANNED_PAGES: tuple[tuple[str, str], ...] = (
    ("reason", "string"),
    ("pages", "int"),
    ("topics", "string"),
)
"""The columns of a plan's tables: why so many pages are due or left alone, and some of them."""

_PUBLIC_FILES = {"sitemap": "/sitemap.xml", "index_page": "/", "redirects": "/_redirects"}
"""Kind of hook → what it keeps on the site; the others call somebody and keep nothing."""


def columns(declared: Sequence[tuple[str, str]]) -> dg.TableSchema:
    """A schema of columns that are nothing but a name and a type."""
    return dg.TableSchema([dg.TableColumn(name, kind) for name, kind in declared])


def topics_metadata(site: Site) -> Metadata:
    """Of the table: where it lies and which of its columns mean something here."""
    source = site.settings.topics
    found: Metadata = {
        "source": dg.MetadataValue.text(source.table or "a SQL query"),
        "id_column": dg.MetadataValue.text(source.id),
        COLUMN_SCHEMA: dg.MetadataValue.table_schema(_topic_columns(site)),
    }
    if site.table is not None:  # the address of a database may hold a password
        found[URI] = dg.MetadataValue.url(site.table.resolve().as_uri())
    return found


def _topic_columns(site: Site) -> dg.TableSchema:
    """The columns that enter a page, the topic's id first: all others may change unnoticed."""
    source, article = site.settings.topics, site.settings.article
    required = {source.id, source.name, *article.must_state}
    return dg.TableSchema(
        [
            dg.TableColumn(
                name,
                "string",
                description=_meaning(site, name),
                constraints=dg.TableColumnConstraints(
                    nullable=name not in required, unique=name == source.id
                ),
            )
            for name in (source.id, *sorted(site.columns - {source.id}))
        ]
    )


def _meaning(site: Site, column: str) -> str:
    source, facts = site.settings.topics, site.settings.article.facts
    if column == source.id:
        return "The topic's stable id: the key of its partition."
    if column == source.name:
        return "The topic's name."
    return f"The fact {facts[column]!r}." if column in facts else "Used by a prompt or the path."


def site_uri(site: Site) -> Metadata:
    """Of what is the site itself."""
    return {URI: dg.MetadataValue.url(f"{site.settings.base_url}/")}


def hook_metadata(site: Site, kind: str) -> Metadata:
    """Of a hook's asset: its file on the site, if it keeps one."""
    path = _PUBLIC_FILES.get(kind)
    return {} if path is None else {URI: dg.MetadataValue.url(site.settings.url_of(path))}
