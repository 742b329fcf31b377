"""Finds compilers, MPIs, BLAS libraries and tools, and tries each. Prints one JSON object.

usage: python collect_software.py [--deps DIR] [--kept]

Standard library only, Python 3.8 or newer. Versions are not parsed: each entry holds the program's
output, and in "fails" the error message if it did not work ("" if it did).
  compilers  name, path, language, says, fails, openmp (built and ran a program with OpenMP)
  mpis       compiler, mpirun, shows (the command that the wrapper stands for), says, fails, cxx
             (the C++ compiler, if it made a program), cxx_calls and cxx_says, if it is known what
             that one calls: the compiler with flags, and its version
  libraries  path, says, fails, symbol, integer_bytes: BLAS, opened by open_blas.py in a child
  tools      name, path, says or loads (libraries), fails; "torch", "numpy", "cupy": a Python that
             has this package
  cuda       the GPUs, as cuda_devices.py says them in a child
  kept       with --kept, which reads it from standard input: what need not be tried again; null if
             that is what was read
--deps DIR also looks below DIR/usr. Every command has a limit, and so has the whole.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from found_files import files_in, folders_like, real
from kept_trials import KeptTrials, paths_in
from mpi_wrappers import called, shown_by
from program_output import MAX_SAID, all_of_output_of, complaint, output_of

AT_ONCE = 4

COMPILERS = (
    ("c", re.compile(r"(gcc|clang)(-\d+(\.\d+)*)?|icx|nvc|cc")),
    ("c++", re.compile(r"(g\+\+|clang\+\+)(-\d+(\.\d+)*)?|icpx|nvc\+\+|c\+\+")),
)
NOT_THERE = re.compile(r"omp\.h\b.*(not found|No such file)|(cannot|unable to) find\b.*-l\w*omp")
"""What compilers say of OpenMP that is not installed, and not of one that is broken."""
COMPILER_CACHES = ("ccache", "distcc", "sccache")
STARTER_VERBS = ("run", "exec", "exec.hydra")
MPI_COMPILER = re.compile(r"mpicc(?P<suffix>[.-][\w.]+)?|mpiicx|mpiicc")
MPI_CXX = {"mpicc": ("mpicxx", "mpic++"), "mpiicx": ("mpiicpx",), "mpiicc": ("mpiicpc",)}
VENDOR_BINS = (
    "opt/intel/oneapi/compiler/latest/bin",
    "opt/intel/oneapi/mpi/latest/bin",
    "opt/nvidia/hpc_sdk/Linux_*/*/compilers/bin",
    "opt/AMD/aocc-compiler-*/bin",
    "opt/rh/gcc-toolset-*/root/usr/bin",
    "usr/lib64/openmpi/bin",
    "usr/lib64/mpich/bin",
    "usr/lib64/mvapich*/bin",
)
NCCL_TESTS = ("all_reduce", "all_gather", "reduce_scatter")
PERFTEST = ("ib_write_bw", "ib_read_bw", "ib_write_lat")
TOOLS = (
    ("fio", ("fio",), "--version"),
    ("nbdkit", ("nbdkit",), "--version"),
    ("likwid-bench", ("likwid-bench",), "-v"),
    ("perf", ("perf",), "--version"),
    *((f"{name}_perf", (f"{name}_perf",), "-h") for name in NCCL_TESTS),
)
LINKED_TOOLS = (
    ("xhpl", ("xhpl",)),
    ("xhpcg", ("xhpcg",)),
    ("chromium", ("chromium", "chromium-browser", "google-chrome")),
    *((name, (name,)) for name in PERFTEST),
)
"""Programs that are not started: they say no version and measure, or start twenty others to say it,
and tidy up their user's folder; or they exit with 1 when they say it."""
NAMES = [re.escape(each) for _, called, *_ in (*TOOLS, *LINKED_TOOLS) for each in called]
LOOKED_FOR = re.compile("|".join(["mpi.*", *NAMES, *(p.pattern for _, p in COMPILERS)]))
NO_PROGRAM = "not a dynamic executable"
"""What ldd says of a script, of which nothing else says what it starts."""
PYTHON_PACKAGES = ("torch", "numpy", "cupy")
BLAS_FILE = re.compile(
    r"lib(openblas|blis|mkl_rt|scipy_openblas|nvpl_blas|armpl|flexiblas|satlas|tatlas|blas)"
    r"[\w.-]*\.so[.\d]*"
)
BLAS_OF_OTHERS = re.compile(r"/(openblas|blis|mkl)[^/]*/libblas\.so|libblastrampoline")
LIBRARY_FOLDERS = (
    "usr/lib/*-linux-gnu/openblas-*",
    "usr/lib/*-linux-gnu/blis-*",
    "usr/lib/*-linux-gnu/blas",
    "usr/lib/*-linux-gnu",
    "usr/lib64",
)
VENDOR_LIBRARIES = (
    "opt/intel/oneapi/mkl/latest/lib",
    "opt/AMD/aocl/*/*/lib",
    "opt/arm/armpl*/lib",
)
WHEEL_LIBRARIES = ("numpy.libs", "scipy.libs", "scipy_openblas*/lib")


def programs(deps: str) -> list[Path]:
    """Executables that count, in PATH, in the vendors' usual folders and below `deps`."""
    folders = [f for f in os.environ.get("PATH", "").split(os.pathsep) if f.startswith("/")]
    folders += folders_like(VENDOR_BINS) + ([f"{deps}/usr/bin"] if deps else [])
    return [path for path in files_in(folders, LOOKED_FOR.fullmatch) if os.access(path, os.X_OK)]


# --- compilers -------------------------------------------------------------------------------


def compiler_paths(paths: list[Path]) -> list[tuple[Path, str]]:
    """(path, language): each binary once per language, under its versioned or shortest name."""
    found: dict[tuple[str, str], list[Path]] = {}
    for path in paths:
        for language, pattern in COMPILERS:
            if pattern.fullmatch(path.name) and Path(real(path)).name not in COMPILER_CACHES:
                found.setdefault((real(path), language), []).append(path)
    return [(min(same, key=by_name), language) for (_, language), same in found.items()]


def by_name(path: Path) -> tuple[bool, int]:
    return not re.search(r"\d", path.name), len(path.name)


def compiler(path: Path, language: str, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What is to be known of it, and the files that it took if all of it worked."""
    code, says = output_of(str(path), "--version")
    flag = "-mp" if path.name.startswith("nvc") else "-fopenmp"
    fails = complaint(code, says)
    fails, took = (fails, []) if fails else builds(path, language, folder, flag)
    openmp = not fails
    if code == 0 and fails:
        absent = NOT_THERE.search(fails)
        fails, took = builds(path, language, folder)
        took = [*took, *folders_of(took)] if absent and took else []
    entry = {"name": path.name, "path": str(path), "language": language}
    return dict(entry, says=says, fails=fails, openmp=openmp), took


def folders_of(took: list[str]) -> list[str]:
    """Where what is absent may appear: these change then."""
    return sorted({*map(os.path.dirname, took), "/usr/local/include", "/usr/local/lib"})


def builds(path: Path, language: str, folder: Path, flag: str = "") -> tuple[str, list[str]]:
    """Build and run a program of two lines, with OpenMP if a flag is given: "" or the complaint.

    And the files that it took, if it worked.
    """
    binary = folder / re.sub(r"\W", "_", f"{path}{flag}")
    source = binary.with_suffix(".c" if language == "c" else ".cpp")
    header, value = ("omp.h", "omp_get_max_threads() < 1") if flag else ("stdlib.h", "0")
    source.write_text(f"#include <{header}>\nint main(void) {{ return {value}; }}\n")
    flags = [flag] if flag else []
    code, says, took = traced([str(path), *flags, str(source), "-o", str(binary)], folder)
    if code == 0:
        code, says = output_of(str(binary), OMP_NUM_THREADS="1")
    return complaint(code, says), took if code == 0 else []


def traced(words: list[str], folder: Path) -> tuple[int, str, list[str]]:
    """Compile; and the files and folders that compiler, assembler and linker took or looked into.

    None where it fails, or does not say so, as the compilers of NVIDIA's kit.
    """
    files = [f"{words[-1]}.{kind}" for kind in ("headers", "inputs")]
    options = ["-MD", "-MF", files[0], f"-Wl,-Map={files[1]}"]
    knows = not Path(words[0]).name.startswith("nvc")
    worked = knows and output_of(*words, *options, TMPDIR=str(folder))[0] == 0
    if worked and all(map(os.path.exists, files)):
        shown = all_of_output_of(*words, "-###", TMPDIR=str(folder))[1]
        loaded = re.findall(r"(?m)^LOAD (.*)$", Path(files[1]).read_text(errors="replace"))
        text = "\n".join([shown, Path(files[0]).read_text(errors="replace"), *loaded])
        tools = [shutil.which(name) or "" for name in ("as", "ld")]
        found = [words[0], *filter(None, tools), *paths_in(text)]
        return 0, "", [path for path in dict.fromkeys(found) if is_of_others(path, folder)]
    return (*output_of(*words, TMPDIR=str(folder)), [])


def is_of_others(path: str, folder: Path) -> bool:
    """Neither of this trial, nor what every process writes to."""
    ours = str(folder.parent)
    return path != ours and not path.startswith((f"{folder}", "/dev/", "/proc/"))


# --- MPI, tools ------------------------------------------------------------------------------


def mpi_parts(paths: list[Path]) -> list[tuple[str, str, str]]:
    """(compiler wrapper, mpirun, C++ wrapper), those of one folder and suffix, each MPI once.

    An mpirun or C++ wrapper that is not there is "".

    Debian's mpicc is one of its mpicc.NAME, so the named ones are looked at first.
    """
    there = set(paths)
    found: dict[str, tuple[str, str, str]] = {}
    for path in sorted(paths, key=lambda p: p.name == "mpicc"):
        match = MPI_COMPILER.fullmatch(path.name)
        if match:
            suffix = match.group("suffix") or ""
            wrapper = path.name[: len(path.name) - len(suffix)]
            siblings = (
                [path.with_name(f"{name}{suffix}") for name in names]
                for names in ([f"mpi{verb}" for verb in STARTER_VERBS], MPI_CXX[wrapper])
            )
            mpirun, cxx = (next((str(s) for s in some if s in there), "") for some in siblings)
            found.setdefault(real(path), (str(path), mpirun, cxx))
    return list(found.values())


def mpi(
    path: str, mpirun: str, cxx: str, shows: str, cxx_shows: str, folder: Path
) -> tuple[dict[str, Any], list[str]]:
    """What is to be known of it, and the files that it took if all of it worked."""
    says = output_of(mpirun, "--version")[1] if mpirun else ""
    binary = folder / re.sub(r"\W", "_", path)
    source = binary.with_suffix(".c")
    source.write_text("#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n")
    code, built, took = traced([path, str(source), "-o", str(binary)], folder)
    cxx_took = builds_cxx(cxx, folder) if cxx else None
    entry = {"compiler": path, "mpirun": mpirun, "shows": shows, "says": says}
    entry = dict(entry, cxx="" if cxx_took is None else cxx, fails=complaint(code, built))
    entry.update({} if cxx_took is None else called(cxx, cxx_shows))
    if not took or cxx_took == [] or (cxx and cxx_took is None):
        return entry, []
    return entry, [*took, *(cxx_took or ()), *([mpirun] if mpirun else ())]


def builds_cxx(path: str, folder: Path) -> list[str] | None:
    """The files it took for a program of C++20 with OpenMP; None if it makes none.

    Running one would need the mpirun. Neither `<span>` nor MPI's own C++ interface is parsed: that
    took most of the time.
    """
    binary = folder / re.sub(r"\W", "_", path)
    source = binary.with_suffix(".cpp")
    source.write_text(
        "#define OMPI_SKIP_MPICXX 1\n#define MPICH_SKIP_MPICXX 1\n"
        "#include <mpi.h>\n#include <omp.h>\n#include <version>\n"
        "#ifndef __cpp_lib_span\n#error no C++20\n#endif\n"
        "int main() { return MPI_Init(0, 0) + omp_get_max_threads(); }\n"
    )
    code, _, took = traced([path, "-std=c++20", "-fopenmp", str(source), "-o", str(binary)], folder)
    return took if code == 0 else None


def tool(name: str, path: str, *options: str) -> tuple[dict[str, Any], list[str]]:
    """What is to be known of it, and the files that it took if it worked and is no script."""
    code, says = output_of(path, *options)
    loads, took = loaded_by(path) if code == 0 else ("", [])
    entry = {"name": name, "path": path, "says": says, "fails": complaint(code, says)}
    return entry, [] if NO_PROGRAM in loads else took


def linked_tool(name: str, path: str) -> tuple[dict[str, Any], list[str]]:
    """A program that is looked at and not run: by the libraries that the loader finds for it."""
    loads, took = loaded_by(path)
    lacks = ", ".join(re.findall(r"(\S+) => not found", loads))
    fails = f"lacks {lacks}" if lacks else ""
    entry = {"name": name, "path": path, "loads": loads[:MAX_SAID], "fails": fails}
    return entry, [] if fails else took


def loaded_by(path: str) -> tuple[str, list[str]]:
    """What the loader says, and the files and folders by which it does; none if it does not."""
    code, says = all_of_output_of("ldd", path)
    if code != 0 and NO_PROGRAM not in says:
        return says, []
    places = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return says, [path, *paths_in(says), *filter(None, places)]


def tool_paths(paths: list[Path], tools: Sequence[Any]) -> list[tuple[str, ...]]:
    """(name, path, options...) of each that is there: the first in PATH, of its first name."""
    first: dict[str, str] = {}
    for path in paths:
        first.setdefault(path.name, str(path))
    calls = ((name, [first[c] for c in called if c in first], o) for name, called, *o in tools)
    return [(name, there[0], *options) for name, there, options in calls if there]


def python_tools(kept: KeptTrials) -> list[dict[str, Any]]:
    """Pythons with packages that measure: this one, the one in PATH. To import one takes long."""
    pythons = dict.fromkeys((sys.executable, shutil.which("python3") or sys.executable))
    asked = (kept.answer(f"packages of {p}", partial(packages_of, p)) for p in pythons)
    return [tool for tools in asked for tool in tools]


def packages_of(python: str) -> tuple[list[dict[str, Any]], list[str]]:
    """And the folders in which they would be, which change when one is installed."""
    ask = (
        "import importlib.metadata as m, importlib.util as u, json, sys\n"
        "there = [n for n in sys.argv[1:] if u.find_spec(n)]\n"
        "all_of = m.packages_distributions() if 'cupy' in there else {}\n"
        "print(json.dumps([[n, m.version(all_of.get(n, [n])[0])] for n in there]))\n"
        "print(json.dumps([p for p in sys.path if p]))"
    )
    code, says = all_of_output_of(python, "-c", ask, *PYTHON_PACKAGES)
    if code != 0:
        return [], []
    found, folders = map(json.loads, says.splitlines()[-2:])
    tools = [{"name": name, "path": python, "says": v, "fails": ""} for name, v in found]
    return tools, [python, *folders]


# --- GPUs ------------------------------------------------------------------------------------


def cuda() -> list[dict[str, Any]]:
    program = str(Path(__file__).with_name("cuda_devices.py"))
    code, says = output_of(sys.executable, "-S", program)
    return list(json.loads(says)) if code == 0 else []


# --- BLAS ------------------------------------------------------------------------------------


def library_paths(deps: str) -> list[Path]:
    """BLAS libraries of the usual folders, of wheels and of the loader, each file once."""
    folders = folders_like(LIBRARY_FOLDERS) + folders_like(VENDOR_LIBRARIES)
    folders += folders_like(LIBRARY_FOLDERS, deps) if deps else []
    for site in sys.path:
        folders += folders_like(WHEEL_LIBRARIES, site) if site else []
    loader = re.findall(r"=> (/\S+)", output_of("/sbin/ldconfig", "-p")[1])
    found: dict[str, Path] = {}
    there = files_in([*folders, f"{sys.prefix}/lib"], BLAS_FILE.fullmatch)
    for path in [*there, *map(Path, loader)]:
        if BLAS_FILE.fullmatch(path.name) and not BLAS_OF_OTHERS.search(real(path)):
            found.setdefault(real(path), path)
    return list(found.values())


def library(path: Path) -> tuple[dict[str, Any], list[str]]:
    """What is to be known of it, and the libraries that were loaded if it worked."""
    program = str(Path(__file__).with_name("open_blas.py"))
    one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "BLIS", "MKL")}
    code, says = all_of_output_of(sys.executable, "-S", program, str(path), **one)
    answers = [line for line in says.splitlines() if line.startswith("{")]
    if not answers:
        return {"path": str(path), "fails": complaint(code or -1, says[:MAX_SAID])}, []
    entry = dict(json.loads(answers[-1]), path=str(path))
    loaded = entry.pop("loaded", [])
    return entry, loaded if code == 0 and not entry["fails"] else []


def tried(deps: str, folder: Path, kept: KeptTrials) -> dict[str, Any]:
    """Try all of them, several at a time; binaries are written to the folder."""

    def compiled(path: Path, language: str) -> dict[str, Any]:
        key = f"{language} {path} {real(path)}"
        return dict(kept.answer(key, lambda: compiler(path, language, folder)))

    def with_mpi(path: str, mpirun: str, cxx: str) -> dict[str, Any]:
        shows, cxx_shows = output_of(path, "-show")[1], shown_by(cxx)
        key = "\n".join((path, mpirun, cxx, shows, cxx_shows))
        return dict(kept.answer(key, lambda: mpi(path, mpirun, cxx, shows, cxx_shows, folder)))

    def multiplied(path: Path) -> dict[str, Any]:
        return dict(kept.answer(f"BLAS {path}", lambda: library(path)))

    def asked(try_it: Callable[..., tuple[Any, list[str]]], *words: str) -> dict[str, Any]:
        return dict(kept.answer("\n".join(("tool", *words)), partial(try_it, *words)))

    there = programs(deps)
    with ThreadPoolExecutor(AT_ONCE) as at:
        parts = {
            "compilers": [at.submit(compiled, *each) for each in compiler_paths(there)],
            "libraries": [at.submit(multiplied, path) for path in library_paths(deps)],
            "mpis": [at.submit(with_mpi, *parts) for parts in mpi_parts(there)],
            "tools": [at.submit(asked, tool, *each) for each in tool_paths(there, TOOLS)]
            + [at.submit(asked, linked_tool, *each) for each in tool_paths(there, LINKED_TOOLS)],
        }
        lists = {"tools": at.submit(python_tools, kept), "cuda": at.submit(cuda)}
        found = {name: [each.result() for each in part] for name, part in parts.items()}
        return dict(found, **{n: found.get(n, []) + one.result() for n, one in lists.items()})


def main() -> None:
    options = argparse.ArgumentParser(description="Find compilers, MPIs, BLAS, tools.")
    options.add_argument("--deps", default="", metavar="DIR")
    options.add_argument("--kept", action="store_true")
    asked = options.parse_args()
    before = json.load(sys.stdin) if asked.kept else None
    kept = KeptTrials(before)
    with tempfile.TemporaryDirectory(prefix="flowos-") as folder:
        answer = tried(asked.deps, Path(folder), kept)
    if asked.kept:
        now = kept.plain()
        answer["kept"] = None if now == before else now
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
