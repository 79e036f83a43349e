"""The look of what commands print: tables and times."""

from datetime import datetime

from rich.markup import escape
from rich.table import Table


def plain_table(title: str, *columns: str | None) -> Table:
    """A table with a header, or without one when the columns have no names."""
    table = Table(title=escape(title), title_justify="left", show_header=any(columns))
    for name in columns:
        table.add_column(name or "", overflow="fold")
    return table


def when(moment: datetime) -> str:
    """A time as people read it, UTC."""
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def counted(pages: int) -> str:
    """A number of pages in words."""
    return "1 page" if pages == 1 else f"{pages:,} pages"
