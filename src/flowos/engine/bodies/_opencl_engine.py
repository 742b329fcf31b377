"""The OpenCL device of this process: chosen once, with the programs that were built for it."""

import ctypes
import os
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from flowos._user_folders import HomeFolderError, cache_folder
from flowos.engine.bodies._kept import CompileFailed
from flowos.model import EngineMissing, SourceCode, alternatives, first_error

__flowos_frames__ = True
_DEVICE = "FLOWOS_OPENCL_DEVICE"
_MEMORY = "FLOWOS_OPENCL_MEMORY"
_MEMORIES = ("shared", "mapped", "own")
_POCL = "Portable Computing Language"
_ICD_SUFFIX = 0x0920
_opening = threading.Lock()
_opened: dict[tuple[str, str], "OpenClEngine"] = {}


def opencl_engine() -> "OpenClEngine":
    """What FLOWOS_OPENCL_DEVICE names as `flowos device list` does, else the first GPU, else the
    first device. Raises EngineMissing if there is none, or a variable says what is not."""
    named, memory = os.environ.get(_DEVICE, ""), os.environ.get(_MEMORY, "")
    if memory and memory not in _MEMORIES:
        raise EngineMissing(f"{_MEMORY} is {memory!r}: use {alternatives(_MEMORIES)}")
    with _opening:
        if (named, memory) not in _opened:
            _opened[named, memory] = OpenClEngine(_chosen(_pyopencl(), named), memory)
        return _opened[named, memory]


class OpenClEngine:
    """memory: how kernels reach arrays, unless FLOWOS_OPENCL_MEMORY says it: "shared" with a CPU,
    "mapped" if its platform may keep them elsewhere until it is asked, "own" of other devices.
    copies_in, copies_out: of arrays."""

    def __init__(self, device: Any, memory: str) -> None:
        self.cl = cl = _pyopencl()
        self.device = device
        self.context = cl.Context([device])
        self.memory = memory or _memory(cl, device)
        self.copies_in = self.copies_out = 0
        self._programs: dict[tuple[str, ...], Any] = {}

    def program(self, code: SourceCode) -> Any:
        """Built for the device, once in this process. Raises CompileFailed if it is refused."""
        headers = (word for header in code.headers for word in header)
        key = (code.content, *code.flags, *headers)
        if key not in self._programs:
            self._programs[key] = self._built(code)
        return self._programs[key]

    def _built(self, code: SourceCode) -> Any:
        folder = str(PurePath(code.path).parent) if code.path else "."
        named = f'"{folder}"' if " " in folder else folder  # options become one text
        options = ["-cl-kernel-arg-info", *code.flags, "-I", named]
        kept = str(cache_folder() / "pyopencl")  # of platforms that keep nothing themselves
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self.cl.Program(self.context, code.content).build(options, cache_dir=kept)
            except self.cl.Error as error:
                said, _, _ = str(error).partition("\n(options: ")  # pyopencl adds them
                raise CompileFailed(first_error(said)) from None

    def kernel(self, code: SourceCode, name: str) -> Any:
        """A new one. Raises CompileFailed if the source has no such kernel."""
        program = self.program(code)
        try:
            return self.cl.Kernel(program, name)
        except self.cl.Error:
            found = program.get_info(self.cl.program_info.KERNEL_NAMES)
            has = f"it has {', '.join(found.split(';'))}" if found else "it has none"
            raise CompileFailed(f"{code.name} has no kernel {name}; {has}") from None


def _pyopencl() -> Any:
    with suppress(HomeFolderError):
        os.environ.setdefault("POCL_CACHE_DIR", str(cache_folder() / "pocl"))
    try:
        import pyopencl
    except ImportError as error:
        why = f"pyopencl cannot be loaded ({error})"
        raise EngineMissing(f"{why}: pip install 'flowos-hpc[opencl]'") from None
    return pyopencl


def _memory(cl: Any, device: Any) -> str:
    if not device.type & cl.device_type.CPU:
        return "own"
    return "shared" if device.platform.name == _POCL else "mapped"


def opencl_devices() -> dict[str, str]:
    """By the name in `flowos device list`, what it is. Raises EngineMissing if there is none."""
    return {name: " ".join(device.name.split()) for name, device in _found(_pyopencl()).items()}


def _chosen(cl: Any, named: str) -> Any:
    found = _found(cl)
    if named and named not in found:
        why = f"{_DEVICE} names {named}, which is none of this machine"
        raise EngineMissing(f"{why}: use {alternatives(list(found))}")
    gpus = (device for device in found.values() if device.type & cl.device_type.GPU)
    return found[named] if named else next(gpus, next(iter(found.values())))


def _found(cl: Any) -> dict[str, Any]:
    found = dict(_devices(cl))
    if not found:
        raise EngineMissing(f"there is no OpenCL device: {_remedy(cl)}")
    return found


def _remedy(cl: Any) -> str:
    """pocl has no device where it cannot keep what it compiles."""
    folder = os.environ.get("POCL_CACHE_DIR", "~/.cache/pocl")
    with suppress(cl.Error):
        if any(platform.name == _POCL for platform in cl.get_platforms()):
            return f"pocl has to write to {folder}; name another folder in POCL_CACHE_DIR"
    return "install a platform, such as Debian's pocl-opencl-icd"


def _devices(cl: Any) -> Iterator[tuple[str, Any]]:
    """With the names that `flowos device list` has for them: platforms of one suffix, such as two
    builds of pocl, are numbered through."""
    counts: Counter[str] = Counter()
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return
    for platform in platforms:
        try:
            devices = platform.get_devices()
        except cl.Error:
            continue
        suffix = _suffix(platform)
        for device in devices:
            yield f"opencl-{suffix}-{counts[suffix]}", device
            counts[suffix] += 1


def _suffix(platform: Any) -> str:
    """As clinfo writes it, which pyopencl does not ask for; "" if the platform has none."""
    said, ask = ctypes.create_string_buffer(64), ctypes.CDLL(_loader()).clGetPlatformInfo
    ask.argtypes = (
        ctypes.c_void_p,
        ctypes.c_uint,
        ctypes.c_size_t,
        ctypes.c_void_p,
        ctypes.c_void_p,
    )
    ask(platform.int_ptr, _ICD_SUFFIX, len(said), said, None)
    return said.value.decode(errors="replace").lower()


def _loader() -> str | None:
    """The library by which pyopencl reaches platforms; it may have one of its own."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return next((line.split(maxsplit=5)[-1] for line in lines if "libOpenCL" in line), None)
