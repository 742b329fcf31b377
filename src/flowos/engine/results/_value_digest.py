"""Digests of values: equal content gives equal digests, in every process.

A value is walked by its structure; what it is goes into the digest before its content, with its
length, so that different values never look alike. Identity does not count: a list that holds one
object twice is as one that holds two equal objects, which pickles are not. Sets have no order;
dictionaries keep theirs, as a task may see it. Functions and classes of the user's own modules
count by their code.
"""

import copyreg
import functools
import hashlib
import pickle
import struct
import sys
import types
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from flowos.engine.results._code_digest import (
    Reads,
    has_named,
    is_installed,
    parts_of,
    reads_of,
    stored_by,
)
from flowos.engine.results._own_sources import source_of, sources_of
from flowos.engine.results._packages import package_of

_SHOWN = 80
_OF_EVERY_CLASS = {
    "__abstractmethods__",
    "__annotations__",  # read by itself
    "__annotations_cache__",
    "__dict__",
    "__doc__",
    "__firstlineno__",
    "__module__",
    "__qualname__",
    "__slotnames__",  # left by copyreg, once an object was pickled
    "__static_attributes__",
    "__weakref__",
    "_abc_impl",
}


class NoDigest(Exception):  # noqa: N818 - reads as what is so
    """A value has no stable digest; the text says which and why."""


class Digester:
    """Adds values to one hash.

    lenient: what code reads besides its inputs, and has no digest, is left out instead of raising
    NoDigest. classes: digests of the user's classes that are known, for values of many calls.
    reads, stores: what code that was added reads by name, and names that it sets.
    """

    def __init__(self, *, lenient: bool = False, classes: dict[type, bytes] | None = None) -> None:
        self._classes = classes
        self._hash = hashlib.sha256()
        self._lenient = lenient
        self._around: dict[int, int] = {}
        self._code: dict[int, tuple[int, object]] = {}
        self.reads: Reads = []
        self.stores: set[str] = set()

    def digest(self) -> bytes:
        return self._hash.digest()

    def copy(self) -> "Digester":
        """What is added to the copy is not added here."""
        new = Digester(lenient=self._lenient, classes=self._classes)
        new._hash = self._hash.copy()
        new._around, new._code = dict(self._around), dict(self._code)
        new.reads, new.stores = self.reads, self.stores
        return new

    def add(self, value: object) -> None:
        """Raises NoDigest for a value without a stable digest."""
        add = _PLAIN.get(type(value))
        if add is not None:
            add(self, value)
        elif id(value) in self._around:  # by how far out it is
            self.put(b"around", b"%d" % (len(self._around) - self._around[id(value)]))
        else:
            self._around[id(value)] = len(self._around)
            try:
                _NESTED.get(type(value), Digester._other)(self, value)
            except RecursionError:
                raise NoDigest(f"a {type(value).__name__} is nested too deeply") from None
            finally:
                del self._around[id(value)]

    def put(self, kind: bytes, content: bytes | memoryview = b"") -> None:
        """Content of a kind, with its length in bytes."""
        self._hash.update(b"%b%d:" % (kind, len(content)))
        self._hash.update(content)

    def read(self, name: str, value: object, *, lenient: bool = False) -> None:
        """What code reads by this name, besides its inputs."""
        self.put(b"name", name.encode())
        before = self.copy()
        try:
            self.add(value)
        except NoDigest as error:
            if not (self._lenient or lenient):
                raise NoDigest(f"it reads {name!r}, and {error}") from None
            self._hash, self._code = before._hash, before._code
            self.put(b"left out")

    def items(self, kind: bytes, values: Iterable[object]) -> None:
        """Values in their order."""
        found = list(values)
        self.put(kind, b"%d" % len(found))
        for value in found:
            self.add(value)

    def _unordered(self, values: AbstractSet[object]) -> None:
        """By the digests of the items, sorted: the order differs between processes."""
        found = []
        for value in values:
            one = self.copy()
            one._hash = hashlib.sha256()
            one.add(value)
            found.append(one.digest())
        self.put(type(values).__name__.encode(), b"".join(sorted(found)))

    def _other(self, value: Any) -> None:
        if isinstance(value, type):
            self._class(value)
        elif _is_array(value):
            self._array(value)
        elif isinstance(value, (functools._lru_cache_wrapper, staticmethod, classmethod)):
            self.items(b"wrapped", (type(value).__name__, value.__wrapped__))
        elif isinstance(value, (property, functools.cached_property)):
            parts = [getattr(value, name, None) for name in ("fget", "fset", "fdel", "func")]
            self.items(b"property", parts)
        else:
            self._reduced(value)

    def _function(self, fun: types.FunctionType) -> None:
        """By name and version where it is installed, else by its code and what that reads."""
        if is_installed(fun):
            package = package_of(fun.__module__)
            self.items(b"installed", (fun.__module__, fun.__qualname__, package))
        elif not self._again(fun):
            self.reads += reads_of(fun)
            self.stores |= stored_by(fun)
            self.put(b"function", fun.__name__.encode())
            for name, part in parts_of(fun):
                self.read(name, part)

    def _class(self, cls: type) -> None:
        package = package_of(cls.__module__)
        if package and "<" not in cls.__qualname__:
            self.items(b"installed", (cls.__module__, cls.__qualname__, package))
        elif self._classes is not None:
            if cls not in self._classes:
                one = Digester(lenient=self._lenient)
                one.add(cls)
                self._classes[cls] = one.digest()
            self.put(b"class", self._classes[cls])
        elif not self._again(cls):
            self.put(b"class", cls.__name__.encode())
            self.items(b"bases", cls.__bases__)
            if type(cls) is not type:
                self.read("metaclass", type(cls))
            for name, member in vars(cls).items():
                if name not in _OF_EVERY_CLASS:
                    self.read(name, member)
            self.read("annotations", vars(cls).get("__annotations__"), lenient=True)

    def _again(self, code: object) -> bool:
        """Functions call one another in circles: the second time a number stands for the first."""
        known = self._code.get(id(code))
        if known is None:
            self._code[id(code)] = len(self._code), code
            return False
        self.put(b"again", b"%d" % known[0])
        return True

    def _module(self, module: types.ModuleType) -> None:
        name = module.__name__
        content = package_of(name).encode() or (source_of(name) + sources_of([(name, ())]))
        self.put(b"module", name.encode())
        self.put(b"source", content)

    def _array(self, array: Any) -> None:
        import numpy as np

        dtype = array.dtype
        self.items(b"array", array.shape)
        if dtype.hasobject:
            self.items(b"objects", array.flat)
            return
        self.add(dtype.str if dtype.names is None and dtype.subdtype is None else dtype)
        flat = np.ascontiguousarray(array).reshape(-1)
        self.put(b"bytes", flat.view(np.uint8).data if flat.nbytes else b"")

    def _scalar(self, value: Any) -> None:
        self.put(b"scalar")
        self.add(value.dtype.str if value.dtype.names is None else value.dtype)
        self.put(b"bytes", value.tobytes())

    def _reduced(self, value: Any) -> None:
        """By what a pickle would be made of."""
        if _is_plain_scalar(value):
            self._scalar(value)
            return
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            parts: Any = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception as error:
            why = " ".join(str(error).split())[:_SHOWN] or type(error).__name__
            raise NoDigest(f"a {type(value).__name__} has no stable digest ({why})") from None
        if isinstance(parts, str):
            self._named(parts, value)
        else:
            self.items(b"object", [list(p) if hasattr(p, "__next__") else p for p in parts])

    def _named(self, name: str, value: Any) -> None:
        """What a pickle would have by its name; a compiled function by the file that it is in."""
        kind = type(value)
        module = getattr(value, "__module__", None) or pickle.whichmodule(value, name)  # type: ignore[attr-defined]
        package = package_of(module)
        if not has_named(module, name, value):
            raise NoDigest(f"a {kind.__name__} has no stable digest ({module} has no {name!r})")
        self.items(b"named", (package or module, name, package))
        if package:
            return
        if not package_of(kind.__module__) and kind.__module__ in sys.modules:
            slots = [getattr(value, each, None) for each in copyreg._slotnames(kind)]  # type: ignore[attr-defined]
            self.items(b"object", (kind, getattr(value, "__dict__", None), slots))
        elif not (getattr(sys.modules[module], "__file__", None) or ".py").endswith(".py"):
            self.put(b"source", source_of(module))


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) in (numpy.ndarray, numpy.memmap)


def _is_plain_scalar(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic) and not value.dtype.hasobject


_Add = Callable[[Digester, Any], None]
_PLAIN: dict[type, _Add] = {
    type(None): lambda to, _: to.put(b"none"),
    bool: lambda to, value: to.put(b"bool", b"%d" % value),
    int: lambda to, value: to.put(b"int", b"%x" % value),
    float: lambda to, value: to.put(b"float", struct.pack("<d", value)),
    complex: lambda to, value: to.put(b"complex", struct.pack("<dd", value.real, value.imag)),
    str: lambda to, value: to.put(b"str", value.encode(errors="surrogatepass")),
    bytes: lambda to, value: to.put(b"bytes", value),
    bytearray: lambda to, value: to.put(b"bytearray", value),
    types.EllipsisType: lambda to, _: to.put(b"..."),
    types.FunctionType: Digester._function,
    types.ModuleType: Digester._module,
    types.MemberDescriptorType: lambda to, value: to.put(b"member", value.__name__.encode()),
    types.GetSetDescriptorType: lambda to, value: to.put(b"member", value.__name__.encode()),
}
_NESTED: dict[type, _Add] = {
    list: lambda to, value: to.items(b"list", value),
    tuple: lambda to, value: to.items(b"tuple", value),
    set: Digester._unordered,
    frozenset: Digester._unordered,
    dict: lambda to, value: to.items(b"dict", (x for item in value.items() for x in item)),
    types.MappingProxyType: lambda to, value: to.items(
        b"dict", (x for item in value.items() for x in item)
    ),
}
