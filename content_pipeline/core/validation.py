"""The rules a draft must meet before it may be published, as a pure function to findings.

What belongs here: rules about an article against its facts and its site's limits. A finding names
the rule and the place and may quote a fact of the table; it never quotes the model's text.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from content_pipeline.core.article import Article
from content_pipeline.core.rendering import plain_text


class ArticleRules(BaseModel):
    """A site's limits for an article."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_words: Annotated[int, Field(ge=1)] = 150
    max_words: Annotated[int, Field(ge=1)] = 3000
    max_title_characters: Annotated[int, Field(ge=10)] = 70
    min_meta_description_characters: Annotated[int, Field(ge=0)] = 50
    max_meta_description_characters: Annotated[int, Field(ge=10)] = 170
    min_sections: Annotated[int, Field(ge=1)] = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken rule."""

    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.detail}"


_PLACEHOLDER = re.compile(
    r"\b(lorem ipsum|as an ai|as a language model|\[insert|todo:|tbd\b)", re.I
)
"""Phrases of unfinished or refused text that no site wants to publish."""


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
        ("sections", len(article.sections), rules.min_sections, 50),
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
    """``text`` as a reader compares it: case, width, spacing and Markdown marks do not count."""
    bare = re.sub(r"[*_`\\]", "", unicodedata.normalize("NFKC", text))
    return " ".join(bare.casefold().split())


def _states(folded_text: str, value: str) -> bool:
    """Whether the text states ``value`` as a whole: 47 is not stated by 147 or by 4.7."""
    wanted = re.escape(_folded(value))
    return re.search(rf"(?<![\w.,]){wanted}(?!\w|[.,]\d)", folded_text) is not None
