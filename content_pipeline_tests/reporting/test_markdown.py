"""A report in Markdown, as Dagster's UI renders it: CommonMark with tables."""

import re

from markdown_it import MarkdownIt

from content_pipeline.core.health import HealthCheck
from content_pipeline.reporting.cost_sections import cost_figures, cost_sections
from content_pipeline.reporting.health_sections import health_figures, health_sections
from content_pipeline.reporting.markdown import markdown
from content_pipeline.reporting.site_report import SiteReport
from content_pipeline_tests.reporting.samples import EMPTY, HOSTILE, REPORT

RENDERER = MarkdownIt("commonmark").enable("table")
RENDERER.validateLink = lambda url: url.startswith("data:image/svg+xml,")  # type: ignore[method-assign]
"""Like Dagster's UI, and unlike this renderer by itself, it takes an SVG that is embedded."""


def written(report: SiteReport) -> str:
    sections = [*cost_sections(report), *health_sections(report)]
    figures = cost_figures(report) + health_figures(report)
    return markdown(figures, report.verdicts.values(), sections)


def test_each_chart_is_an_image_within_the_text() -> None:
    html = RENDERER.render(written(REPORT))
    images = re.findall(r'<img src="(data:image/svg\+xml,[^"]+)" alt="([^"]+)"', html)
    assert [alt for _, alt in images] == [
        "Dollars per day by class",
        "Dollars per day by template",
        "Cost per published page",
        "Pages published per day",
        "Paid calls per page",
        "Tries after a failure",
        "Pages that stopped, per day",
    ]
    assert "![" not in html  # none was left unread


def test_an_image_is_small_enough_to_be_kept_every_hour() -> None:
    assert len(written(REPORT)) < 40_000


def test_what_a_table_holds_is_shown_and_never_obeyed() -> None:
    html = RENDERER.render(written(REPORT))
    assert "<script" not in html
    assert "<em>x</em>" not in html
    shown = HOSTILE.replace("<", "&lt;").replace(">", "&gt;")
    assert f'<td style="text-align:left">{shown}</td>' in html


def test_every_table_keeps_its_shape() -> None:
    html = RENDERER.render(written(REPORT))
    for table in re.findall(r"<table>.*?</table>", html, flags=re.DOTALL):
        rows = [len(re.findall(r"<t[hd]\b", row)) for row in table.split("</tr>") if "<tr" in row]
        assert len(set(rows)) == 1, table
        assert len(rows) > 1


def test_only_warnings_are_repeated_at_the_head() -> None:
    text = written(REPORT)
    assert f"**Warning:** {REPORT.verdicts[HealthCheck.QUEUE_AGE].sentence}" in text
    assert "All within plan" not in text
    assert text.index("Warning") < text.index("###")


def test_a_site_without_anything_says_so_in_each_section() -> None:
    text = written(EMPTY)
    sections = [*cost_sections(EMPTY), *health_sections(EMPTY)]
    assert text.count("\n\nNothing.") == len(sections)
