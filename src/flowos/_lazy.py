"""Names of a room that are loaded when they are first used (PEP 562).

Loading a room whole costs what its largest part costs: `flowos exec` needs a tenth of it.
"""

import sys
from collections.abc import Callable, Mapping


def lazily(
    room: str, parts: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a room.

    parts: its modules, and the names that each gives to others, with spaces between.
    """
    places = {name: part for part, names in parts.items() for name in names.split()}
    names = sorted(places)

    def load(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module = f"{room}.{places[name]}"
        __import__(module)  # unlike import_module seen by -X importtime
        value = getattr(sys.modules[module], name)
        setattr(sys.modules[room], name, value)
        return value

    return load, lambda: names, names
