"""Compilers, MPIs, BLAS libraries and tools, from what they print about themselves."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Literal, TypeVar

from flowos._dataclasses import replace
from flowos.model import Argv, Blas, Compiler, CudaDevice, Mpi, MpiName, Tool
from flowos.probes._facts_tree import word

FoundProgram = Mapping[str, object]
Named = TypeVar("Named", Compiler, Mpi, Blas)
Family = TypeVar("Family", bound=str)

CompilerFamily = Literal["gcc", "clang", "icx", "nvc", "other"]
BlasFamily = Literal["openblas", "blis", "mkl", "other"]

_COMPILERS: tuple[tuple[CompilerFamily, str], ...] = (
    ("icx", r"Intel\(R\) oneAPI"),
    ("nvc", r"\bnvc(\+\+)? \d"),
    ("clang", r"clang version"),
    ("gcc", r"Free Software Foundation"),
    ("other", ""),
)
_MPIS: tuple[tuple[MpiName, str], ...] = (
    ("openmpi", r"Open ?MPI|OpenRTE"),
    ("intel", r"Intel\(R\) MPI"),
    ("mvapich", r"(?i)mvapich"),
    ("mpich", r"HYDRA|(?i:mpich)"),
    ("other", ""),
)
_LIBRARIES: tuple[tuple[BlasFamily, str], ...] = (
    ("openblas", r"OpenBLAS"),
    ("blis", r"BLIS"),
    ("mkl", r"Math Kernel Library"),
    ("other", ""),
)
"""Family -> pattern in a program's own output; the first match counts."""


def _family(table: tuple[tuple[Family, str], ...], says: str) -> Family:
    return next(name for name, pattern in table if re.search(pattern, says))


def works(entry: FoundProgram) -> bool:
    return not word(entry, "fails") and bool(word(entry, "path") or word(entry, "compiler"))


def version_in(text: str) -> str:
    """The first number with dots, parentheses last: 12.2.0 of "gcc (Debian 12.2-14) 12.2.0"."""
    outside = re.sub(r"\([^()]*\)", " ", text)
    match = re.search(r"\d+(?:\.\d+)+", outside) or re.search(r"\d+(?:\.\d+)+", text)
    return match[0] if match else ""


def compilers_of(entries: Sequence[FoundProgram]) -> tuple[Compiler, ...]:
    """The compilers by language and name."""
    found = [_compiler(entry) for entry in entries if works(entry)]
    c, cxx = (with_unique_names([f for f in found if f.language == each]) for each in ("c", "c++"))
    return (*c, *cxx)


def _compiler(entry: FoundProgram) -> Compiler:
    says = word(entry, "says")
    return Compiler(
        name=word(entry, "name"),
        family=_family(_COMPILERS, says),
        language="c++" if word(entry, "language") == "c++" else "c",
        version=version_in(says),
        path=PurePath(word(entry, "path")),
        openmp=entry.get("openmp") is True,
    )


def mpis_of(entries: Sequence[FoundProgram]) -> tuple[Mpi, ...]:
    """The MPIs that built a program and have an mpirun."""
    whole = (entry for entry in entries if works(entry) and word(entry, "mpirun"))
    return with_unique_names([_mpi(entry) for entry in whole])


def _mpi(entry: FoundProgram) -> Mpi:
    says = word(entry, "says")
    text = f"{says} {word(entry, 'shows')}"
    family = _family(_MPIS, text)
    calls, version = _called_by_cxx(entry)
    return Mpi(
        name=family,
        family=family,
        version=version_in(says),
        compiler=PurePath(word(entry, "compiler")),
        mpirun=PurePath(word(entry, "mpirun")),
        cxx=PurePath(cxx) if (cxx := word(entry, "cxx")) else None,
        cxx_calls=calls,
        cxx_version=version,
    )


def _called_by_cxx(entry: FoundProgram) -> tuple[Argv, str]:
    """The compiler that an MPI's C++ compiler calls, and its version; both or neither."""
    calls, version = entry.get("cxx_calls"), version_in(word(entry, "cxx_says"))
    if not isinstance(calls, list) or not version:
        return (), ""
    return tuple(map(str, calls)), version


def libraries_of(entries: Sequence[FoundProgram]) -> tuple[Blas, ...]:
    return with_unique_names([_library(entry) for entry in entries if works(entry)])


def _library(entry: FoundProgram) -> Blas:
    says, path = word(entry, "says"), PurePath(word(entry, "path"))
    family = _family(_LIBRARIES, says)
    return Blas(
        name=_library_name(path, family),
        family=family,
        version=version_in(says),
        path=path,
        symbol=word(entry, "symbol") or "{}_",
        integer_bytes=8 if entry.get("integer_bytes") == 8 else 4,
    )


def _library_name(path: PurePath, family: str) -> str:
    """Named by Debian's flavour (openblas-pthread), the wheel (numpy), else family or file."""
    folder = path.parent.name
    if re.fullmatch(r"(openblas|blis)-\w+", folder):
        return folder
    if match := re.fullmatch(r"(numpy|scipy)\.libs", folder):
        return match[1]
    if match := re.search(r"/(scipy_openblas\d*)/lib/", str(path)):
        return match[1]
    return (
        "netlib" if folder == "blas" else path.name.split(".")[0] if family == "other" else family
    )


def tools_of(entries: Sequence[FoundProgram]) -> tuple[Tool, ...]:
    return tuple(
        Tool(
            name=word(entry, "name"),
            version=version_in(word(entry, "says")),
            path=PurePath(word(entry, "path")),
            mpi=_linked_mpi(word(entry, "loads")),
        )
        for entry in entries
        if works(entry)
    )


def _linked_mpi(loads: str) -> Literal["", "openmpi", "mpich"]:
    """MVAPICH's and Intel's libraries have the name of MPICH's: what one starts, each starts."""
    if re.search(r"\blibmpi\.so\.[2-9]\d\b", loads):
        return "openmpi"
    return "mpich" if re.search(r"\blibmpi(ch)?\.so\.12\b", loads) else ""


def cuda_of(entries: Sequence[FoundProgram]) -> tuple[CudaDevice, ...]:
    """The GPUs that the driver lists."""
    return tuple(
        CudaDevice(
            number=_number(entry, "number"),
            name=word(entry, "name"),
            memory_bytes=_number(entry, "memory_bytes"),
            multiprocessors=_number(entry, "multiprocessors"),
            clock_hz=1e3 * _number(entry, "clock_khz"),
            memory_clock_hz=1e3 * _number(entry, "memory_clock_khz"),
            bus_bits=_number(entry, "bus_bits"),
            cache_bytes=_number(entry, "cache_bytes"),
            capability=(_number(entry, "major"), _number(entry, "minor")),
        )
        for entry in entries
        if word(entry, "name")
    )


def _number(entry: FoundProgram, name: str) -> int:
    value = entry.get(name)
    return value if isinstance(value, int) else 0


def with_unique_names(things: Sequence[Named]) -> tuple[Named, ...]:
    """Make names unique: equal names get the version, then the path."""
    by_version = _suffixed(things, lambda thing: thing.version)
    by_place = _suffixed(by_version, lambda thing: _place(thing).strip("/").replace("/", "-"))
    return tuple(sorted(by_place, key=lambda thing: thing.name))


def _suffixed(things: Sequence[Named], suffix: Callable[[Named], str]) -> list[Named]:
    often = Counter(thing.name for thing in things)
    return [
        replace(t, name=f"{t.name}-{suffix(t)}") if often[t.name] > 1 and suffix(t) else t
        for t in things
    ]


def _place(thing: Compiler | Mpi | Blas) -> str:
    return str((thing.compiler if isinstance(thing, Mpi) else thing.path).parent)
