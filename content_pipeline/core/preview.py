"""A short look at an article for people who watch a pipeline: Markdown that is nothing but words.

What belongs here: the cut and the escaping. Whether anybody is shown one is the site's decision
(``article.preview``), off unless its owners say otherwise.
"""

import re

from content_pipeline.core.article import Article
from content_pipeline.core.rendering import plain_text

LENGTH = 280
"""Characters of the introduction: enough to tell a page from another, too few to be the page."""

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
"""Everything that Markdown lets a backslash take the meaning from."""


def preview_of(article: Article) -> str:
    """The title and the beginning of the introduction, as inert Markdown."""
    title, beginning = plain_text(article.title), plain_text(article.introduction)
    if len(beginning) > LENGTH:
        beginning = beginning[: LENGTH - 1].rstrip() + "…"
    bold = f"**{_inert(title)}**" if title else ""  # two pairs of stars around nothing are a line
    return "\n\n".join(part for part in (bold, _inert(beginning)) if part)


def _inert(line: str) -> str:
    """``line`` as words: no link, image, tag, list or heading, wherever it is shown."""
    return _PUNCTUATION.sub(r"\\\1", line)
