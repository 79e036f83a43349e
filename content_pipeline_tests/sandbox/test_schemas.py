import datetime as dt
import enum
import uuid
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from content_pipeline.core.article import article_schema
from content_pipeline.sandbox.schemas import ImpossibleSchema, instance_of, strict_problem


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=20, max_length=30)]
    colour: Colour
    kind: Literal["screw", "nut"]


class Tree(BaseModel):
    model_config = ConfigDict(extra="forbid")

    children: list["Tree"]
    parent: "Tree | None"


class Product(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: uuid.UUID
    made_on: dt.date
    seen_at: dt.datetime
    parts: Annotated[list[Part], Field(min_length=2, max_length=3)]
    no_parts: Annotated[list[Part], Field(max_length=0)]
    spare: Part | None
    price: Annotated[float, Field(gt=0, lt=1)]
    count: Annotated[int, Field(ge=7, le=9)]
    dozen: Annotated[int, Field(gt=12, multiple_of=12)]
    debt: Annotated[int, Field(lt=0)]
    short: Annotated[str, Field(max_length=3)]
    sold: bool
    tags: dict[str, str]
    either: int | str


@pytest.mark.parametrize("model", [Part, Product, Tree])
def test_the_smallest_instance_is_a_valid_one(model: type[BaseModel]) -> None:
    model.model_validate(instance_of(model.model_json_schema()))


@pytest.mark.parametrize(
    "wanted",
    [
        int, float, str, bool, None, list[int], dict[str, int], Colour, Literal[3],
        Annotated[float, Field(ge=0.25, le=0.75)], Annotated[int, Field(gt=-5, lt=-3)],
        Annotated[float, Field(gt=2.5)], Annotated[str, Field(min_length=50)],
        Annotated[str, Field(pattern="^sand")], Annotated[list[str], Field(min_length=4)],
        dt.time, dt.timedelta, int | None,
    ],
)  # fmt: skip
def test_every_kind_of_value_can_be_made(wanted: Any) -> None:
    adapter = TypeAdapter(wanted)
    adapter.validate_python(instance_of(adapter.json_schema()), strict=None)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, "sandbox"),
        ({"type": ["string", "null"]}, "sandbox"),
        ({"properties": {"a": {"type": "null"}}}, {"a": None}),
        ({"type": "object", "required": ["b"], "properties": {"a": {}, "b": {}}}, {"b": "sandbox"}),
        ({"allOf": [{"type": "string"}, {"maxLength": 2}]}, "sa"),
        ({"const": {"x": 1}}, {"x": 1}),
        ({"oneOf": [{"type": "integer"}]}, 0),
        ({"$defs": {"a/b": {"enum": [5]}}, "$ref": "#/$defs/a~1b"}, 5),
    ],
)
def test_a_schema_gives_exactly_this_value(schema: dict[str, Any], value: object) -> None:
    assert instance_of(schema) == value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "spaceship"},
        {"type": "string", "pattern": "^[0-9]{4}$"},
        {"type": "string", "pattern": "("},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": 3}},
    ],
)
def test_a_schema_without_an_instance_is_called_impossible(schema: dict[str, Any]) -> None:
    with pytest.raises(ImpossibleSchema):
        instance_of(schema)


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        article_schema(),
        closed(),
        closed(a={"type": "array", "items": closed(b={})}),
        closed(a=True),
    ],
)
def test_strict_mode_takes_closed_objects_with_everything_required(schema: dict[str, Any]) -> None:
    assert strict_problem(schema) is None


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "string"}, 'type: "object"'),
        ({"type": "object"}, "additionalProperties"),
        (closed(a={}) | {"required": []}, "Missing 'a'"),
        (closed(a={"type": "object"}), "('properties', 'a')"),
        (closed(a={"type": "array", "items": {"type": "object"}}), "'items'"),
        (
            closed(a={"anyOf": [{"type": "null"}, {"properties": {}}]}),
            "('properties', 'a', 'anyOf'",
        ),
        (closed() | {"$defs": {"D": {"type": "object"}}}, "('$defs', 'D')"),
    ],
)
def test_strict_mode_names_the_place_of_an_open_object(schema: dict[str, Any], told: str) -> None:
    problem = strict_problem(schema)
    assert problem is not None
    assert told in problem
