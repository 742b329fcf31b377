"""A kernel of OpenCL, called with the values of a task."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from re import fullmatch
from typing import Any

from flowos.engine.bodies._call_sizes import CallSizes, is_one_array
from flowos.engine.bodies._kept import CompileFailed
from flowos.engine.bodies._opencl_engine import OpenClEngine, opencl_engine
from flowos.engine.bodies._opencl_memory import memory_of
from flowos.engine.bodies._outputs import as_outputs
from flowos.engine.bodies._prepared import BodyError, PreparedBody
from flowos.model import (
    HOST,
    Array,
    NativePorts,
    SourceCode,
    WorkSize,
    dtype_of,
    group_incompatibility,
)

__flowos_frames__ = True
OPENCL_TYPES = {
    **{f"int{bits}": name for bits, name in ((8, "char"), (16, "short"), (32, "int"))},
    **{f"uint{bits}": name for bits, name in ((8, "uchar"), (16, "ushort"), (32, "uint"))},
    **{"int64": "long", "uint64": "ulong", "float32": "float", "float64": "double"},
}
"""NumPy's dtypes, and what they are in OpenCL C; it has no bool and no complex arguments."""
_KNOWN = r"(?:u?(?:char|short|int|long)|float|double|half)\d*\**"


class OpenClKernel(PreparedBody):
    """Its program is built when it is called first in a process.

    size: of the work, by axis. group: work items of a group, () as the platform likes.
    stays: numbers of the outputs that stay in the memory of the device.
    """

    __slots__ = ("code", "group", "name", "ports", "size", "stays")

    def __init__(
        self,
        code: SourceCode,
        name: str,
        ports: NativePorts,
        size: tuple[WorkSize, ...],
        group: tuple[int, ...],
        stays: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__()
        self.code, self.name, self.ports = code, name, ports
        self.size, self.group, self.stays = size, group, stays

    def __reduce__(self) -> tuple[object, ...]:
        words = (self.code, self.name, self.ports, self.size, self.group, self.stays)
        return OpenClKernel, words

    def leaving(self, outputs: frozenset[int]) -> "OpenClKernel":
        """The same, whose outputs with these numbers stay where they were made."""
        words = (self.code, self.name, self.ports, self.size, self.group)
        return OpenClKernel(*words, outputs)

    @property
    def home(self) -> str:
        """Where its arrays are: a CPU works on those of NumPy."""
        return "opencl" if opencl_engine().memory == "own" else HOST

    def _prepared(self) -> Callable[..., Any]:
        engine = opencl_engine()
        kernel = engine.kernel(self.code, self.name)
        _check_arguments(engine.cl, kernel, self)
        _check_group(engine, kernel, self.group)
        return _caller(engine, self)


def _caller(engine: OpenClEngine, of: OpenClKernel) -> Callable[..., Any]:
    """Allocations, copies and the wait are the platform's; all else is looked up by shapes."""
    cl, ports, group, stays = engine.cl, of.ports, of.group or None, of.stays
    put, get = memory_of(engine)
    sizes = CallSizes(ports, of.size, partial(_refuse, of))
    known, key_of, plain = sizes.known, sizes.key, is_one_array(ports)
    enqueue = cl.enqueue_nd_range_kernel
    idle: list[tuple[Any, Any]] = []

    def call(*values: Any) -> Any:
        key = key_of(values)
        found = known.get(key) or sizes(key, values)
        if not found.work:
            return sizes.nothing(found)
        kernel, queue = idle.pop() if idle else _new(engine, of)
        try:
            arguments = [*values, *found.lengths]
            made = put(queue, arguments, found)
            kernel.set_args(*arguments)
            enqueue(queue, kernel, found.work, group).wait()
            arrays = made if get is None else get(queue, arguments, made, stays)
        except cl.Error as error:
            raise BodyError(f"{of.name}: {' '.join(str(error).split())}") from None
        finally:
            idle.append((kernel, queue))
        return arrays[0] if plain else as_outputs(ports, arrays)

    return call


def _refuse(of: OpenClKernel, work: Sequence[int]) -> None:
    if of.group and (why := group_incompatibility(of.group, work, of.size)):
        raise BodyError(f"{of.name}: {why}")


def _new(engine: OpenClEngine, of: OpenClKernel) -> tuple[Any, Any]:
    """A kernel and a queue, for one call at a time."""
    import numpy as np

    kernel, ports = engine.kernel(of.code, of.name), of.ports
    types = [
        None if isinstance(p.type, Array) else np.dtype(dtype_of(p.type)) for p in ports.inputs
    ]
    lengths = [np.dtype(np.int64)] * len(ports.lengths)
    kernel.set_arg_types([*types, *lengths, *[None] * len(ports.outputs)])
    return kernel, engine.cl.CommandQueue(engine.context)


def _check_group(engine: OpenClEngine, kernel: Any, group: Sequence[int]) -> None:
    """Raises CompileFailed if the device has no such groups, or the kernel requires others."""
    cl, device = engine.cl, engine.device
    required = kernel.get_work_group_info(cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE, device)
    if any(required) and [*group, *(1,) * (len(required) - len(group))] != list(required):
        raise CompileFailed(
            f"group={tuple(group)}: the kernel requires groups of {tuple(required)} "
            "(reqd_work_group_size)"
        )
    if not group:
        return
    most = kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device)
    axes = zip(group, device.max_work_item_sizes, strict=False)
    if prod(group) > most or any(number > limit for number, limit in axes):
        raise CompileFailed(
            f"group={tuple(group)}: {' '.join(device.name.split())} has groups of {most} at most"
        )


def _check_arguments(cl: Any, kernel: Any, of: OpenClKernel) -> None:
    """Raises CompileFailed if the kernel takes others than those of the ports."""
    expected = list(_arguments(of.ports))
    if kernel.num_args != len(expected):
        raise CompileFailed(
            f"{of.code.name}: kernel {of.name} takes {kernel.num_args} arguments, its ports make "
            f"{len(expected)}: {', '.join(f'{type_} {name}' for name, type_ in expected)}"
        )
    try:
        for number, (name, type_) in enumerate(expected):
            found = _argument_type(cl, kernel, number)
            if fullmatch(_KNOWN, found) and found != type_.replace(" ", ""):
                raise CompileFailed(
                    f"{of.code.name}: argument {number + 1} of kernel {of.name} is {found}, "
                    f"{name} is passed as {type_}"
                )
    except cl.Error:  # this platform does not say
        return


def _argument_type(cl: Any, kernel: Any, number: int) -> str:
    found = str(kernel.get_arg_info(number, cl.kernel_arg_info.TYPE_NAME))
    return found.replace("unsigned ", "u").replace(" ", "")


def _arguments(ports: NativePorts) -> Iterator[tuple[str, str]]:
    """The name and the type of each."""
    for port in ports.inputs:
        star = " *" if isinstance(port.type, Array) else ""
        yield port.name, f"{OPENCL_TYPES[dtype_of(port.type)]}{star}"
    for name in ports.lengths:
        yield name, "long"
    for port in ports.outputs:
        yield port.name, f"{OPENCL_TYPES[dtype_of(port.type)]} *"
