"""Names of a package that are loaded on first use (PEP 562).

Loading a whole package costs as much as its largest module: `flowos exec` needs a tenth of it.
"""

import sys
from collections.abc import Callable, Mapping


def lazily(
    room: str, parts: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    parts: its modules, and the public names of each, separated by spaces.
    """
    places = {name: part for part, names in parts.items() for name in names.split()}
    names = sorted(places)

    def load(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module = f"{room}.{places[name]}"
        __import__(module)  # unlike import_module shown by -X importtime
        value = getattr(sys.modules[module], name)
        setattr(sys.modules[room], name, value)
        return value

    return load, lambda: names, names
