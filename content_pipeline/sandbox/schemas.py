"""JSON schemas of structured output: what strict mode accepts, and the smallest valid instance.

What belongs here: pure functions on a schema. The rules of strict mode are the documented ones
that a pydantic model can break without noticing: every object closed, every property required.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_DEEPEST = 12
"""Nesting at which optional parts are left out, so that a recursive schema ends."""

_FORMATS = {
    "date": "2000-01-01",
    "time": "00:00:00Z",
    "date-time": "2000-01-01T00:00:00Z",
    "duration": "P1D",
    "email": "sandbox@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_FILLER = "sandbox "


class ImpossibleSchema(ValueError):
    """No instance can be made; the message names the place and the keyword."""


def strict_problem(schema: Any, path: tuple[str, ...] = ()) -> str | None:
    """What strict mode would refuse in ``schema``, in its own words; None when nothing."""
    if not isinstance(schema, Mapping):
        return None
    properties = schema.get("properties")
    if schema.get("type") == "object" or isinstance(properties, Mapping):
        if schema.get("additionalProperties") is not False:
            return f"In context={path}, 'additionalProperties' is required to be false."
        missing = sorted(set(properties or ()) - set(schema.get("required", ())))
        if missing:
            return (
                f"In context={path}, 'required' is required to be an array including every key "
                f"in properties. Missing '{missing[0]}'."
            )
    if not path and schema.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got {schema.get('type')!r}."
    found = (strict_problem(child, (*path, *step)) for step, child in _children(schema))
    return next(filter(None, found), None)


def _children(schema: Schema) -> Iterator[tuple[tuple[str, ...], Any]]:
    for keyword in ("properties", "$defs", "definitions"):
        for name, child in schema.get(keyword, {}).items():
            yield (keyword, name), child
    for keyword in ("anyOf", "allOf"):
        for position, child in enumerate(schema.get(keyword, ())):
            yield (keyword, str(position)), child
    if "items" in schema:
        yield ("items",), schema["items"]


def instance_of(schema: Schema) -> Any:
    """The smallest value that ``schema`` accepts. Raises ImpossibleSchema."""
    return _instance(schema, schema, 0)


def _instance(schema: Schema, root: Schema, depth: int) -> Any:
    if depth > _DEEPEST * 4:
        raise ImpossibleSchema("the schema refers to itself without an end")
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if (simpler := _simplified(schema, root, depth)) is not None:
        return _instance(simpler, root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind not in _MAKERS:
        raise ImpossibleSchema(f"type {kind!r} is not a JSON type")
    return _MAKERS[kind](schema, root, depth)


def _simplified(schema: Schema, root: Schema, depth: int) -> Schema | None:
    """One schema for a reference or a combination of schemas; None when it is neither."""
    if "$ref" in schema:
        return _referred(schema["$ref"], root)
    if options := schema.get("anyOf", schema.get("oneOf")):
        nulls: list[Schema] = [option for option in options if option.get("type") == "null"]
        chosen: Schema = nulls[0] if nulls and depth > _DEEPEST else options[0]
        return chosen
    if parts := schema.get("allOf"):
        merged: dict[str, Any] = {}
        for part in parts:
            merged |= _referred(part["$ref"], root) if "$ref" in part else part
        return merged
    return None


def _referred(reference: str, root: Schema) -> Schema:
    target: Any = root
    for step in reference.removeprefix("#").strip("/").split("/") if reference != "#" else ():
        try:
            target = target[step.replace("~1", "/").replace("~0", "~")]
        except (KeyError, TypeError):
            raise ImpossibleSchema(f"{reference!r} leads nowhere") from None
    if not isinstance(target, Mapping):
        raise ImpossibleSchema(f"{reference!r} is not a schema")
    return target


def _object(schema: Schema, root: Schema, depth: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    names = schema.get("required", properties)
    return {name: _instance(properties.get(name, {}), root, depth + 1) for name in names}


def _array(schema: Schema, root: Schema, depth: int) -> list[Any]:
    least = schema.get("minItems", 0)
    wanted = max(least, 1 if depth < _DEEPEST and schema.get("maxItems", 1) else 0)
    return [_instance(schema.get("items", {}), root, depth + 1) for _ in range(wanted)]


def _string(schema: Schema, _root: Schema, _depth: int) -> str:
    if known := _FORMATS.get(schema.get("format", "")):
        return known
    least, most = schema.get("minLength", 0), schema.get("maxLength", len(_FILLER) - 1)
    length = min(max(least, len(_FILLER) - 1), max(most, least))
    text = "".join(itertools.islice(itertools.cycle(_FILLER), length))
    pattern = schema.get("pattern", "")
    try:
        fitting = re.search(pattern, text) is not None
    except re.error:
        fitting = False
    if not fitting:
        raise ImpossibleSchema(f"the sandbox makes no strings of pattern {pattern!r}")
    return text


def _number(schema: Schema, _root: Schema, _depth: int) -> float | int:
    whole = schema.get("type") == "integer"
    step = schema.get("multipleOf", 1)
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", 0))
    above, below = math.ceil(low / step) * step, math.floor(high / step) * step
    for value in (0, above, above + step, below, below - step, (low + high) / 2):
        if _fits(value, schema, step) and (not whole or value == int(value)):
            return value
    raise ImpossibleSchema("no number lies within the bounds of the schema")


def _fits(value: float, schema: Schema, step: float) -> bool:
    return (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and schema.get("exclusiveMinimum", value - 1) < value
        and value < schema.get("exclusiveMaximum", value + 1)
        and ("multipleOf" not in schema or value % step == 0)
    )


_MAKERS: dict[str, Callable[[Schema, Schema, int], Any]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "number": _number,
    "integer": _number,
    "boolean": lambda _schema, _root, _depth: True,
    "null": lambda _schema, _root, _depth: None,
}
