"""The preview of an article: short, and inert whatever a model wrote."""

import pytest
from markdown_it import MarkdownIt

from content_pipeline.core.article import Article
from content_pipeline.core.preview import LENGTH, preview_of
from content_pipeline.core.rendering import plain_text
from content_pipeline_tests.core.hostile_text import PAYLOADS, Judge


def article(title: str = "Chur", introduction: str = "An old town.") -> Article:
    return Article(
        title=title, meta_description="What it is.", introduction=introduction, sections=[]
    )


def shown(markdown: str) -> Judge:
    """What a viewer that allows even raw HTML makes of it."""
    return Judge(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


def test_it_is_the_title_and_the_introduction() -> None:
    assert preview_of(article()) == "**Chur**\n\nAn old town\\."


def test_a_long_introduction_is_cut() -> None:
    words = "valley " * 200
    text = shown(preview_of(article(introduction=words))).text_of("p")
    assert len(text) <= LENGTH
    assert text.endswith("valley…")
    assert len(shown(preview_of(article(introduction="x" * LENGTH))).text_of("p")) == LENGTH


def test_nothing_but_title_and_introduction_is_in_it() -> None:
    assert "What it is" not in preview_of(article())


@pytest.mark.parametrize("payload", PAYLOADS)
def test_whatever_a_model_wrote_is_shown_as_words(payload: str) -> None:
    judge = shown(preview_of(article(title=payload, introduction=payload)))
    assert judge.names() <= {"p", "strong"}
    assert judge.dangers() == []
    assert judge.text_of("strong").strip() == plain_text(payload)


@pytest.mark.parametrize("line", ["# a", "- a", "+ a", "1. a", "> a", "---", "===", "| a | b |"])
def test_a_line_that_would_be_a_block_stays_a_line(line: str) -> None:
    judge = shown(preview_of(article(introduction=line)))
    assert judge.names() == {"p", "strong"}
    assert judge.text_of("p").strip() == plain_text(line)
