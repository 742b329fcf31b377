"""Kernels of CUDA compiled by NVRTC for one architecture, and kept by what they depend on.

After the person's source comes a check of the kernel's arguments, so that the compiler says what
does not fit; the driver would only read what it is given.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from flowos.engine.bodies._kept import CompileFailed, Made, kept_file
from flowos.engine.bodies._source import header_digests
from flowos.model import (
    Array,
    EngineMissing,
    NativePorts,
    PortSpec,
    SourceCode,
    dtype_of,
    first_error,
)

__flowos_frames__ = True
CUDA_TYPES = {
    **{"bool": "bool", "int8": "signed char", "uint8": "unsigned char"},
    **{"int16": "short", "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int"},
    **{"int64": "long long", "uint64": "unsigned long long"},
    **{"float32": "float", "float64": "double"},
}
"""NumPy's dtypes, and what they are in CUDA."""
_SAME = {"char": "int8", "long": "int64", "unsigned long": "uint64"}
_CHECK = "arguments of the kernel"
_POINTER = 100
_CHECKS = """
namespace flowos_check {
template <class T> struct Kind { static constexpr int value = 0; };
template <class T> struct Kind<const T> : Kind<T> {};
template <class T> struct Kind<T*> { static constexpr int value = POINTER + Kind<T>::value; };
KINDS
template <int I, class T, class... U> struct At : At<I - 1, U...> {};
template <class T, class... U> struct At<0, T, U...> : Kind<T> {};
template <class F> struct Of;
template <class... T> struct Of<void (*)(T...)> {
  static constexpr int count = sizeof...(T);
  template <int I, int kind>
  static constexpr bool is = At<I, T...>::value % POINTER == 0
                                 ? At<I, T...>::value / POINTER == kind / POINTER
                                 : At<I, T...>::value == kind;
};
using Kernel = Of<decltype(&NAME)>;
ASSERTS
}
"""


def cubin_of(code: SourceCode, kernel: str, ports: NativePorts, arch: str) -> tuple[str, bytes]:
    """The name of the kernel in it, and the binary. Raises CompileFailed, EngineMissing."""
    nvrtc = _nvrtc()
    version = _checked(nvrtc, nvrtc.nvrtcVersion())
    text = f"{code.content}\n{_checks(kernel, ports)}"
    folder = PurePath(code.path).parent if code.path else PurePath()
    headers = [word for pair in header_digests(code.text, Path(folder), set()) for word in pair]
    words = (kernel, text, *code.flags, arch, *map(str, version), *headers)

    if any(flag.startswith(("-I", "--include-path")) for flag in code.flags):
        return _compiled(nvrtc, code, kernel, text, arch)  # what it reads there is not known

    def make(made: Path) -> Made:
        name, cubin = _compiled(nvrtc, code, kernel, text, arch)
        file = made / "body.cubin"
        file.write_bytes(name.encode() + b"\n" + cubin)
        return file, ()

    found, _, binary = kept_file(words, make).read_bytes().partition(b"\n")
    return found.decode(), binary


def nvrtc_version() -> str:
    """Raises EngineMissing if it cannot be loaded."""
    nvrtc = _nvrtc()
    return ".".join(map(str, _checked(nvrtc, nvrtc.nvrtcVersion())))


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        why = f"NVRTC cannot be loaded ({' '.join(str(error).split())[:120]})"
        raise EngineMissing(f"{why}: pip install 'flowos-hpc[cuda]'") from None
    return nvrtc


def _compiled(nvrtc: Any, code: SourceCode, kernel: str, text: str, arch: str) -> tuple[str, bytes]:
    folder = str(PurePath(code.path).parent) if code.path else "."
    options = [f"--gpu-architecture={arch}", f"--include-path={folder}", *code.flags]
    words = [word.encode() for word in options]
    made = nvrtc.nvrtcCreateProgram(text.encode(), code.name.encode(), 0, [], [])
    (program,) = _checked(nvrtc, made)
    try:
        name = kernel.encode()
        _checked(nvrtc, nvrtc.nvrtcAddNameExpression(program, name))
        (result,) = nvrtc.nvrtcCompileProgram(program, len(words), words)
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileFailed(_complaint(_log(nvrtc, program) or result.name, code, kernel))
        (lowered,) = _checked(nvrtc, nvrtc.nvrtcGetLoweredName(program, name))
        (size,) = _checked(nvrtc, nvrtc.nvrtcGetCUBINSize(program))
        cubin = bytearray(size)
        _checked(nvrtc, nvrtc.nvrtcGetCUBIN(program, cubin))
        return lowered.decode(), bytes(cubin)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _log(nvrtc: Any, program: Any) -> str:
    (size,) = _checked(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
    log = bytearray(size)
    _checked(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
    return log.rstrip(b"\0").decode(errors="replace")


def _complaint(log: str, code: SourceCode, kernel: str) -> str:
    said = first_error(log)
    if not said.startswith(_CHECK):
        return said
    if found := re.search(r'static assertion failed with "(.*)"', said):
        return f"{code.name}: kernel {kernel} {found[1]}"
    if "the global scope has no" in said:
        return f"{code.name} has no kernel {kernel}"
    return f"{code.name}: {kernel} is no kernel that can be called: {said.partition(': ')[2]}"


def _checked(nvrtc: Any, answer: tuple[Any, ...]) -> list[Any]:
    result, *rest = answer
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileFailed(f"NVRTC failed: {result.name}")
    return rest


def _checks(kernel: str, ports: NativePorts) -> str:
    """Source that does not compile if the kernel takes other arguments."""
    numbers = {dtype: number for number, dtype in enumerate(CUDA_TYPES, 1)}
    kinds = {type_: numbers[dtype] for dtype, type_ in CUDA_TYPES.items()}
    kinds |= {type_: numbers[dtype] for type_, dtype in _SAME.items()}
    arguments = list(cuda_arguments(ports))
    words = ", ".join(f"{type_} {name}" for name, type_, _ in arguments)
    asserts = [
        f"static_assert(Kernel::count == {len(arguments)}, "
        f'"takes another number of arguments than its ports make, {len(arguments)}: {words}");'
    ]
    for place, (name, type_, dtype) in enumerate(arguments):
        kind = numbers[dtype] + _POINTER * type_.endswith("*")
        said = f"has another type for argument {place + 1}: {name} is passed as {type_}"
        asserts.append(f'static_assert(Kernel::is<{place}, {kind}>, "{said}");')
    lines = "\n".join(
        f"template <> struct Kind<{type_}> {{ static constexpr int value = {number}; }};"
        for type_, number in kinds.items()
    )
    filled = _CHECKS.replace("KINDS", lines).replace("ASSERTS", "\n".join(asserts))
    filled = filled.replace("NAME", f"::{kernel}").replace("POINTER", str(_POINTER))
    return f'#line 1 "{_CHECK}"\n{filled}'


def cuda_arguments(ports: NativePorts) -> Iterator[tuple[str, str, str]]:
    """The name, the type and the dtype of each."""

    def pointer(port: PortSpec) -> tuple[str, str, str]:
        dtype = dtype_of(port.type)
        return port.name, f"{CUDA_TYPES[dtype]} *", dtype

    for port in ports.inputs:
        dtype = dtype_of(port.type)
        yield (
            pointer(port)
            if isinstance(port.type, Array)
            else (
                port.name,
                CUDA_TYPES[dtype],
                dtype,
            )
        )
    for name in ports.lengths:
        yield name, CUDA_TYPES["int64"], "int64"
    yield from map(pointer, ports.outputs)
