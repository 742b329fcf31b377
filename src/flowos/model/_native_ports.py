"""Ports of tasks with a body in another language, and what such a body is called with."""

from collections.abc import Collection, Mapping, Sequence

from flowos._dataclasses import dataclass
from flowos.model._bodies import PortSpec
from flowos.model._errors import WiringError
from flowos.model._extents import Extents, bind_extents, named_extents
from flowos.model._hints import port_type
from flowos.model._ports import Array, Boolean, Floating, Integer, PortType, brief_repr

_INTEGERS = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
NATIVE_DTYPES = frozenset({"bool", "float32", "float64", "complex64", "complex128"} | _INTEGERS)
"""Of arrays that C, C++ and Fortran have a type for."""
_REAL = "a real number or an array of them"
_Has = tuple[Collection[str], Collection[PortType]]
"""The dtypes that a body has, and what it has besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativePorts:
    """What a native body is called with, in this order: the inputs; a 64-bit integer for each name
    in `lengths`; a pointer for each output, to memory that the caller has allocated.

    extents: all named ones. lengths: those which are no input themselves, by first appearance.
    """

    inputs: tuple[PortSpec, ...]
    outputs: tuple[PortSpec, ...]
    extents: Extents
    lengths: tuple[str, ...]

    def sizes(self, values: Sequence[object]) -> dict[str, int]:
        """Of each named extent. Raises PortIncompatible if inputs disagree."""
        return bind_extents(self.extents, values)

    def shapes(self, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
        """Of each output; () for a scalar."""
        return [
            tuple(sizes[n] if isinstance(n, str) else int(n or 0) for n in shape_of(port.type))
            for port in self.outputs
        ]


def shape_of(type_: PortType) -> tuple[int | str | None, ...]:
    """Of an array that is declared whole; () for a scalar."""
    return type_.shape or () if isinstance(type_, Array) else ()


def dtype_of(type_: PortType) -> str:
    """The name of NumPy's dtype for a scalar, or for the elements of an array."""
    return str(type_.dtype) if isinstance(type_, Array) else type_.name.rstrip("_")


def native_ports(
    where: str,
    inputs: object,
    outputs: object,
    dtypes: Collection[str] = NATIVE_DTYPES,
    others: Collection[object] = (),
) -> NativePorts:
    """The ports of a native body. where: words for it, such as "cxx 'triad'".

    dtypes: what it has, of arrays and scalars. others: hints of what it has besides. Raises
    WiringError for a port that it cannot have, or an extent that no input says.
    """
    has = dtypes, [port_type(where, hint) for hint in others]
    takes = _specs(where, "input", inputs, has)
    gives = _specs(where, "output", outputs, has)
    extents = named_extents(takes, gives)
    for name, of_inputs, of_outputs in extents:
        if not of_inputs:
            raise WiringError(
                f"{where}, output {of_outputs[0][0]!r}: no input says what extent {name!r} is; "
                f"add an input {name!r} of fo.int64"
            )
    lengths = (n for n, places, _ in extents if all(place[2] is not None for place in places))
    return NativePorts(inputs=takes, outputs=gives, extents=extents, lengths=tuple(lengths))


def _specs(where: str, kind: str, given: object, has: _Has) -> tuple[PortSpec, ...]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise WiringError(
            f"{where}: {kind}s={brief_repr(given)}; expected a dictionary of names and types, "
            'such as {"b": fo.array(fo.float32, ("n",))}'
        )
    return tuple(
        PortSpec(name, _checked(f"{where}, {kind} {name!r}", type_, has))
        for name, type_ in given.items()
    )


def _checked(where: str, hint: object, has: _Has) -> PortType:
    dtypes, others = has
    type_ = port_type(where, hint)
    if type_ in others:
        return type_
    if not isinstance(type_, (Array, Boolean, Floating, Integer)):
        arrays = f"an array, fo.array(fo.{type_}, (1,))" if str(type_) in dtypes else _REAL
        raise WiringError(f"{where}: {type_} has no type there; use {arrays}")
    open_shape = isinstance(type_, Array) and (type_.shape is None or None in type_.shape)
    if open_shape or (isinstance(type_, Array) and type_.dtype is None):
        raise WiringError(f"{where}: {type_} leaves its dtype or an extent open; say or name each")
    if dtype_of(type_) not in dtypes:
        raise WiringError(
            f"{where}: it cannot have {dtype_of(type_)}, but {', '.join(sorted(dtypes))}"
        )
    return type_
