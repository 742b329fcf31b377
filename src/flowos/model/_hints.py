"""Port types from type hints: ours, or the Python or NumPy types that map to them."""

from pathlib import PurePath
from typing import Annotated, Any, get_origin

from flowos.model import _ports
from flowos.model._errors import WiringError
from flowos.model._ports import (
    File,
    PortType,
    any_,
    array,
    bool_,
    brief_repr,
    bytes_,
    float64,
    int64,
    str_,
)

_PYTHON_TYPES: dict[object, PortType] = {
    int: int64,
    float: float64,
    bool: bool_,
    str: str_,
    bytes: bytes_,
    object: any_,
    Any: any_,
}


def port_type(where: str, hint: Any) -> PortType:
    """The port type, or the one to which a Python or NumPy type maps."""
    if isinstance(hint, PortType):
        return hint
    if get_origin(hint) is Annotated:
        for part in hint.__metadata__:
            if isinstance(part, PortType):
                return part
    if hint is Any or isinstance(hint, type):
        known = _PYTHON_TYPES.get(hint) or _by_class(hint)
        if known:
            return known
    raise WiringError(f"{where}: expected a port type such as fo.int64, given {brief_repr(hint)}")


def _by_class(hint: type) -> PortType | None:
    if issubclass(hint, PurePath):
        return File
    if hint.__module__ != "numpy":
        return None
    if hint.__name__ == "ndarray":
        return array()
    found = getattr(_ports, f"{hint.__name__.rstrip('_')}_", getattr(_ports, hint.__name__, None))
    return found if isinstance(found, PortType) else None
