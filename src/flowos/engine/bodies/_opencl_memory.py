"""How arrays get to the memory of an OpenCL device, and back."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from flowos.engine.bodies._call_sizes import Found
from flowos.engine.bodies._opencl_engine import OpenClEngine
from flowos.model import EngineArray

__flowos_frames__ = True
Put = Callable[[Any, list[Any], Found], list[Any]]
"""Given a queue, the arguments and what was found of the call's sizes, arrays among the arguments
become buffers, or None where they are empty, and those of the outputs are added. It gives what
`Get` makes the outputs of."""
Get = Callable[[Any, list[Any], list[Any], Collection[int]], Sequence[Any]]
"""The outputs after the call, given a queue, the arguments, what `Put` gave, and the numbers of the
outputs that stay where they are."""


def memory_of(engine: OpenClEngine) -> tuple[Put, Get | None]:
    """None: what `Put` gave are the outputs."""
    if engine.memory == "own":
        own = OwnMemory(engine)
        return own.put, own.get
    return _shared(engine), _mapped(engine) if engine.memory == "mapped" else None


def _shared(engine: OpenClEngine) -> Put:
    """Kernels work on arrays where they lie: nothing is copied, unless it has strides."""
    import numpy as np

    flags, buffer, context = engine.cl.mem_flags, engine.cl.Buffer, engine.context
    read, write = flags.READ_ONLY | flags.USE_HOST_PTR, flags.READ_WRITE | flags.USE_HOST_PTR
    empty, contiguous = np.empty, np.ascontiguousarray

    def put(_: Any, arguments: list[Any], found: Found) -> list[Any]:
        for i in found.full:
            array = arguments[i]
            if not array.flags.c_contiguous:
                array = contiguous(array)
            arguments[i] = buffer(context, read, 0, array)
        for i in found.empty:
            arguments[i] = None
        made = []
        for shape, dtype, size in found.outputs:
            array = empty(shape, dtype)
            made.append(array)
            arguments.append(buffer(context, write, 0, array) if size else None)
        return made

    return put


def _mapped(engine: OpenClEngine) -> Get:
    """Of a platform that has to be asked to let arrays be seen."""
    enqueue_map, flag = engine.cl.enqueue_map_buffer, engine.cl.map_flags.READ

    def get(queue: Any, arguments: list[Any], made: list[Any], _: Collection[int]) -> list[Any]:
        for array, buffer in zip(made, arguments[-len(made) :], strict=True):
            if buffer is not None:
                seen, _event = enqueue_map(queue, buffer, flag, 0, (array.nbytes,), "u1")
                seen.base.release(queue)
        return made

    return get


class OwnMemory:
    """Arrays are copied to the device and back; one that stays there is an `EngineArray`."""

    def __init__(self, engine: OpenClEngine) -> None:
        self._engine, self._cl, self._context = engine, engine.cl, engine.context
        self._flags = engine.cl.mem_flags.READ_WRITE

    def put(self, queue: Any, arguments: list[Any], found: Found) -> list[Any]:
        sent: dict[int, Any] = {}
        for i in found.full:
            array = arguments[i]
            if id(array) not in sent:
                sent[id(array)] = self._sent(queue, array)
            arguments[i] = sent[id(array)]
        for i in found.empty:
            arguments[i] = None
        made = [
            EngineArray(self._allocated(size), shape, dtype, self._read, "opencl")
            for shape, dtype, size in found.outputs
        ]
        arguments += [array.memory for array in made]
        return made

    def get(
        self, _: Any, __: list[Any], made: list[EngineArray], stays: Collection[int]
    ) -> list[Any]:
        return [array if i in stays else array.on_host() for i, array in enumerate(made)]

    def _allocated(self, size: int) -> Any:
        return self._cl.Buffer(self._context, self._flags, size) if size else None

    def _sent(self, queue: Any, array: Any) -> Any:
        if type(array) is EngineArray:
            return array.memory
        import numpy as np

        buffer = self._allocated(array.nbytes)
        self._cl.enqueue_copy(queue, buffer, np.ascontiguousarray(array))
        self._engine.copies_in += 1
        return buffer

    def _read(self, array: EngineArray) -> Any:
        import numpy as np

        found = np.empty(array.shape, array.dtype)
        if found.size:
            self._cl.enqueue_copy(self._cl.CommandQueue(self._context), found, array.memory)
            self._engine.copies_out += 1
        return found
