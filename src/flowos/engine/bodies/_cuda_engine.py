"""The GPU of this process by the driver of CUDA: its context, memory and kernels."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from flowos.engine.bodies._held_programs import takers
from flowos.engine.bodies._prepared import BodyError
from flowos.model import EngineMissing

__flowos_frames__ = True
_KEEP = 2**64 - 1
_REMEDY = "run it where an NVIDIA GPU and its driver are"
_opening = threading.Lock()
_opened: list["CudaEngine"] = []


def cuda_engine() -> "CudaEngine":
    """The first GPU that CUDA_VISIBLE_DEVICES leaves us. Raises EngineMissing if there is none."""
    with _opening:
        if not _opened:
            _opened.append(CudaEngine(_driver()))
        return _opened[0]


class CudaEngine:
    """arch: of its GPU, as sm_90. copies_in, copies_out: of arrays."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        try:
            self.ask(driver.cuInit(0))
            (device,) = self.ask(driver.cuDeviceGet(0))
            (self.context,) = self.ask(driver.cuDevicePrimaryCtxRetain(device))
            major, minor = (
                self.ask(
                    driver.cuDeviceGetAttribute(getattr(driver.CUdevice_attribute, name), device)
                )
                for name in (
                    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
                    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
                )
            )
            (self._pool,) = self.ask(driver.cuDeviceGetDefaultMemPool(device))
            kept = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
            self.ask(driver.cuMemPoolSetAttribute(self._pool, kept, driver.cuuint64_t(_KEEP)))
        except BodyError as error:
            raise EngineMissing(f"there is no GPU that CUDA can use ({error}): {_REMEDY}") from None
        self.arch = f"sm_{major[0]}{minor[0]}"
        self.copies_in = self.copies_out = 0

    def ask(self, answer: tuple[Any, ...]) -> list[Any]:
        """What a function of the driver answered. Raises BodyError if it failed."""
        result, *rest = answer
        if result != self.driver.CUresult.CUDA_SUCCESS:
            said = self.driver.cuGetErrorString(result)[1]
            raise BodyError(f"{result.name} ({(said or b'').decode()})")
        return rest

    def enter(self) -> None:
        """Make the context that of this thread."""
        self.ask(self.driver.cuCtxSetCurrent(self.context))

    def new_stream(self) -> Any:
        flag = self.driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        return self.ask(self.driver.cuStreamCreate(flag))[0]

    def trim(self) -> None:
        """Give the GPU back what is kept for the next array."""
        with suppress(Exception):  # a kernel that failed may have spoilt the context
            self.enter()
            self.ask(self.driver.cuCtxSynchronize())  # what is still being freed counts as used
            self.ask(self.driver.cuMemPoolTrimTo(self._pool, 0))

    def loaded(self, cubin: bytes, kernel: str) -> Any:
        """A kernel, which stays loaded as long as the process."""
        (module,) = self.ask(self.driver.cuModuleLoadData(cubin))
        return self.ask(self.driver.cuModuleGetFunction(module, kernel.encode()))[0]


class CudaMemory:
    """Memory of the GPU; used by streams in the order of calls, each of which ends before the next
    one begins, so that it may be given back by any."""

    __slots__ = ("_engine", "pointer")

    def __init__(self, engine: CudaEngine, size: int, stream: Any) -> None:
        self._engine = engine
        (self.pointer,) = engine.ask(engine.driver.cuMemAllocAsync(size, stream))

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of a program the driver may be gone
            self._engine.enter()
            self._engine.driver.cuMemFreeAsync(self.pointer, 0)


def _take_memory() -> Callable[[], None]:
    """What is in use stays, and so does the engine."""
    opened = tuple(_opened)

    def trim() -> None:
        for engine in opened:
            engine.trim()

    return trim


takers.append(_take_memory)


def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        why = f"cuda.bindings cannot be loaded ({error})"
        raise EngineMissing(f"{why}: pip install 'flowos-hpc[cuda]'") from None
    try:
        driver.cuDriverGetVersion()
    except RuntimeError:
        raise EngineMissing(f"there is no CUDA driver (libcuda.so.1): {_REMEDY}") from None
    return driver
