import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.adapters.llm.strict_schema import strict_schema
from content_pipeline.core.article import (
    Article,
    NotAnArticle,
    article_json,
    article_schema,
    parse_article,
)
from content_pipeline_tests.core.samples import article

DOCUMENT = article().model_dump()


def changed(**fields: Any) -> str:
    """The sample's JSON with ``fields`` replaced; None takes a field away."""
    document = {**DOCUMENT, **fields}
    return json.dumps({name: value for name, value in document.items() if value is not None})


def objects(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """All object schemas within ``schema``."""
    found = [schema] if schema.get("type") == "object" else []
    for value in schema.values():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                found += objects(inner)
    return found


def test_the_schema_is_strict_in_every_object() -> None:
    found = objects(article_schema())
    assert len(found) == 2
    for schema in found:
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])


def test_the_schema_loses_nothing_on_its_way_to_a_provider() -> None:
    assert strict_schema(article_schema()) == article_schema()


def test_a_model_is_asked_for_content_and_never_for_a_place() -> None:
    names = {name for schema in objects(article_schema()) for name in schema["properties"]}
    assert names == {
        "title",
        "meta_description",
        "introduction",
        "sections",
        "heading",
        "body_markdown",
    }


def test_every_field_tells_the_model_what_is_wanted() -> None:
    for schema in objects(article_schema()):
        assert all(field.get("description") for field in schema["properties"].values())


def test_an_article_survives_being_written_and_read() -> None:
    assert parse_article(article_json(article())) == article()


texts = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


@given(title=texts, heading=texts, body=texts)
def test_any_text_comes_back_as_it_was_sent(title: str, heading: str, body: str) -> None:
    sent = article(title=title, sections=((heading, body),))
    assert parse_article(article_json(sent)) == sent


def test_equal_articles_give_equal_text() -> None:
    backwards = Article.model_validate(dict(reversed(DOCUMENT.items())))
    assert article_json(backwards) == article_json(article())


SECRET = "Zanzibar"

NO_ARTICLES = {
    "empty": ("", "document: json_invalid"),
    "no JSON": (SECRET, "document: json_invalid"),
    "a fence around it": (f"```json\n{SECRET}\n```", "document: json_invalid"),
    "cut in the middle": (changed(title=SECRET)[:40], "document: json_invalid"),
    "half a character": (changed(title=f"{SECRET}\ud800"), "document: json_invalid"),
    "nested without end": ("[" * 100_000, "document: json_invalid"),
    "a list": (json.dumps([SECRET]), "document: model_type"),
    "null": ("null", "document: model_type"),
    "a number as title": (changed(title=47), "title: string_type"),
    "a missing field": (changed(introduction=None), "introduction: missing"),
    "sections as text": (changed(sections=SECRET), "sections: list_type"),
    "a section as text": (changed(sections=[SECRET]), "sections.0: model_type"),
    "half a section": (
        changed(sections=[{"heading": SECRET}]),
        "sections.0.body_markdown: missing",
    ),
    "a slug": (changed(slug=SECRET), "?: extra_forbidden"),
    "a key that is a sentence": (changed(**{SECRET: "x"}), "?: extra_forbidden"),
    "an extra key in a section": (
        changed(sections=[{"heading": "a", "body_markdown": "b", SECRET: "c"}]),
        "sections.0.?: extra_forbidden",
    ),
    "a broken escape": (changed(title=f"{SECRET}\x00e9"), "NUL"),
    "a broken escape in a section": (
        changed(sections=[{"heading": "a", "body_markdown": f"{SECRET}\x00"}]),
        "NUL",
    ),
    "a broken escape in the description": (changed(meta_description="\x00"), "NUL"),
}


@pytest.mark.parametrize("name", NO_ARTICLES)
def test_what_is_no_article_is_refused_with_the_place_and_never_with_the_text(name: str) -> None:
    text, place = NO_ARTICLES[name]
    with pytest.raises(NotAnArticle) as caught:
        parse_article(text)
    assert place in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@given(
    text=st.text() | st.recursive(st.none() | texts, lambda inner: st.lists(inner)).map(json.dumps)
)
def test_nothing_a_model_writes_raises_anything_else(text: str) -> None:
    with pytest.raises(NotAnArticle):
        parse_article(text)


def test_a_message_stays_short_however_much_is_wrong() -> None:
    with pytest.raises(NotAnArticle) as caught:
        parse_article(changed(sections=[{f"key {number}": 1} for number in range(500)]))
    assert len(str(caught.value)) < 300


def test_words_are_those_a_reader_sees() -> None:
    written = article(title="One two", introduction="three", sections=(("four", "five six"),))
    assert written.plain_text().split() == ["One", "two", "three", "four", "five", "six"]
    assert written.words() == 6
