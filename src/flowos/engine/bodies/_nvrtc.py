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
    alternatives,
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
_READS = ("-I", "-isystem", "--include-path", "-include", "--pre-include")
"""Flags that have NVRTC read files of which nothing is known here."""
_CHECK = "arguments of the kernel"
_NAMED = "__nv_name_map:"
"""What NVRTC calls the place where it looks for the kernel."""
_POINTER = 100
_NUMBERS = {dtype: number for number, dtype in enumerate(CUDA_TYPES, 1)}
_KINDS = "\n".join(
    f"template <> struct flowos_Kind_<{type_}> "
    f"{{ static constexpr int flowos_value_ = {_NUMBERS[dtype]}; }};"
    for type_, dtype in (*((t, d) for d, t in CUDA_TYPES.items()), *_SAME.items())
)
_CHECKS = f"""
namespace flowos_check_ {{
template <class flowos_T_> struct flowos_Kind_ {{ static constexpr int flowos_value_ = 0; }};
template <class flowos_T_> struct flowos_Kind_<const flowos_T_> : flowos_Kind_<flowos_T_> {{}};
template <class flowos_T_> struct flowos_Kind_<flowos_T_*> {{
  static constexpr int flowos_value_ = {_POINTER} + flowos_Kind_<flowos_T_>::flowos_value_;
}};
{_KINDS}
template <int flowos_I_, class flowos_T_, class... flowos_U_>
struct flowos_At_ : flowos_At_<flowos_I_ - 1, flowos_U_...> {{}};
template <class flowos_T_, class... flowos_U_>
struct flowos_At_<0, flowos_T_, flowos_U_...> : flowos_Kind_<flowos_T_> {{}};
template <class flowos_F_> struct flowos_Of_;
template <class... flowos_T_> struct flowos_Of_<void (*)(flowos_T_...)> {{
  static constexpr int flowos_count_ = sizeof...(flowos_T_);
  template <int flowos_I_, int flowos_kind_> static constexpr bool flowos_is_ =
      flowos_At_<flowos_I_, flowos_T_...>::flowos_value_ % {_POINTER} == 0
          ? flowos_At_<flowos_I_, flowos_T_...>::flowos_value_ / {_POINTER}
                == flowos_kind_ / {_POINTER}
          : flowos_At_<flowos_I_, flowos_T_...>::flowos_value_ == flowos_kind_;
}};
"""
"""It follows the person's source, whose macros hold here too: no name is one that they may have."""


def cubin_of(code: SourceCode, kernel: str, ports: NativePorts, arch: str) -> tuple[str, bytes]:
    """The name of the kernel in it, and the binary.

    Raises CompileFailed if the compiler refuses the code, and EngineMissing if there is none.
    """
    nvrtc = _nvrtc()
    version = _checked(nvrtc, nvrtc.nvrtcVersion())
    text = f"{code.content}\n{_checks(kernel, ports)}"
    folder = PurePath(code.path).parent if code.path else PurePath()
    headers = [word for pair in header_digests(code.text, Path(folder), set()) for word in pair]
    words = (kernel, text, *code.flags, arch, *map(str, version), *headers)

    if any(flag.startswith(_READS) for flag in code.flags):
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
            _check_arch(nvrtc, arch)
            raise CompileFailed(_complaint(_log(nvrtc, program) or result.name, code, kernel))
        (lowered,) = _checked(nvrtc, nvrtc.nvrtcGetLoweredName(program, name))
        (size,) = _checked(nvrtc, nvrtc.nvrtcGetCUBINSize(program))
        cubin = bytearray(size)
        _checked(nvrtc, nvrtc.nvrtcGetCUBIN(program, cubin))
        return lowered.decode(), bytes(cubin)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _check_arch(nvrtc: Any, arch: str) -> None:
    """Raises CompileFailed if it does not compile for it; its own words leave the value out."""
    version = ".".join(map(str, _checked(nvrtc, nvrtc.nvrtcVersion())))
    (numbers,) = _checked(nvrtc, nvrtc.nvrtcGetSupportedArchs())
    known = [f"sm_{number}" for number in numbers]
    if arch.rstrip("af") not in known:
        raise CompileFailed(f"arch={arch!r}: NVRTC {version} compiles for {alternatives(known)}")


def _log(nvrtc: Any, program: Any) -> str:
    (size,) = _checked(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
    log = bytearray(size)
    _checked(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
    return log.rstrip(b"\0").decode(errors="replace")


def _complaint(log: str, code: SourceCode, kernel: str) -> str:
    said = first_error(log)
    if said.startswith(_NAMED):
        return f"{code.name}: {kernel} is no kernel: it lacks __global__"
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
    arguments = list(cuda_arguments(ports))
    words = ", ".join(f"{type_} {name}" for name, type_, _ in arguments)
    lines = [
        f"using flowos_Kernel_ = flowos_Of_<decltype(&::{kernel})>;",
        f"static_assert(flowos_Kernel_::flowos_count_ == {len(arguments)}, "
        f'"takes another number of arguments than its ports make, {len(arguments)}: {words}");',
    ]
    for place, (name, type_, dtype) in enumerate(arguments):
        kind = _NUMBERS[dtype] + _POINTER * type_.endswith("*")
        said = f"has another type for argument {place + 1}: {name} is passed as {type_}"
        lines.append(f'static_assert(flowos_Kernel_::flowos_is_<{place}, {kind}>, "{said}");')
    asserts = "\n".join(lines)
    return f'#line 1 "{_CHECK}"{_CHECKS}{asserts}\n}}\n'


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
