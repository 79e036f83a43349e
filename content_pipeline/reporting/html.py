"""A report as one HTML file that needs nothing but a browser: no script, no font, no request.

What belongs here: filling the template. The policy in the file itself lets it load nothing.
"""

import base64
import hashlib
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from content_pipeline.reporting.charts import STYLE, inline_svg
from content_pipeline.reporting.content import Section, numbers_of, when
from content_pipeline.reporting.cost_sections import cost_figures, cost_sections
from content_pipeline.reporting.health_sections import health_figures, health_sections
from content_pipeline.reporting.site_report import SiteReport


def render(report: SiteReport) -> bytes:
    """The file of ``report``."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    text = (
        _templates()
        .get_template("report.html.j2")
        .render(
            title=report.title,
            site=report.site,
            made_at=when(report.seen.now),
            days=len(report.seen.days),
            verdicts=sorted(report.verdicts.values(), key=lambda verdict: verdict.passed),
            figures=cost_figures(report) + health_figures(report),
            parts=(("Costs", cost_sections(report)), ("Health", health_sections(report))),
            style=style,
            policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
            "form-action 'none'",
        )
    )
    return text.encode()


def _drawing(section: Section) -> Markup:
    """The chart of a section, whose texts ``charts`` has escaped."""
    return Markup(inline_svg(section.drawn)) if section.drawn else Markup()  # noqa: S704


@cache
def _style() -> str:
    return _templates().get_template("report.css.j2").render(series=STYLE)


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("content_pipeline.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["drawing"] = _drawing
    environment.filters["numbers"] = numbers_of
    return environment
