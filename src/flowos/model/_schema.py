"""JSON Schema (draft 2020-12) of `to_json`'s output, from the type hints of the dataclasses."""

from pathlib import PurePath
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from flowos._dataclasses import fields

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    PurePath: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},
}
"""A number is null if it is unknown or not finite."""


def schema_of(noun: type) -> dict[str, Any]:
    """The schema of a dataclass; nested dataclasses are under "$defs" by their names."""
    made: dict[str, dict[str, Any]] = {}
    reference = _schema(noun, made)
    return {**reference, "$defs": dict(sorted(made.items()))}


def _schema(hint: Any, made: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type):
        if hint.__name__ not in made:
            made[hint.__name__] = {}  # a dataclass may contain itself
            made[hint.__name__] = _object(hint, made)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    inner = get_args(hint)
    if get_origin(hint) is Literal:
        return {"enum": list(inner)}
    if get_origin(hint) is tuple:
        return _array(inner, made)
    (known,) = (each for each in inner if each is not NoneType)
    return {"anyOf": [_schema(known, made), {"type": "null"}]}


def _object(noun: type, made: dict[str, dict[str, Any]]) -> dict[str, Any]:
    hints = get_type_hints(noun)
    names = [f.name for f in fields(noun)]
    described = {
        f.name: {"description": f.metadata["doc"]} for f in fields(noun) if "doc" in f.metadata
    }
    return {
        "type": "object",
        "description": (noun.__doc__ or "").strip().replace("\n    ", "\n"),
        "properties": {
            name: _schema(hints[name], made) | described.get(name, {}) for name in names
        },
        "required": names,
    }


def _array(items: tuple[Any, ...], made: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if items[-1] is Ellipsis:
        return {"type": "array", "items": _schema(items[0], made)}
    each = [_schema(item, made) for item in items]
    return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}
