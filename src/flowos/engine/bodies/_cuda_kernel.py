"""A kernel of CUDA, called with the values of a task."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar

from flowos.engine.bodies._call_sizes import CallSizes, Found
from flowos.engine.bodies._cuda_engine import CudaEngine, CudaMemory, cuda_engine
from flowos.engine.bodies._kept import CompileFailed
from flowos.engine.bodies._nvrtc import cubin_of, cuda_arguments
from flowos.engine.bodies._outputs import as_outputs
from flowos.engine.bodies._prepared import BodyError, PreparedBody
from flowos.model import EngineArray, NativePorts, SourceCode, WorkSize

__flowos_frames__ = True
_AXES = 3


class CudaKernel(PreparedBody):
    """It is compiled, or found in the cache, when it is called first in a process.

    grid: blocks, by axis. block: threads of one. arch: "" is that of the GPU.
    stays: numbers of the outputs that stay in the memory of the GPU.
    """

    __slots__ = ("arch", "block", "code", "grid", "name", "ports", "stays")
    home: ClassVar = "cuda"

    def __init__(
        self,
        code: SourceCode,
        name: str,
        ports: NativePorts,
        grid: tuple[WorkSize, ...],
        block: tuple[int, ...],
        arch: str,
        stays: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__()
        self.code, self.name, self.ports = code, name, ports
        self.grid, self.block, self.arch, self.stays = grid, block, arch, stays

    def __reduce__(self) -> tuple[object, ...]:
        words = (self.code, self.name, self.ports, self.grid, self.block, self.arch, self.stays)
        return CudaKernel, words

    def leaving(self, outputs: frozenset[int]) -> "CudaKernel":
        """The same, whose outputs with these numbers stay where they were made."""
        words = (self.code, self.name, self.ports, self.grid, self.block, self.arch)
        return CudaKernel(*words, outputs)

    def cubin(self, arch: str) -> tuple[str, bytes]:
        """The name of the kernel in it, and the binary for this architecture."""
        return cubin_of(self.code, self.name, self.ports, arch)

    def _prepared(self) -> Callable[..., Any]:
        known = self.cubin(self.arch) if self.arch else None  # its errors need no GPU to be seen
        engine = cuda_engine()
        engine.enter()
        name, cubin = known or self.cubin(engine.arch)
        function = engine.loaded(cubin, name)
        _check_block(engine, function, self)
        return _Caller(engine, function, self).call


class _Caller:
    def __init__(self, engine: CudaEngine, function: Any, of: CudaKernel) -> None:
        import numpy as np

        self._np, self._engine, self._function, self._of = np, engine, function, of
        self._axes = (*of.block, *(1,) * (_AXES - len(of.block)))
        self._sizes = CallSizes(of.ports, of.grid, lambda _: None)
        self._passed = [
            np.dtype("u8" if type_.endswith("*") else dtype)
            for _, type_, dtype in cuda_arguments(of.ports)
        ]
        self._idle: list[Any] = []

    def call(self, *values: Any) -> Any:
        key, sizes = self._sizes.key(values), self._sizes
        found = sizes.known.get(key) or sizes(key, values)
        if not found.work:
            return sizes.nothing(found)
        try:
            self._engine.enter()
            stream = self._idle.pop() if self._idle else self._engine.new_stream()
            try:
                return as_outputs(self._of.ports, self._run(stream, values, found))
            finally:
                self._idle.append(stream)
        except BodyError as error:
            raise BodyError(f"{self._of.name}: {error}") from None

    def _run(self, stream: Any, values: Sequence[Any], found: Found) -> list[Any]:
        arguments = [*values, *found.lengths]
        sent: dict[int, CudaMemory] = {}
        for i in found.full:
            if id(values[i]) not in sent:
                sent[id(values[i])] = self._sent(stream, values[i])
            arguments[i] = sent[id(values[i])]
        for i in found.empty:
            arguments[i] = None
        made = [
            EngineArray(self._new(stream, size), shape, dtype, self._read, "cuda")
            for shape, dtype, size in found.outputs
        ]
        arguments += [array.memory for array in made]
        self._launch(stream, found.work, arguments)
        stays = self._of.stays
        return [array if i in stays else array.on_host() for i, array in enumerate(made)]

    def _launch(self, stream: Any, grid: Sequence[int], arguments: Sequence[Any]) -> None:
        """Each argument lies in memory of its own; the driver is given their addresses."""
        np, engine = self._np, self._engine
        pairs = zip(arguments, self._passed, strict=True)
        held = [np.array(_passed(value), dtype) for value, dtype in pairs]
        addresses = np.array([each.ctypes.data for each in held], np.uint64)
        axes = (*grid, *(1,) * (_AXES - len(grid)), *self._axes)
        launch, synchronize = engine.driver.cuLaunchKernel, engine.driver.cuStreamSynchronize
        engine.ask(launch(self._function, *axes, 0, stream, addresses.ctypes.data, 0))
        engine.ask(synchronize(stream))

    def _new(self, stream: Any, size: int) -> CudaMemory | None:
        return CudaMemory(self._engine, size, stream) if size else None

    def _sent(self, stream: Any, value: Any) -> CudaMemory:
        if type(value) is EngineArray:
            memory: CudaMemory = value.memory
            return memory
        array, engine = self._np.ascontiguousarray(value), self._engine
        memory, copy = CudaMemory(engine, array.nbytes, stream), engine.driver.cuMemcpyHtoDAsync
        engine.ask(copy(memory.pointer, array.ctypes.data, array.nbytes, stream))
        engine.ask(engine.driver.cuStreamSynchronize(stream))  # `array` may be a copy, gone then
        engine.copies_in += 1
        return memory

    def _read(self, array: EngineArray) -> Any:
        found, engine = self._np.empty(array.shape, array.dtype), self._engine
        if found.size:
            engine.enter()
            copy = engine.driver.cuMemcpyDtoH
            engine.ask(copy(found.ctypes.data, array.memory.pointer, found.nbytes))
            engine.copies_out += 1
        return found


def _passed(value: Any) -> Any:
    """Of memory its address; 0 if there is none."""
    if type(value) is CudaMemory:
        return int(value.pointer)
    return 0 if value is None else value


def _check_block(engine: CudaEngine, function: Any, of: CudaKernel) -> None:
    """Raises CompileFailed if the kernel has no blocks that large."""
    which = engine.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    (most,) = engine.ask(engine.driver.cuFuncGetAttribute(which, function))
    if prod(of.block) > most:
        raise CompileFailed(
            f"block={of.block}: kernel {of.name} runs in blocks of {most} threads at most"
        )
