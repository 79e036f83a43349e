"""A schema made strict means the same, closed, and keeps only what the decoder can enforce."""

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from content_pipeline.adapters.llm.strict_schema import UNSUPPORTED, strict_schema
from content_pipeline.core.article import article_schema


def objects(schema: object) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


def test_every_object_of_the_article_is_closed_and_requires_all_its_properties() -> None:
    found = list(objects(strict_schema(article_schema())))
    assert len(found) == 2
    for item in found:
        assert item["additionalProperties"] is False
        assert item["required"] == list(item["properties"])


def test_the_article_schema_is_already_what_strict_mode_wants() -> None:
    assert strict_schema(article_schema()) == article_schema()


def test_the_argument_is_left_alone() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}
    strict_schema(schema)
    assert schema == {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}


@pytest.mark.parametrize("keyword", sorted(UNSUPPORTED))
def test_an_unsupported_keyword_is_left_out_and_a_property_of_that_name_kept(keyword: str) -> None:
    schema = {"type": "object", "properties": {keyword: {"type": "string", keyword: 1}}}
    assert strict_schema(schema)["properties"] == {keyword: {"type": "string"}}


def test_optional_fields_become_required() -> None:
    class Page(BaseModel):
        title: str
        note: str | None = None

    strict = strict_schema(Page.model_json_schema())
    assert strict["required"] == ["title", "note"]
    assert strict["properties"]["note"]["anyOf"] == [{"type": "string"}, {"type": "null"}]


def test_a_described_reference_is_inlined_because_a_reference_must_stand_alone() -> None:
    class Author(BaseModel):
        name: str

    class Page(BaseModel):
        author: Author = Field(description="Who wrote it.")

    author = strict_schema(Page.model_json_schema())["properties"]["author"]
    assert author["description"] == "Who wrote it."
    assert author["required"] == ["name"]
    assert "$ref" not in author


def test_a_choice_of_kinds_is_written_as_any_of() -> None:
    class Text(BaseModel):
        kind: Literal["text"]

    class Table(BaseModel):
        kind: Literal["table"]

    class Page(BaseModel):
        block: Text | Table = Field(discriminator="kind")

    block = strict_schema(Page.model_json_schema())["properties"]["block"]
    assert [item["$ref"] for item in block["anyOf"]] == ["#/$defs/Text", "#/$defs/Table"]
    assert block.keys() == {"anyOf", "title"}


def test_an_object_that_may_be_null_is_closed_too() -> None:
    strict = strict_schema({"type": ["object", "null"], "properties": {"a": {"type": "string"}}})
    assert strict["additionalProperties"] is False


def test_a_plain_recursive_reference_is_kept() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    strict = strict_schema({"$ref": "#/$defs/Node", "$defs": {"Node": node}})
    assert strict["properties"]["next"] == {"$ref": "#/$defs/Node"}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "#/$defs/Lost", "title": "x"}, "leads nowhere"),
        (
            {
                "$ref": "#/$defs/Node",
                "$defs": {"Node": {"properties": {"next": {"$ref": "#/$defs/Node", "title": "x"}}}},
            },
            "recursive",
        ),
    ],
)
def test_a_schema_that_cannot_be_strict_is_named(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        strict_schema(schema)
