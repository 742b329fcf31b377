"""Signatures that show each keyword of a function that takes them as `**options`.

`help`, editors and notebooks read them; type checkers read `Unpack` of the same TypedDict.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


def with_keywords(
    keywords: type, defaults: Mapping[str, object] | type
) -> Callable[[Function], Function]:
    """Shows the keys of a TypedDict in place of the function's last parameter.

    defaults: of each key, by name or as attributes of a class.
    """
    known = defaults if isinstance(defaults, Mapping) else _defaults_of(defaults)
    named = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=known[name], annotation=type_
        )
        for name, type_ in keywords.__annotations__.items()
    ]

    def shown(function: Function) -> Function:
        signature = inspect.signature(function)
        own = list(signature.parameters.values())[:-1]
        whole = signature.replace(parameters=[*own, *named])
        function.__signature__ = whole  # type: ignore[attr-defined]  # what inspect asks for
        return function

    return shown


def _defaults_of(data: type) -> dict[str, object]:
    return {name: each.default for name, each in inspect.signature(data).parameters.items()}
