"""solve_mpi.cpp, compiled from the package's sources and started by every MPI of this machine: the
same bits on any number of ranks and threads, right answers, and clear refusals. Where many small
problems are solved, one start of an MPI solves them all (solve/many_solves.cpp)."""

import json
import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.model import Case, Exited, Outcome, Unmeasured
from flowos.probes._solve_build import FLAGS, LIBRARIES, LIBRARY_SOURCES
from flowos.probes.solve import Solve
from flowos.solver import Csr, poisson, read_matrix
from tests.integration.solve.graph_files import elements_file, grid_file, power_grid, scaled
from tests.mpirun import started

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "src/flowos/solver/native"
MANY = Path(__file__).with_name("solve") / "many_solves.cpp"
"""Includes the program, which it is for all words but --list."""
SOURCES = [MANY, *(NATIVE / name for name in LIBRARY_SOURCES)]
CMAKE = (ROOT / "CMakeLists.txt").read_text()
STANDARD_HEADERS = CMAKE.split("set(standard_headers ")[1].split(")")[0].split()
APART = CMAKE.split('compile_folders_at_once(flowos_solve "')[1].split('"')[0].split(";")
CPU = re.findall(rb"(?m)^(?:flags|Features)\s.*", Path("/proc/cpuinfo").read_bytes())[:1]
PROCESSOR = sha256(b"".join(CPU)).hexdigest()[:16]
"""What -march=native stands for."""
CORES = len(os.sched_getaffinity(0))
CUBE = "poisson:24x20x28"
HASHES = runpy.run_path(str(ROOT / "benchmarks/solve/hashes.py"))


@dataclass(frozen=True)
class Family:
    """flags: other code from each, so that no x is the same because the code is."""

    name: str
    compiler: str
    mpirun: tuple[str, ...]
    flags: tuple[str, ...]


def find_families() -> list[Family]:
    known = (
        Family(
            "openmpi",
            "mpicxx.openmpi",
            ("mpirun.openmpi", "--oversubscribe", "-n"),
            ("-march=native",),
        ),
        Family("mpich", "mpicxx.mpich", ("mpiexec.mpich", "-n"), ("-O1",)),
    )
    return [f for f in known if shutil.which(f.compiler)]


FAMILIES = find_families()
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
Binaries = dict[str, Path]


def compiled_as_one() -> dict[str, list[Path]]:
    """Sources by what is compiled: those of a folder as one, but for what CMake compiles apart."""
    units: dict[str, list[Path]] = {}
    for source in SOURCES:
        apart = source.name in APART or re.search(r"_v\d$", source.stem)
        unit = f"{source.parent.name}-{source.stem}" if apart else source.parent.name
        units.setdefault(unit, []).append(source.relative_to(ROOT))
    return units


def compile_by(family: Family, to: Path) -> None:
    """As the probe does, but by the wrapper alone, two at a time, and as by CMake: folders at once,
    with the standard headers read once, by ccache where it is. Paths are relative: ccache then
    knows what it compiled for another run of these tests, or checkout."""
    ccache = [found] if (found := shutil.which("ccache")) else []
    at = {**os.environ, "CCACHE_NAMESPACE": PROCESSOR, "CCACHE_NOHASHDIR": "1"}
    at |= {"CCACHE_SLOPPINESS": "pch_defines,time_macros", "CCACHE_DEPEND": "1"}
    to.mkdir(exist_ok=True)
    (to / "checkout").symlink_to(ROOT)
    (to / "standard.h").write_text("".join(f"#include {name}\n" for name in STANDARD_HEADERS))
    include = f"-Icheckout/{NATIVE.relative_to(ROOT)}"
    common = (*ccache, family.compiler, *FLAGS, *family.flags, include)
    common += ("-MD", "-c", "-Wno-subobject-linkage")
    words = (*common, "-x", "c++-header", "standard.h", "-o", "standard.h.gch")
    subprocess.run(words, check=True, env=at, cwd=to)

    def compiled(unit: str, sources: list[Path]) -> str:
        (to / f"{unit}.cpp").write_text("".join(f'#include "checkout/{s}"\n' for s in sources))
        words = (*common, "-Winvalid-pch", "-include", "standard.h", f"{unit}.cpp")
        subprocess.run((*words, "-o", f"{unit}.o"), check=True, env=at, cwd=to)
        return f"{unit}.o"

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda unit: compiled(*unit), compiled_as_one().items()))
    link = (family.compiler, *FLAGS, *family.flags, *objects, "-o", "solve", *LIBRARIES)
    subprocess.run(link, check=True, cwd=to)


@pytest.fixture(scope="session")
def binaries(made_once: Callable[[str, Callable[[Path], None]], Path]) -> Binaries:
    """Compiled once, by the first of pytest's processes that needs them."""

    def compile_all(folder: Path) -> None:
        for family in FAMILIES:
            compile_by(family, folder / family.name)

    folder = made_once("solve-mpi", compile_all)
    return {f.name: folder / f.name / "solve" for f in FAMILIES}


def run(family: Family, binary: Path, *words: str, ranks: int = 1, threads: int = 1) -> Outcome:
    how = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
    return started((*family.mpirun, str(ranks), str(binary), *words), **how)


def answer(outcome: Outcome) -> dict[str, Any]:
    assert outcome.end == Exited(0), outcome.stderr.decode()
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


Solved = dict[str, dict[str, Any]]
"""What was found of each line."""


def line(ranks: int, threads: int, *words: str) -> str:
    """Of the list that the program is given."""
    return " ".join((str(ranks), str(threads), *map(json.dumps, words)))


def solve_all(family: Family, binary: Path, lines: Iterable[str], folder: Path) -> Solved:
    """By one start of the MPI."""
    wanted, path = list(lines), folder / f"{family.name}.list"
    path.write_text("".join(f"{each}\n" for each in wanted))
    most = max(int(each.split()[0]) for each in wanted)
    outcome = run(family, binary, "--list", str(path), ranks=most)
    assert outcome.end == Exited(0), outcome.stderr.decode()
    found = dict(zip(wanted, outcome.stdout.split(b"\x1e")[:-1], strict=True))
    return {each: json.loads(text) for each, text in found.items()}


def refusal(outcome: Outcome) -> str:
    found = Solve().read(Case("solve", levels=(("cores", "1"),)), outcome)
    assert isinstance(found, Unmeasured), found
    return found.reason


def test_an_mpi_is_here_to_test_with() -> None:
    assert FAMILIES, "apt install openmpi-bin libopenmpi-dev g++"


SHARES = ((1, 1), (1, 2), (2, 2), (3, 1), (4, 1))
"""Ranks and threads."""
OF_THE_OTHERS = ((2, 1), (3, 1))
HOWS: tuple[dict[str, Any], ...] = (
    {},
    {"block": 32, "colours": 2},
    {"block": 32, "colours": 20, "relax": 0.0},  # the paper's
    {"block": 32, "relax": 0.0},
    {"colours": 20},
    {"precision": "fp64"},
    {"precision": "fp32"},
    {"coarse": "aggregates"},
    {"coarse": "aggregates", "precision": "fp64"},
    {"coarse": "aggregates", "colours": 3},  # of grown blocks
    {"coarse": "aggregates", "rtol": 1e-13},
)
Cells = tuple[int, int, int]
COARSE = ("none", "aggregates")
SMALL_OR_THIN: tuple[Cells, ...] = ((10, 10, 10), (9, 8, 9), (1, 40, 37), (50, 1, 3), (7, 2, 31))


def cube_lines(family: Family, how: dict[str, Any]) -> list[str]:
    words = [CUBE, *(word for name, value in how.items() for word in (option(name), str(value)))]
    shares = SHARES if family == FAMILIES[0] else OF_THE_OTHERS
    return [line(*share, *words) for share in shares]


def option(name: str) -> str:
    return "--block-rows" if name == "block" else f"--{name}"


def grid_line(cells: Cells, coarse: str, ranks: int = 2, threads: int = 1) -> str:
    return line(ranks, threads, "poisson:" + "x".join(map(str, cells)), "--coarse", coarse)


@pytest.fixture(scope="session")
def solved(
    made_once: Callable[[str, Callable[[Path], None]], Path], binaries: Binaries
) -> dict[str, Solved]:
    """The small problems of Poisson's equation, by each family."""

    def solve_of_all(folder: Path) -> None:
        for family in FAMILIES:
            lines = [each for how in HOWS for each in cube_lines(family, how)]
            if family == FAMILIES[0]:
                lines += [grid_line(cells, c) for cells in SMALL_OR_THIN for c in COARSE]
            found = solve_all(family, binaries[family.name], lines, folder)
            (folder / family.name).write_text(json.dumps(found))

    folder = made_once("solved-by-ranks", solve_of_all)
    return {f.name: json.loads((folder / f.name).read_text()) for f in FAMILIES}


def by_the_library(matrix: Csr, b: Any, **how: Any) -> dict[str, Any]:
    """What an answer of the program has to say, too."""
    x, info = fo.solve(matrix, b, **how)
    setup = info.setup
    told = {"x": HASHES["hash_of"](x), "iterations": info.iterations}
    return told | {"blocks": setup.blocks, "colours": setup.colours, "levels": setup.levels}


@cache
def grid_by_the_library(cells: Cells, **how: Any) -> dict[str, Any]:
    matrix = poisson(*cells)
    return by_the_library(matrix, np.ones(matrix.shape[0]), **how)


def assert_alike(found: dict[str, Any], told: dict[str, Any]) -> None:
    assert {name: found.get(name, found) for name in told} == told


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_x_is_the_bits_of_the_library_whatever_the_ranks_threads_and_mpi(
    how: dict[str, Any], solved: dict[str, Solved]
) -> None:
    for family in FAMILIES:
        answers = [solved[family.name][each] for each in cube_lines(family, how)]
        shares = SHARES if family == FAMILIES[0] else OF_THE_OTHERS
        for (ranks, threads), found in zip(shares, answers, strict=True):
            assert_alike(found, {"ranks": ranks, "threads": threads})
            assert_alike(found, grid_by_the_library((24, 20, 28), **how))
            assert found["residual"] <= how.get("rtol", 1e-7)


@pytest.mark.parametrize("coarse", COARSE)
@pytest.mark.parametrize("cells", SMALL_OR_THIN)
def test_grids_that_are_small_or_thin_are_solved_alike_by_program_and_library(
    cells: Cells, coarse: str, solved: dict[str, Solved]
) -> None:
    found = solved[FAMILIES[0].name][grid_line(cells, coarse)]
    assert_alike(found, grid_by_the_library(cells, coarse=coarse))


@pytest.mark.parametrize("cells", [(64, 64, 72), (75, 66, 61)], ids=["halved", "uneven"])
def test_levels_that_are_shared_out_give_the_bits_of_the_library(
    cells: Cells, binaries: Binaries, tmp_path: Path
) -> None:
    family, shares = FAMILIES[0], ((2, 1), (2, 2), (3, 1))
    lines = [grid_line(cells, "aggregates", *share) for share in shares]
    for found in solve_all(family, binaries[family.name], lines, tmp_path).values():
        assert_alike(found, grid_by_the_library(cells, coarse="aggregates"))


@each_family
def test_a_grid_of_half_a_million_rows_takes_levels_in_the_program_as_in_the_library(
    family: Family, binaries: Binaries
) -> None:
    found = answer(run(family, binaries[family.name], "poisson:80x80x80", ranks=2))
    assert found["levels"] > 1
    assert found["residual"] <= 1e-7
    assert_alike(found, grid_by_the_library((80, 80, 80)))


@pytest.mark.parametrize("factor", [1e-170, 1e170])
def test_the_program_gives_the_bits_of_the_library_where_a_matrix_is_scaled(
    factor: float, binaries: Binaries, tmp_path: Path
) -> None:
    path = scaled(power_grid(tmp_path), factor)
    matrix, family = read_matrix(path), FAMILIES[0]
    b = HASHES["drawn_side"](matrix.shape[0], 1)
    lines = [line(ranks, 1, str(path)) for ranks in (1, 2)]
    for found in solve_all(family, binaries[family.name], lines, tmp_path).values():
        assert_alike(found, by_the_library(matrix, b))


@pytest.mark.parametrize("coarse", ["none", "aggregates"])
@pytest.mark.parametrize("precision", ["auto", "fp64"])
def test_the_program_of_many_ranks_gives_the_bits_of_the_library_on_a_graph(
    precision: str, coarse: str, binaries: Binaries, tmp_path: Path
) -> None:
    family = FAMILIES[0]
    paths = (power_grid(tmp_path), grid_file(tmp_path), elements_file(tmp_path))
    words = ("--precision", precision) if precision != "auto" else ()
    lines = {
        p: [line(*share, str(p), *words, "--coarse", coarse) for share in SHARES] for p in paths
    }
    found = solve_all(family, binaries[family.name], chain(*lines.values()), tmp_path)
    for path in paths:
        matrix = read_matrix(path)
        b = HASHES["drawn_side"](matrix.shape[0], 1)
        told = by_the_library(matrix, b, precision=precision, coarse=coarse)
        for each, (ranks, threads) in zip(lines[path], SHARES, strict=True):
            assert_alike(found[each], told | {"ranks": ranks, "threads": threads})


def test_levels_of_a_graph_that_are_shared_out_give_the_bits_of_the_library(
    binaries: Binaries, tmp_path: Path
) -> None:
    family, path = FAMILIES[0], power_grid(tmp_path, side=400)
    matrix = read_matrix(path)
    b = HASHES["drawn_side"](matrix.shape[0], 1)
    how = {"coarse": "aggregates", "precision": "fp64"}
    words = [word for name, value in how.items() for word in (f"--{name}", value)]
    lines = [line(ranks, 1, str(path), *words) for ranks in (2, 3)]
    told = by_the_library(matrix, b, **how)
    for found in solve_all(family, binaries[family.name], lines, tmp_path).values():
        assert_alike(found, told)


def test_a_mesh_of_a_file_gives_the_same_bits_on_any_ranks(
    binaries: Binaries, tmp_path: Path
) -> None:
    family = FAMILIES[0]
    path = str(grid_file(tmp_path))
    found = [answer(run(family, binaries[family.name], path, ranks=r)) for r in (1, 2, 4)]
    assert len({f["x"] for f in found}) == 1
    assert found[0]["residual"] <= 1e-7
    assert (found[0]["problem"], found[0]["rows"]) == ("mesh", 144)


@each_family
def test_the_answer_has_what_a_machine_is_judged_by(family: Family, binaries: Binaries) -> None:
    words = (CUBE, "--triad", "300000", "--seconds", "0.05")
    outcome = run(family, binaries[family.name], *words, ranks=2)
    found = answer(outcome)
    assert (found["ranks"], found["threads"], found["rows"]) == (2, 1, 24 * 20 * 28)
    assert found["iterations"] > 1
    assert found["bytes_per_iteration"] > found["rows"] * 40
    readings = Solve().read(Case("solve", levels=(("cores", "2"),)), outcome)
    assert not isinstance(readings, Unmeasured), readings
    metrics = {r.metric: r for r in readings}
    assert set(metrics) == {"total", "setup", "iteration", "bandwidth", "triad"}
    assert all(min(r.values) > 0 for r in readings)
    assert len(metrics["total"].values) == len(metrics["setup"].values)
    assert dict(metrics["total"].notes)["x"] == found["x"]
    notes = dict(metrics["bandwidth"].notes)
    assert int(notes["bytes_per_iteration"]) == found["bytes_per_iteration"]
    assert int(notes["flops_per_iteration"]) > found["rows"] * 30


def test_more_ranks_than_groups_of_a_colour_do_no_harm(binaries: Binaries) -> None:
    family = FAMILIES[0]
    found = [
        answer(run(family, binaries[family.name], "poisson:9x5x7", ranks=ranks)) for ranks in (1, 4)
    ]
    assert found[0]["x"] == found[1]["x"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "usage: solve_mpi poisson:"),
        (("poisson:8x8",), "poisson:8x8: give three sizes"),
        (("poisson:0x8x8",), "poisson:0x8x8 0: give a number from 1"),
        (("poisson:99999x99999x99999",), "more cells than 32 bits count"),
        ((CUBE, "--colours"), "--colours: give its value"),
        ((CUBE, "--colours", "many"), "--colours many: give a number from 1"),
        ((CUBE, "--precision", "fp16"), "--precision fp16: give fp32 or fp64"),
        ((CUBE, "--coarse", "fine"), "--coarse fine: give auto, none or aggregates"),
        ((CUBE, "--fast", "1"), "--fast is no option"),
        (("/no/such.mtx",), "/no/such.mtx"),
        ((CUBE, "--max-iterations", "2"), "did not converge"),
    ],
)
def test_what_cannot_be_done_gets_one_clear_line(
    words: tuple[str, ...], complaint: str, binaries: Binaries
) -> None:
    family = FAMILIES[0]
    outcome = run(family, binaries[family.name], *words, ranks=2)
    assert outcome.end != Exited(0)
    assert complaint in refusal(outcome)
    assert outcome.stderr.count(b"solve_mpi: ") == 1


def test_another_matrix_is_not_called_g3_circuit(binaries: Binaries, tmp_path: Path) -> None:
    family = FAMILIES[0]
    path = grid_file(tmp_path).rename(tmp_path / "G3_circuit.mtx")
    said = refusal(run(family, binaries[family.name], str(path)))
    assert "is not G3_circuit: it has 144 rows" in said
