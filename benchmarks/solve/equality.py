"""x is the same to the bit for any number of threads and ranks, compiler, processor and MPI."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from building import HERE, NotHere, compiled, on_cores, say
from hashes import drawn_side, hash_of
from problems import Problem, problem
from promises import RTOL
from rounds import Table
from trial import TurnFailed, answer_of, checked

from flowos._native import instruction_sets
from flowos.probes._solve_build import FLAGS, LIBRARIES

NATIVE = HERE.parent.parent / "src" / "flowos" / "solver" / "native"
SETTINGS: Sequence[tuple[str, ...]] = ((), ("coarse=none",), ("coarse=none", "precision=fp64"))
MATRICES = ("poisson:100x70x90", "g3like")
"""Grids whose sides are no multiples of blocks, and a graph."""
COUNTS = (1, 2, 3, 4)
"""Numbers of threads and of ranks, for any number of cores."""
COMPILERS = {"g++": "g++", "clang++": "clang libomp-dev"}
"""And Debian's packages of them."""
LEVELS = {"x86-64": "", "x86-64-v2": "sse4.2", "x86-64-v3": "avx2", "x86-64-v4": "avx512f"}
"""And an instruction set that none below has. Kernels of the first two are the portable ones."""
MPIS = {"openmpi": ("--oversubscribe", "--bind-to", "none"), "mpich": ()}
"""By the suffix of Debian's commands: options of their mpirun."""


@dataclass(frozen=True)
class Way:
    """One way to compute x. mpi: the program generates the matrix itself, and prints x's hash."""

    title: str
    words: Sequence[str]
    threads: int
    mpi: bool = False


def equality(table: Table, seed: int) -> dict[str, Any]:
    """For each matrix the hash of x by each way, what was not tried, and whether all are equal."""
    not_tried: dict[str, str] = {}
    ways = list(_ways(table, not_tried))
    found: dict[str, dict[str, str]] = {}
    for name in MATRICES:
        made = problem(name, seed, table.folder / "matrices")
        b = made.matrix_file.with_suffix(".b")
        (drawn_side(made.rows, seed) if name == "g3like" else np.ones(made.rows)).tofile(b)
        for settings in SETTINGS:
            title = " ".join((name, *settings))
            say(f"equality: {title}: {len(ways)} ways")
            found[title] = {way.title: answer(way, settings, made, seed) for way in ways}
        made.forget()
    return {
        "holds": all(len(set(hashes.values())) == 1 for hashes in found.values()),
        "matrices": found,
        "not_tried": not_tried,
    }


def answer(way: Way, settings: Sequence[str], made: Problem, seed: int) -> str:
    """The hash of x; or the reason why there is none, which differs from any hash."""
    variables = on_cores(way.threads)
    try:
        if way.mpi:
            matrix = made.matrix_file.stem.replace("-", ":")
            options = [word for setting in settings for word in f"--{setting}".split("=")]
            line = [*way.words, matrix, "--seed", str(seed), "--rtol", repr(RTOL), *options]
            return str(answer_of(line, variables)["x"])
        b, x = made.matrix_file.with_suffix(".b"), made.empty_answer()
        line = [*way.words, str(made.matrix_file), str(b), str(x), repr(RTOL)]
        answer_of([*line, f"threads={way.threads}", *settings], variables)
        checked(made, b, x)
        return hash_of(np.fromfile(x))
    except TurnFailed as reason:
        return str(reason)


def _ways(table: Table, not_tried: dict[str, str]) -> Iterator[Way]:
    """The ways by Python; then builds, which are compiled in parallel."""
    for threads in COUNTS:
        words = (sys.executable, str(HERE / "solve_ours.py"))
        yield Way(f"fo.Solver, {threads} threads", words, threads)
    folder = table.folder / "builds"
    with ThreadPoolExecutor(table.cores) as pool:
        builds = {
            f"{compiler} -march={level}": pool.submit(_native_ways, compiler, level, folder)
            for compiler in COMPILERS
            for level in LEVELS
        }
        builds |= {mpi: pool.submit(_mpi_ways, mpi, folder) for mpi in MPIS}
        for title, build in builds.items():
            try:
                yield from build.result()
            except NotHere as reason:
                not_tried[title] = str(reason)


def _native_ways(compiler: str, level: str, folder: Path) -> Sequence[Way]:
    program = native_program(compiler, level, folder)
    return [Way(f"{compiler} -march={level}", (str(program),), 2)]


def _mpi_ways(mpi: str, folder: Path) -> Sequence[Way]:
    """The MPI program, which generates the matrix itself, with numbers of ranks and threads."""
    mpirun, compiler = shutil.which(f"mpirun.{mpi}"), shutil.which(f"mpicxx.{mpi}")
    if mpirun is None or compiler is None:
        raise NotHere(f"no mpirun.{mpi} and mpicxx.{mpi}: apt install lib{mpi}-dev {mpi}")
    words = (compiler, f"-I{NATIVE}", *FLAGS, *_sources(), *LIBRARIES)
    program = str(compiled(NATIVE / "mpi" / "solve_mpi.cpp", words, folder / mpi))
    return [
        Way(
            f"{mpi}, {ranks} ranks x {threads} threads",
            (mpirun, *MPIS[mpi], "-n", str(ranks), program),
            threads,
            mpi=True,
        )
        for ranks, threads in (*((count, 1) for count in COUNTS), (2, 2))
    ]


def _sources() -> Sequence[str]:
    """Sources of the library, without mpi/, which is a program."""
    found = sorted(NATIVE.glob("*/*.cpp"))
    return [str(source) for source in found if source.parent.name != "mpi"]


def native_program(compiler: str, level: str, folder: Path) -> Path:
    """Compile the library with a program, for a level of processors. Raises NotHere on failure."""
    if shutil.which(compiler) is None:
        raise NotHere(f"no {compiler}: apt install {COMPILERS[compiler]}")
    if LEVELS[level] not in ("", *instruction_sets()):
        raise NotHere("this processor has not its instructions")
    words = (compiler, f"-I{NATIVE}", *FLAGS, *_sources(), *LIBRARIES)
    return compiled(HERE / "solve_native.cpp", words, folder / level, processor=level)
