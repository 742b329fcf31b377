"""FlowOS: flows of typed tasks on slices of resources, and measurements that can be trusted.

The names below are loaded when first used: importing flowos loads none of its rooms.
"""

from importlib import import_module

_FACE: dict[str, str] = {}

__all__ = sorted(_FACE)


def __getattr__(name: str) -> object:
    room = _FACE.get(name)
    if room is None:
        raise AttributeError(f"module 'flowos' has no attribute {name!r}")
    value = getattr(import_module(room), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_FACE]
