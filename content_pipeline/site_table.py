"""A site's topic table: its rows, and an identity of all of them that costs no reading of rows.

What belongs here: from the settings of a site to its source. What makes two tables one: the bytes
of the file, whatever in the site file decides what a row means, and the code that decides it.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from content_pipeline.config import environment
from content_pipeline.core.errors import TopicTableError
from content_pipeline.core.identity import digest
from content_pipeline.site_files import Site

DECIDING = (
    "content_pipeline.adapters.tables",
    "content_pipeline.core.identity",
    "content_pipeline.core.topics",
    "content_pipeline.ledger.intake",
    "content_pipeline.ledger.refused",
    "content_pipeline.ledger.wishes",
    "content_pipeline.operations.corrections",
    "content_pipeline.operations.submit",
)
"""The modules that decide what becomes of a row. Their text counts and no number that somebody has
to raise: a forgotten one would leave pages as the older code made them, for good."""

DECIDING_PACKAGES = ("pandas", "pyarrow", "python-slugify", "text-unidecode", "Unidecode")
"""Whose versions decide it as well: how a cell is read, and what slug a name has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteTable:
    """The topic table of a site, read anew each time."""

    site: Site

    def __iter__(self) -> Iterator[dict[str, str]]:
        """Each row as column → text, for the columns that the site uses. Raises TopicTableError."""
        from content_pipeline.adapters.tables import read_file, read_query, rows_of  # pandas: 1 s

        source = self.site.settings.topics
        columns = self.site.columns | {source.id}
        if self.site.table is not None:
            return rows_of(read_file(self.site.table), columns, source=str(self.site.table))
        assert source.query is not None
        return rows_of(read_query(source.query, self._database()), columns, source="topics.query")

    def identity(self) -> str | None:
        """Equal for equal rows that are understood alike; None: only reading them would tell.

        From the bytes of the file and not from its time and size: an edit within the clock tick of
        the last one, or one that puts an old time back (git, rsync, cp -p), leaves both as they
        were, other machines have other times, and 100 MB take 0.1 s. A query has no such bytes, nor
        has a file that cannot be opened, of which its reading says why.
        """
        table, settings = self.site.table, self.site.settings
        if table is None:
            return None
        try:
            with table.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return None
        return digest(
            "topic table",
            content,
            table.suffix.lower(),
            [settings.topics.id, settings.topics.name, settings.topics.path],
            sorted(self.site.columns),
            sorted(settings.article.must_state),
            _rules(),
        )

    def _database(self) -> str:
        variable = self.site.settings.topics.database_env
        assert variable is not None
        url = environment().get(variable, "").strip()
        if not url:
            raise TopicTableError(
                f"{self.site.file}: `topics.query` needs a database URL in the environment "
                f"variable {variable}"
            )
        return url


@cache
def _rules() -> str:
    """Identity of the code that turns a row into a topic."""
    texts = [hashlib.sha256(_file_of(name).read_bytes()).hexdigest() for name in DECIDING]
    return digest(texts, [_version(name) for name in DECIDING_PACKAGES])


def _file_of(module: str) -> Path:
    """Where ``module`` lies. It is not imported for that: pandas alone takes 1 s."""
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin)


def _version(package: str) -> str:
    """The version of ``package``; nothing where it is not installed: slugs can do without one."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
