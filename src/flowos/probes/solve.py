"""Conjugate gradients with incomplete Cholesky or a multigrid cycle, over MPI ranks and threads.

Strong scaling of Poisson's equation and of a circuit, after figures 12 and 13 of Nagai et al.,
AXIES 2023, whose settings (table 2: blocks of 32 rows, 20 colours, 2 processes a node) are measured
together with ours. x is the same bits in all of them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from flowos._dataclasses import dataclass
from flowos.model import (
    Argv,
    Case,
    Chart,
    Facts,
    Measurement,
    MeasurementRequest,
    Mpi,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.probes._arrays import elements_for, last_cache_bytes
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, read_answer
from flowos.probes._cores import doubled
from flowos.probes._intensity import Intensity
from flowos.probes._scaling import scaling_over_nodes
from flowos.probes._solve_build import NATIVE_FLAGS, compilers_of, solver_build
from flowos.probes._solve_findings import PROBLEM, equal_answers
from flowos.probes._suspicious import crowded, with_suspicion

SETTINGS: dict[str, Argv] = {
    "default": (),
    "paper": (
        *("--block-rows", "32", "--colours", "20", "--relax", "0"),
        *("--precision", "fp64", "--coarse", "none"),
    ),
}
GRIDS = (
    (96, 96, 96),
    (128, 128, 128),
    (128, 256, 256),
    (256, 256, 256),
    (512, 256, 256),
    (512, 512, 512),
    (1024, 1024, 512),
)
"""Cells in z, y and x."""
MIN_GRID = {"quick": 0, "normal": 1, "full": 4}
"""Index of GRIDS for an effort, unless the caches need a larger one: the paper's for full."""

SECONDS = {"quick": 0.4, "normal": 1.0, "full": 5.0}
"""How long solving is repeated; at least once."""

CIRCUIT_ROWS = 1_585_478
CIRCUIT_SECONDS = 0.6
"""Approximate time to generate or read the circuit."""

BYTES_PER_ROW = {"default": 185, "paper": 275}
"""Measured peak memory of one rank that solves Poisson's equation, by setting."""
BYTES_PER_ROW_AND_RANK = 50
"""Additional memory for each other rank."""
SETUP_BYTES_PER_ROW = 900
"""Bytes moved by the set-up."""
ITERATION_BYTES_PER_ROW = 82
"""Bytes of the cheapest iteration: in fp32, by Eisenstat's trick."""
CACHES = 2
MEMORY_SHARE = 0.75
"""The rest is left to the system."""
BANDWIDTH, MAX_STREAMS = 10e9, 16
"""Assumed bytes a second of a core, and the number of cores up to which they add up."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem: the program's argument for it, its name and size, and the number of unknowns."""

    word: str
    name: str
    size: str
    rows: int


@dataclass(frozen=True, slots=True)
class SolvePoint:
    """One point of the sweep. layout: how the cores are divided into ranks and threads.

    nodes: each of which has so many; None on this machine.
    """

    problem: Problem
    setting: str
    mpi: Mpi
    layout: str
    ranks: int
    threads: int
    nodes: int | None = None


def _curve(
    title: str, metric: str, unit: str, about: str, *, x: str = "cores", ceilings: bool = False
) -> Chart:
    return Chart(
        title=title,
        kind="curve",
        x=x,
        metrics=(metric,),
        series=("setting", "mpi", "layout"),
        facets=("problem", "size"),
        x_label=x,
        y_label=unit,
        log_x=True,
        log_y=True,
        ceilings=ceilings,
        about=about,
    )


class Solve(Probe):
    """Metrics total, setup, iteration (second), bandwidth and triad (byte/s)."""

    info = ProbeInfo(
        name="solve",
        reads_matrix=True,
        title="Sparse solver (conjugate gradients)",
        charts=(
            _curve("Time to solution", "total", "second", "Set-up and all iterations, to 1e-7."),
            _curve("Time of an iteration", "iteration", "second", "The problem stays the same."),
            _curve(
                "Memory traffic of an iteration",
                "bandwidth",
                "byte/s",
                "What an iteration must move, over its time. The ceiling is the STREAM triad of as"
                " many cores just before and after, where the line that a store reads first is"
                " counted.",
                ceilings=True,
            ),
            _curve(
                "Time to solution over nodes",
                "total",
                "second",
                "The problem stays the same. Two ranks are on each node.",
                x="nodes",
            ),
        ),
        headlines=(
            Headline("Sparse solver, Poisson", "total", (("problem", "poisson"),)),
            Headline("Sparse solver, memory traffic", "bandwidth", (("problem", "poisson"),)),
        ),
        between_nodes="named",
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        mpis = [mpi for mpi in facts.mpis if mpi.cxx]
        if not mpis:
            return Unmeasured(
                reason="no MPI with a compiler of C++20 and an mpirun was found",
                remedy="apt install openmpi-bin libopenmpi-dev g++",
            )
        points = dict.fromkeys(_points(facts, request, mpis))
        return tuple(_case(point, facts, request) for point in points)

    def seconds(self, case: Case) -> float:
        """Assumes 10 GB/s for each core, up to 16 of them."""
        cores = int(case.level("cores"))
        rows, rate = int(case.detail("rows")), BANDWIDTH * min(cores, MAX_STREAMS)
        iterations = math.cbrt(rows)
        once = rows * (iterations * ITERATION_BYTES_PER_ROW + SETUP_BYTES_PER_ROW) / rate
        made = CIRCUIT_SECONDS if case.level("problem") != "poisson" else 0.0
        triad = 12 * 32 * int(case.detail("elements")) / rate
        return 0.3 + made + triad + max(once, float(case.detail("seconds")))

    def program(self, case: Case) -> Program:
        threads = case.detail("threads")
        return Program(
            argv=(
                case.detail("word"),
                *SETTINGS[case.level("setting")],
                *("--seconds", case.detail("seconds")),
                *("--triad", case.detail("elements")),
            ),
            build=solver_build(case),
            variables=(
                ("OMP_NUM_THREADS", threads),
                ("OMP_DYNAMIC", "false"),
                ("OMP_PLACES", "cores"),
                ("OMP_PROC_BIND", "close"),
            ),
            cores=int(threads),
            ranks=int(case.detail("ranks")),
            nodes=int(case.level("nodes")) if case.level("nodes") else None,
            mpi_family=case.detail("family"),
            mpirun=case.detail("mpirun"),
            limit_seconds=60.0 + 10 * self.seconds(case),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        readings = read_answer(outcome, "solve_mpi")
        if isinstance(readings, Unmeasured):
            return readings
        cores = int(case.level("cores")) // int(case.level("nodes", "1"))
        return with_suspicion(readings, [crowded(readings, cores)])

    def ceiling(self, case: Case) -> Case | None:
        """The best triad of as many cores, in any layout."""
        return Case(self.name, (("cores", case.level("cores")),)).at(metric="triad")

    def intensity(self, measured: Measurement) -> Intensity | None:
        """Both by the solver's own counts (`flops_per_iteration`, `bytes_per_iteration`): additions
        and multiplications of its sweeps, over matrix and vectors as often as they must pass.

        Eisenstat's trick (SIAM Journal on Scientific and Statistical Computing 2, 1981) has no
        product with the matrix. Several nodes are above one node's roofs.
        """
        case = measured.case
        flops, moved = (float(case.detail(f"{w}_per_iteration", "0")) for w in ("flops", "bytes"))
        if measured.metric != "bandwidth" or not flops * moved or case.level("nodes", "1") != "1":
            return None
        by = "multigrid" if int(case.detail("levels", "1")) > 1 else "IC"
        label = f"CG, {by}, {case.level('problem')}"
        return Intensity(label, flops / moved, case.detail("precision").replace("fp", "f"))

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        return (*equal_answers(measured), *scaling_over_nodes(measured, "total", (*PROBLEM, "mpi")))


def poisson(facts: Facts, request: MeasurementRequest) -> Problem:
    """The effort's grid, larger if it fits into the caches, smaller if not into memory."""
    most = (facts.usable_memory_bytes or 8 << 30) * MEMORY_SHARE / _bytes_per_row(facts)
    least = CACHES * last_cache_bytes(facts) / ITERATION_BYTES_PER_ROW
    large = (g for g in GRIDS[MIN_GRID[request.effort] :] if math.prod(g) >= least)
    chosen = next(large, GRIDS[-1])
    smaller = [g for g in GRIDS if math.prod(g) <= min(most, math.prod(chosen))]
    z, y, x = smaller[-1] if smaller else GRIDS[0]
    size = f"{x}x{y}x{z}"
    return Problem(f"poisson:{size}", "poisson", size, x * y * z)


def _bytes_per_row(facts: Facts) -> int:
    """Maximum over the settings, with a rank on each core."""
    others = core_counts(facts)[-1] - 1
    return max(BYTES_PER_ROW.values()) + BYTES_PER_ROW_AND_RANK * others


def circuit(request: MeasurementRequest) -> Problem:
    """The user's own matrix, by the name of its file; else one that is like G3_circuit."""
    if request.matrix is None:
        return Problem("g3like", "g3like", str(CIRCUIT_ROWS), CIRCUIT_ROWS)
    return Problem(str(request.matrix), request.matrix.stem, "", CIRCUIT_ROWS)


def layouts(cores: int) -> tuple[tuple[str, int, int], ...]:
    """Name, ranks and threads of each layout of so many cores."""
    ways = [("threads", 1, cores)]
    if cores > 1:
        ways.append(("ranks", cores, 1))
    if cores > 2 and cores % 2 == 0:
        ways.append(("2 ranks", 2, cores // 2))
    return tuple(ways)


def core_counts(facts: Facts) -> tuple[int, ...]:
    """1, 2, 4 .. all cores; no more than a cgroup quota allows."""
    most = max(1, int(min(len(facts.one_per_core), facts.quota_cpus or math.inf)))
    return doubled(most)


def _points(facts: Facts, request: MeasurementRequest, mpis: list[Mpi]) -> Iterator[SolvePoint]:
    """Quick: Poisson on one core and all. Normal: all counts, and the circuit; each other MPI and
    the paper's setting on all cores for Poisson. Full: everything with everything."""
    counts = core_counts(facts)
    grid, net = poisson(facts, request), circuit(request)
    if request.nodes > 1:
        yield from _over_nodes((grid, net), mpis[0], counts[-1], request)
    elif request.effort == "quick":
        yield from _scaling(grid, "default", mpis[0], {counts[0], counts[-1]})
    elif request.effort == "normal":
        yield from _scaling(grid, "default", mpis[0], counts)
        for mpi in mpis[1:]:
            yield _usual(grid, "default", mpi, counts[-1])
        yield _usual(grid, "paper", mpis[0], counts[-1])
        yield from _scaling(net, "default", mpis[0], {counts[0], counts[-1]})
    else:
        for problem in (grid, net):
            for setting in SETTINGS:
                for mpi in mpis:
                    yield from _scaling(problem, setting, mpi, counts)


def _scaling(
    problem: Problem, setting: str, mpi: Mpi, counts: Iterable[int]
) -> Iterator[SolvePoint]:
    for cores in sorted(counts):
        for layout, ranks, threads in layouts(cores):
            yield SolvePoint(problem, setting, mpi, layout, ranks, threads)


def _over_nodes(
    problems: Sequence[Problem], mpi: Mpi, cores: int, request: MeasurementRequest
) -> Iterator[SolvePoint]:
    """Two ranks on each of 1, 2, 4 .. all nodes. Quick: Poisson in the paper's setting."""
    quick = request.effort == "quick"
    layout = ("2 ranks", 2, cores // 2) if cores > 1 else ("threads", 1, 1)
    for problem in problems[:1] if quick else problems:
        for setting in ("paper",) if quick else SETTINGS:
            for nodes in doubled(request.nodes):
                yield SolvePoint(problem, setting, mpi, *layout, nodes)


def _usual(problem: Problem, setting: str, mpi: Mpi, cores: int) -> SolvePoint:
    """The paper's layout of a node: two ranks."""
    return SolvePoint(problem, setting, mpi, *layouts(cores)[-1])


def _case(point: SolvePoint, facts: Facts, request: MeasurementRequest) -> Case:
    """Between nodes it is compiled here for all of them: its kernels choose by the processor."""
    problem, mpi, nodes = point.problem, point.mpi, point.nodes or 1
    native = "" if point.nodes else NATIVE_FLAGS.get(facts.architecture, "-march=native")
    return Case(
        "solve",
        levels=(
            ("problem", problem.name),
            ("size", problem.size),
            ("setting", point.setting),
            ("mpi", mpi.name),
            ("layout", point.layout),
            *((("nodes", str(nodes)),) if point.nodes else ()),
            ("cores", str(nodes * point.ranks * point.threads)),
        ),
        details=(
            ("word", problem.word),
            ("rows", str(problem.rows)),
            ("ranks", str(nodes * point.ranks)),
            ("threads", str(point.threads)),
            *compilers_of(mpi),
            ("family", mpi.family),
            ("mpirun", str(mpi.mpirun)),
            ("native", native),
            ("seconds", str(SECONDS[request.effort])),
            ("elements", str(elements_for(facts))),
        ),
    )
