"""The article: the one structure a model is asked for, and everything later is rendered from.

What belongs here: the pydantic model of a page's content, its JSON schema for structured output,
and its parsing from a model's text. Deliberately absent: slug, URL and any target; a model never
decides where something is published.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

SCHEMA_NAME = "article"


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


def parse_article(text: str) -> Article:
    """The article in a model's ``text``. Raises NotAnArticle."""
    return _checked(lambda: Article.model_validate_json(text))


def article_of(document: Any) -> Article:
    """The article in a parsed ``document``. Raises NotAnArticle."""
    return _checked(lambda: Article.model_validate(document, strict=True))


def _checked(validated: Callable[[], Article]) -> Article:
    try:
        article = validated()
    except ValidationError as error:
        places = {_place(item["loc"]): item["type"] for item in error.errors()}
        detail = "; ".join(f"{place}: {kind}" for place, kind in sorted(places.items())[:5])
        raise NotAnArticle(f"the answer is not an article of the asked schema ({detail})") from None
    if "\x00" in article.meta_description + article.plain_text():
        # A model that breaks the escape \u00e9 leaves one; PostgreSQL cannot hold it either.
        raise NotAnArticle("the answer holds NUL characters, so its text is damaged")
    return article


def _place(location: tuple[str | int, ...]) -> str:
    """Where in an article; a key that the model made up is its text, and not repeated."""
    known = Article.model_fields.keys() | Section.model_fields.keys()
    steps = [str(step) if isinstance(step, int) or step in known else "?" for step in location]
    return ".".join(steps) or "document"


def article_json(article: Article) -> str:
    """The canonical JSON of ``article``: equal articles give equal text."""
    return json.dumps(article.model_dump(), ensure_ascii=False, sort_keys=True)
