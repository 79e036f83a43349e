"""The rules a draft must meet before it may be published, as a pure function to findings.

What belongs here: rules about an article against its facts and its site's limits. A finding names
the rule and the place and may quote a fact of the table; it never quotes the model's text.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from content_pipeline.core.article import Article
from content_pipeline.core.rendering import plain_text

MAX_SECTIONS = 50
"""More headings than any page needs; a model that loops writes them by the hundred."""


class ArticleRules(BaseModel):
    """A site's limits for an article."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_words: Annotated[int, Field(ge=1)] = 150
    max_words: Annotated[int, Field(ge=1)] = 3000
    max_title_characters: Annotated[int, Field(ge=10)] = 70
    min_meta_description_characters: Annotated[int, Field(ge=0)] = 50
    max_meta_description_characters: Annotated[int, Field(ge=10)] = 170
    min_sections: Annotated[int, Field(ge=1, le=MAX_SECTIONS)] = 2
    max_similarity: Annotated[
        float | None,
        Field(gt=0, lt=1, description="to any other page, by an embedding; none: not compared"),
    ] = None

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        # Every page would be paid for and then refused.
        for least, most in (
            ("min_words", "max_words"),
            ("min_meta_description_characters", "max_meta_description_characters"),
        ):
            if getattr(self, least) > getattr(self, most):
                raise ValueError(f"{least} is larger than {most}, so no article can meet both")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken rule."""

    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}"


_PLACEHOLDER = re.compile(
    r"\blorem ipsum\b|\bas an ai(?:,| assistant\b| model\b| language model\b)"
    r"|\bas a (?:large )?language model\b|\[insert\b|(?-i:\bTODO:|\bTBD\b)",
    re.IGNORECASE,
)
"""Phrases of unfinished or refused text that no site wants to publish. Not more: a port serves
"as an airport hub", and "sobre todo:" is Spanish."""

_TYPOGRAPHY = str.maketrans(
    {
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{MODIFIER LETTER APOSTROPHE}": "'",
        "\N{LEFT DOUBLE QUOTATION MARK}": '"',
        "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
        "\N{HYPHEN}": "-",
        "\N{FIGURE DASH}": "-",
        "\N{EN DASH}": "-",
        "\N{EM DASH}": "-",
        "\N{MINUS SIGN}": "-",
    }
)
"""Models set "Guinea-Bissau" and "St. John's" with the marks of a typesetter."""

_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
"""A number with thousands separators: 77,006 states 77006."""


def validate_article(
    article: Article, *, rules: ArticleRules, must_state: Mapping[str, str]
) -> tuple[Finding, ...]:
    """All findings for ``article``; empty means fit to publish.

    ``must_state``: label → value of each fact the page has to state.
    """
    findings = [*_length_findings(article, rules), *_text_findings(article)]
    text = _folded(article.plain_text())
    findings += [
        Finding(rule="states_fact", detail=f"the page does not state {label}: {value!r}")
        for label, value in must_state.items()
        if not _states(text, value)
    ]
    return tuple(findings)


def _length_findings(article: Article, rules: ArticleRules) -> list[Finding]:
    measured = (
        ("words", article.words(), rules.min_words, rules.max_words),
        ("title_characters", len(plain_text(article.title)), 3, rules.max_title_characters),
        (
            "meta_description_characters",
            len(plain_text(article.meta_description)),
            rules.min_meta_description_characters,
            rules.max_meta_description_characters,
        ),
        ("sections", len(article.sections), rules.min_sections, MAX_SECTIONS),
    )
    return [
        Finding(rule=name, detail=f"{value} is outside {least} to {most}")
        for name, value, least, most in measured
        if not least <= value <= most
    ]


def _text_findings(article: Article) -> list[Finding]:
    findings = []
    for number, section in enumerate(article.sections, start=1):
        if not plain_text(section.heading) or not section.body_markdown.strip():
            findings.append(Finding(rule="empty_section", detail=f"section {number} is empty"))
    headings = [_folded(section.heading) for section in article.sections]
    if len(set(headings)) != len(headings):
        findings.append(Finding(rule="repeated_heading", detail="two sections share a heading"))
    if _PLACEHOLDER.search(f"{article.meta_description} {article.plain_text()}"):
        findings.append(Finding(rule="placeholder", detail="the page holds unfinished text"))
    return findings


def _folded(text: str) -> str:
    """``text`` as a reader compares it: case, width, spacing, typography and marks do not count."""
    plain = unicodedata.normalize("NFKC", text).translate(_TYPOGRAPHY)
    bare = re.sub(r"[*_`\\]", "", plain)
    whole = _GROUPED.sub(lambda number: number.group().replace(",", ""), bare)
    return " ".join(whole.casefold().split())


def _states(folded_text: str, value: str) -> bool:
    """Whether the text states ``value`` as a whole: 47 is not stated by 147, by 4.7 or by -47."""
    wanted = _folded(value)
    before = r"(?<![\w.,])(?<!(?<!\w)-)" if wanted[:1].isdigit() else r"(?<!\w)"
    return re.search(rf"{before}{re.escape(wanted)}(?!\w|[.,]\d)", folded_text) is not None
