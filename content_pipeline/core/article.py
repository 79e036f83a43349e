"""The article: the one structure a model is asked for, and everything later is rendered from.

What belongs here: the pydantic model of a page's content, its JSON schema for structured output,
and its parsing from a model's text. Deliberately absent: slug, URL and any target; a model never
decides where something is published.
"""

import json
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class Section(BaseModel):
    """One part of an article under its own heading."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    heading: str = Field(description="Plain text, no markup, at most 80 characters.")
    body_markdown: str = Field(description="Markdown paragraphs or lists, without headings.")


class Article(BaseModel):
    """A page's whole content, as the model writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(description="Plain text, no markup, at most 70 characters.")
    meta_description: str = Field(
        description="Plain text, one or two sentences, 50-160 characters."
    )
    introduction: str = Field(description="One paragraph of Markdown that opens the article.")
    sections: list[Section] = Field(description="Two to six sections.")

    def words(self) -> int:
        """Words a reader sees, headings included."""
        return len(self.plain_text().split())

    def plain_text(self) -> str:
        """Everything a reader sees, in reading order, as one string."""
        parts = [self.title, self.introduction]
        for section in self.sections:
            parts += [section.heading, section.body_markdown]
        return "\n\n".join(parts)


class NotAnArticle(ValueError):
    """The text is not an article of our schema; the message names the places, never the text."""


@cache
def article_schema() -> dict[str, Any]:
    """The JSON schema sent with a request: strict, so every property is required.

    One object for all who ask, so nobody changes it: deriving it took 2 ms, twice a page.
    """
    return Article.model_json_schema()


def article_of(document: Any) -> Article:
    """The article in a parsed ``document``. Raises NotAnArticle."""
    try:
        return Article.model_validate(document, strict=True)
    except ValidationError as error:
        places = {
            ".".join(map(str, item["loc"])) or "document": item["type"] for item in error.errors()
        }
        detail = "; ".join(f"{place}: {kind}" for place, kind in sorted(places.items())[:5])
        raise NotAnArticle(f"the answer is not an article of the asked schema ({detail})") from None


def article_json(article: Article) -> str:
    """The canonical JSON of ``article``: equal articles give equal text."""
    return json.dumps(article.model_dump(), ensure_ascii=False, sort_keys=True)
