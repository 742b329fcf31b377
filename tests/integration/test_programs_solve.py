"""solve_mpi.cpp, compiled from the package's sources and started by every MPI of this machine: the
same bits on any number of ranks and threads, right answers, and clear refusals."""

import json
import os
import runpy
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import io, sparse

import flowos as fo
from flowos.model import Case, Exited, Outcome, Unmeasured
from flowos.probes._solve_build import FLAGS, LIBRARIES, LIBRARY_SOURCES, SOURCE
from flowos.probes.solve import Solve
from flowos.solver import Csr, poisson, read_matrix
from tests.mpirun import started

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "src/flowos/solver/native"
SOURCES = [NATIVE / name for name in (SOURCE, *LIBRARY_SOURCES)]
CORES = len(os.sched_getaffinity(0))
CUBE = "poisson:24x20x28"
MATRICES = runpy.run_path(str(Path(__file__).with_name("solve") / "matrices.py"))
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


def compile_by(family: Family, to: Path) -> None:
    """As the probe does, but by the wrapper alone: two at a time, and by ccache where it is."""
    ccache = [found] if (found := shutil.which("ccache")) else []
    at = {**os.environ, "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
    to.mkdir(exist_ok=True)

    def compiled(source: Path) -> str:
        flags = (*FLAGS, *family.flags, f"-I{NATIVE}")
        words = [*ccache, family.compiler, *flags, "-c", str(source), "-o"]
        made = str(to / "-".join(source.relative_to(NATIVE).with_suffix(".o").parts))
        subprocess.run([*words, made], check=True, env=at)
        return made

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, SOURCES))
    link = [family.compiler, *FLAGS, *family.flags, *objects, "-o", str(to / "solve"), *LIBRARIES]
    subprocess.run(link, check=True)


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


def refusal(outcome: Outcome) -> str:
    found = Solve().read(Case("solve", levels=(("cores", "1"),)), outcome)
    assert isinstance(found, Unmeasured), found
    return found.reason


def test_an_mpi_is_here_to_test_with() -> None:
    assert FAMILIES, "apt install openmpi-bin libopenmpi-dev g++"


SHARES = ((1, 1), (1, 2), (2, 2), (3, 1), (4, 1))
"""Ranks and threads."""
OF_THE_OTHERS = ((2, 1), (3, 1))


def assert_the_library_gives(found: dict[str, Any], matrix: Csr, b: Any, **how: Any) -> None:
    x, info = fo.solve(matrix, b, **how)
    setup = info.setup
    told = {"x": HASHES["hash_of"](x), "iterations": info.iterations}
    told |= {"blocks": setup.blocks, "colours": setup.colours, "levels": setup.levels}
    assert told == {name: found[name] for name in told}


@pytest.mark.parametrize(
    "how",
    [
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
    ],
    ids=str,
)
def test_x_is_the_bits_of_the_library_whatever_the_ranks_threads_and_mpi(
    how: dict[str, Any], binaries: Binaries
) -> None:
    matrix = poisson(24, 20, 28)
    words = [CUBE, *(word for name, value in how.items() for word in (option(name), str(value)))]
    for family in FAMILIES:
        for ranks, threads in SHARES if family == FAMILIES[0] else OF_THE_OTHERS:
            found = answer(run(family, binaries[family.name], *words, ranks=ranks, threads=threads))
            assert found["residual"] <= how.get("rtol", 1e-7)
            assert_the_library_gives(found, matrix, np.ones(matrix.shape[0]), **how)


def option(name: str) -> str:
    return "--block-rows" if name == "block" else f"--{name}"


@pytest.mark.parametrize("coarse", ["none", "aggregates"])
@pytest.mark.parametrize("cells", [(10, 10, 10), (9, 8, 9), (1, 40, 37), (50, 1, 3), (7, 2, 31)])
def test_grids_that_are_small_or_thin_are_solved_alike_by_program_and_library(
    cells: tuple[int, int, int], coarse: str, binaries: Binaries
) -> None:
    family, matrix = FAMILIES[0], poisson(*cells)
    words = ("poisson:" + "x".join(map(str, cells)), "--coarse", coarse)
    found = answer(run(family, binaries[family.name], *words, ranks=2))
    assert_the_library_gives(found, matrix, np.ones(matrix.shape[0]), coarse=coarse)


@pytest.mark.parametrize("cells", [(64, 64, 72), (75, 66, 61)], ids=["halved", "uneven"])
def test_levels_that_are_shared_out_give_the_bits_of_the_library(
    cells: tuple[int, int, int], binaries: Binaries
) -> None:
    family, matrix = FAMILIES[0], poisson(*cells)
    words = ("poisson:" + "x".join(map(str, cells)), "--coarse", "aggregates")
    for ranks, threads in ((2, 1), (2, 2), (3, 1)):
        outcome = run(family, binaries[family.name], *words, ranks=ranks, threads=threads)
        ones = np.ones(matrix.shape[0])
        assert_the_library_gives(answer(outcome), matrix, ones, coarse="aggregates")


@each_family
def test_a_million_rows_take_levels_in_the_program_as_in_the_library(
    family: Family, binaries: Binaries
) -> None:
    matrix = poisson(100, 100, 100)
    found = answer(run(family, binaries[family.name], "poisson:100x100x100", ranks=2))
    assert found["levels"] > 1
    assert found["residual"] <= 1e-7
    assert_the_library_gives(found, matrix, np.ones(matrix.shape[0]))


def scaled(path: Path, factor: float) -> Path:
    """The same, each value of it times so much."""
    found = read_matrix(path)
    to = path.with_name(f"{path.stem}-{factor:g}.mtx")
    io.mmwrite(
        to,
        sparse.csr_array((found.data * factor, found.indices, found.indptr)),
        symmetry="symmetric",
        precision=17,
    )
    return to


@pytest.mark.parametrize("factor", [1e-170, 1e170])
def test_the_program_gives_the_bits_of_the_library_where_a_matrix_is_scaled(
    factor: float, binaries: Binaries, tmp_path: Path
) -> None:
    path = scaled(power_grid(tmp_path), factor)
    matrix, family = read_matrix(path), FAMILIES[0]
    b = HASHES["drawn_side"](matrix.shape[0], 1)
    for ranks in (1, 2):
        found = answer(run(family, binaries[family.name], str(path), ranks=ranks))
        assert_the_library_gives(found, matrix, b)


def power_grid(folder: Path, side: int = 60) -> Path:
    """A mesh of resistors over two decades, some of them missing, a node in a hundred grounded."""
    random = np.random.default_rng(5)
    node = random.permutation(side * side).reshape(side, side)  # else a grid would be found
    ends = np.concatenate(
        [
            np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()]),
            np.stack([node[:-1].ravel(), node[1:].ravel()]),
        ],
        axis=1,
    )
    ends = ends[:, random.random(ends.shape[1]) > 0.045]
    half = sparse.coo_array(
        (10.0 ** random.uniform(-1, 1, ends.shape[1]), (ends[0], ends[1])), shape=(node.size,) * 2
    )
    ties = sparse.csr_array(half + half.T)
    ground = (random.random(node.size) < 0.01) + 1e-9
    path = folder / "grid.mtx"
    io.mmwrite(path, sparse.diags_array(ties.sum(axis=1) + ground) - ties, symmetry="symmetric")
    return path


@pytest.mark.parametrize("coarse", ["none", "aggregates"])
@pytest.mark.parametrize("precision", ["auto", "fp64"])
def test_the_program_of_many_ranks_gives_the_bits_of_the_library_on_a_graph(
    precision: str, coarse: str, binaries: Binaries, tmp_path: Path
) -> None:
    family = FAMILIES[0]
    for path in (power_grid(tmp_path), grid_file(tmp_path), elements_file(tmp_path)):
        matrix = read_matrix(path)
        b = HASHES["drawn_side"](matrix.shape[0], 1)
        words = (str(path), *(("--precision", precision) if precision != "auto" else ()))
        for ranks, threads in SHARES:
            outcome = run(
                *(family, binaries[family.name], *words, "--coarse", coarse),
                ranks=ranks,
                threads=threads,
            )
            assert_the_library_gives(answer(outcome), matrix, b, precision=precision, coarse=coarse)


def test_levels_of_a_graph_that_are_shared_out_give_the_bits_of_the_library(
    binaries: Binaries, tmp_path: Path
) -> None:
    family, path = FAMILIES[0], power_grid(tmp_path, side=400)
    matrix = read_matrix(path)
    b = HASHES["drawn_side"](matrix.shape[0], 1)
    how = {"coarse": "aggregates", "precision": "fp64"}
    words = [word for name, value in how.items() for word in (f"--{name}", value)]
    for ranks in (2, 3):
        found = answer(run(family, binaries[family.name], str(path), *words, ranks=ranks))
        assert_the_library_gives(found, matrix, b, **how)


def grid_file(folder: Path, n: int = 12) -> Path:
    """A grid with triangles, whose cells touch at corners, in lower triangular storage."""
    entries = []
    for i in range(n * n):
        links = [j for j in (i + 1, i + n, i + n + 1) if j < n * n and (j % n or j == i + n)]
        entries += [f"{j + 1} {i + 1} {-1 - (i * j) % 7 / 8}" for j in links]
        entries.append(f"{i + 1} {i + 1} 16")
    path = folder / "mesh.mtx"
    head = "%%MatrixMarket matrix coordinate real symmetric"
    path.write_text("\n".join((head, f"{n * n} {n * n} {len(entries)}", *entries)) + "\n")
    return path


def elements_file(folder: Path) -> Path:
    """Rows that are not dominant: pivots are raised."""
    path = folder / "elements.mtx"
    io.mmwrite(path, MATRICES["wathen"](20, seed=6), symmetry="symmetric")
    return path


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
