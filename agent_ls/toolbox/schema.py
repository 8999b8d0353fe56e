"""Check arguments against the part of JSON Schema that the contracts in tools/ use."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "array": (list, tuple),
    "object": (Mapping,),
}  # fmt: skip
_KEYWORDS = {
    "string": {"enum", "minLength"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
    "boolean": set(),
    "array": {"items", "minItems", "maxItems"},
    "object": {"properties", "required", "additionalProperties"},
}
_NAMES = {
    dict: "object", list: "array", tuple: "array", str: "string", bool: "boolean", int: "integer",
    float: "number", type(None): "null",
}  # fmt: skip


def schema_problems(schema: Mapping[str, Any], where: str = "parameters") -> list[str]:
    """What in a schema this checker does not know, so that nothing in a contract goes unchecked."""
    kind = schema.get("type")
    if kind not in _TYPES:
        return [f"{where}: type must be one of {', '.join(_TYPES)}"]
    unknown = set(schema) - _KEYWORDS[kind] - {"type", "description"}
    problems = [f"{where}: {keyword!r} is not supported for {kind}" for keyword in sorted(unknown)]
    if kind == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            problems.append(f"{where}: additionalProperties must be false")
        problems += [
            f"{where}: required {name!r} is no property"
            for name in schema.get("required", ())
            if name not in properties
        ]
        for name, inner in properties.items():
            problems += schema_problems(inner, f"{where}.{name}")
    if kind == "array":
        problems += schema_problems(schema.get("items", {}), f"{where}[]")
    return problems


def argument_problems(schema: Mapping[str, Any], value: Any, where: str = "") -> list[str]:
    """Everything that is wrong with `value`, one sentence each; [] when it fits. Nothing is converted,
    except that null for an optional property counts as not given."""
    kind = schema["type"]
    called = where or "the arguments"
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return [f"{called} must be of type {kind}, not {_NAMES.get(type(value), type(value).__name__)}"]
    if isinstance(value, str):
        return _string_problems(schema, value, called)
    if isinstance(value, Mapping):
        return _object_problems(schema, value, where)
    if isinstance(value, (list, tuple)):
        problems = []
        if len(value) < schema.get("minItems", 0):
            problems.append(f"{called} must have at least {schema['minItems']} items")
        if len(value) > schema.get("maxItems", len(value)):
            problems.append(f"{called} must have at most {schema['maxItems']} items")
        for index, item in enumerate(value):
            problems += argument_problems(schema["items"], item, f"{where}[{index}]")
        return problems
    if value < schema.get("minimum", value):
        return [f"{called} must be at least {schema['minimum']}"]
    if value > schema.get("maximum", value):
        return [f"{called} must be at most {schema['maximum']}"]
    return []


def _string_problems(schema: Mapping[str, Any], value: str, called: str) -> list[str]:
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        return [f"{called} contains characters that are no text (NUL or half of a surrogate pair)"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{called} must be one of {', '.join(map(repr, schema['enum']))}, not {value[:60]!r}"]
    if len(value) < schema.get("minLength", 0):
        return [f"{called} must not be empty"]
    return []


def _object_problems(schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> list[str]:
    properties, required = schema["properties"], schema.get("required", ())
    prefix = f"{where}." if where else ""
    problems = [f"{prefix}{name} is missing" for name in required if name not in value]
    for name, item in value.items():
        if name not in properties:
            close = difflib.get_close_matches(str(name), list(properties), 1)
            hint = (
                f"; did you mean {close[0]}?" if close else f"; known are {', '.join(properties) or 'none'}"
            )
            problems.append(f"{prefix}{str(name)[:60]} is unknown{hint}")
        elif item is not None or name in required:
            problems += argument_problems(properties[name], item, prefix + name)
    return problems
