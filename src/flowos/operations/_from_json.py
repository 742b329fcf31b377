"""Values of composite port types from JSON: tuples, sets, objects of the user's classes, arrays."""

import operator
import sys
from enum import Enum
from typing import Any

from flowos.model import Array, DictOf, ListOf, ObjectOf, OneOf, PortType, TupleOf, any_


def from_json(kind: PortType, given: Any) -> Any:
    """The JSON value as the type has it; as it is where it does not fit, for the port to refuse.

    An object is made of the JSON object of its fields, a member of an Enum of its name.
    """
    match kind:
        case OneOf(options=options):
            made = ((option, from_json(option, given)) for option in options)
            return next((value for option, value in made if option.check(value) is None), given)
        case ListOf(kinds=kinds, item=item) if isinstance(given, list):
            return kinds[0](from_json(item, each) for each in given)
        case TupleOf(items=items) if isinstance(given, list) and len(given) == len(items):
            return tuple(map(from_json, items, given))
        case DictOf(value=value) if isinstance(given, dict):
            return {name: from_json(value, each) for name, each in given.items()}
        case ObjectOf():
            return _object(kind, given)
        case Array() if isinstance(given, list):
            return _array(kind, given)
        case _:
            return given


def _object(kind: ObjectOf, given: Any) -> Any:
    module, _, name = kind.of.partition(":")
    try:
        made: Any = operator.attrgetter(name)(sys.modules[module])
        if issubclass(made, Enum):
            return made[given]
        if isinstance(given, dict):
            types = dict(kind.fields)
            return made(**{n: from_json(types.get(n, any_), v) for n, v in given.items()})
    except (AttributeError, KeyError, TypeError):  # a class inside a function, or other fields
        pass
    return given


def _array(kind: Array, given: Any) -> Any:
    import numpy as np

    try:
        return np.array(given, dtype=kind.dtype)
    except (TypeError, ValueError):
        return given
