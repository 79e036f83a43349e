"""A JSON schema made fit for strict structured output, without changing what it means.

What belongs here: the rules of strict mode. Every object is closed and requires all its
properties, a reference stands alone, and limits the decoder cannot enforce are left out: they
are checked when the answer is validated.
"""

from collections.abc import Mapping
from typing import Any

UNSUPPORTED = frozenset(
    {
        "default",
        "examples",
        "contains",
        "maxContains",
        "maxLength",
        "maxProperties",
        "minContains",
        "minLength",
        "minProperties",
        "patternProperties",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
"""Keywords that make a provider answer 400 invalid_json_schema in strict mode."""

_NAMED = ("properties", "$defs", "definitions")
"""Keywords whose value maps names to schemas; a property may well be called ``default``."""

_LISTED = ("anyOf", "allOf", "prefixItems")


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` in the strict dialect; the argument is left alone.

    Raises ValueError for a schema strict mode cannot express: an endless inlining, that is a
    recursive reference with keywords beside it, or a reference to nowhere.
    """
    return _strict(schema, schema, ())


def _strict(
    schema: Mapping[str, Any], root: Mapping[str, Any], inlined: tuple[str, ...]
) -> dict[str, Any]:
    if "$ref" in schema and len(schema) > 1:
        return _inlined(schema, root, inlined)
    kept = {key: value for key, value in schema.items() if key not in UNSUPPORTED}
    if "oneOf" in kept:
        kept["anyOf"] = kept.pop("oneOf")
        kept.pop("discriminator", None)
    for key in _NAMED:
        if key in kept:
            kept[key] = {name: _strict(value, root, inlined) for name, value in kept[key].items()}
    for key in _LISTED:
        if key in kept:
            kept[key] = [_strict(value, root, inlined) for value in kept[key]]
    if isinstance(kept.get("items"), Mapping):
        kept["items"] = _strict(kept["items"], root, inlined)
    kind = kept.get("type")
    if "properties" in kept or kind == "object" or (isinstance(kind, list) and "object" in kind):
        kept["additionalProperties"] = False
        kept["required"] = list(kept.get("properties", {}))
    return kept


def _inlined(
    schema: Mapping[str, Any], root: Mapping[str, Any], inlined: tuple[str, ...]
) -> dict[str, Any]:
    """The referenced schema with the keywords that stood beside the reference on top."""
    reference = schema["$ref"]
    if reference in inlined:
        raise ValueError(f"strict output cannot express the recursive reference {reference!r}")
    target: Any = root
    for step in reference.removeprefix("#/").split("/"):
        if not isinstance(target, Mapping) or step not in target:
            raise ValueError(f"the schema's reference {reference!r} leads nowhere")
        target = target[step]
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return _strict({**target, **beside}, root, (*inlined, reference))
