"""Values that lie in Ray's stores: what this process has of them is a reference."""

import sys
from typing import Any


class InRay:
    """A value on one of Ray's nodes. ref: Ray's own reference to it."""

    __slots__ = ("_ray", "ref")

    def __init__(self, ray: Any, ref: Any) -> None:
        self._ray, self.ref = ray, ref

    def open(self) -> Any:
        """The value itself, in this process."""
        return writable(self._ray.get(self.ref))


class Nth:
    """Stands for a value in Ray among values that are sent: the nth of those."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[type["Nth"], tuple[int]]:
        return Nth, (self.number,)


def writable(value: Any) -> Any:
    """The same, of which arrays may be changed: those in Ray's stores are for all to read."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value if value.flags.writeable else value.copy()
    if type(value) in (list, tuple):
        return type(value)(map(writable, value))
    if type(value) is dict:
        return {key: writable(each) for key, each in value.items()}
    return value
