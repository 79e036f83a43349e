"""A report as Markdown for Dagster's UI, its charts embedded as images.

What belongs here: the writing of it. Nothing of a table or a provider may become markup.
"""

import re
from collections.abc import Iterable, Sequence

from content_pipeline.core.health import Verdict
from content_pipeline.reporting.charts import Chart, data_uri
from content_pipeline.reporting.content import Figure, Section, Table

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&])")
"""What may begin something in Markdown or HTML."""

NOTHING = "Nothing."
"""Instead of a table without rows."""


def markdown(
    figures: Sequence[Figure], verdicts: Iterable[Verdict], sections: Iterable[Section]
) -> str:
    """The report; the tables of a chart's very numbers are left to the file."""
    parts = [_as_table(_of_figures(figures))]
    parts += [
        f"**Warning:** {_text(verdict.sentence)}" for verdict in verdicts if not verdict.passed
    ]
    for section in sections:
        parts += _section(section)
    return "\n\n".join(parts)


def _of_figures(figures: Sequence[Figure]) -> Table:
    return Table(
        columns=tuple(figure.label for figure in figures),
        rows=(
            tuple(figure.value for figure in figures),
            tuple(figure.note for figure in figures),
        ),
        texts=len(figures),
    )


def _section(section: Section) -> list[str]:
    parts = [f"### {_text(section.title)}", _text(section.note)]
    if section.drawn is not None:
        parts.append(_image(section.drawn))
    if section.table is not None and section.table.rows:
        parts.append(_as_table(section.table))
    elif section.drawn is None:
        parts.append(NOTHING)
    return parts


def _image(chart: Chart) -> str:
    return f"![{_text(chart.title)}]({data_uri(chart)})"


def _as_table(table: Table) -> str:
    lines = [
        table.columns,
        tuple(":--" if at < table.texts else "--:" for at in range(len(table.columns))),
    ]
    cells = [tuple(map(_text, row)) for row in (table.columns, *table.rows)]
    lines = [cells[0], lines[1], *cells[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(words: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(words.split()))
