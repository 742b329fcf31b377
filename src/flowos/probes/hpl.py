"""Linpack as HPL states it: a dense system by LU with partial pivoting, over its size N.

Petitet, Whaley, Dongarra, Cleary: HPL. By the LAPACK of each library that gemm measures, in a
program of our own, and by an xhpl that is installed. Both solve the same system and check it alike.
"""

import math
from collections.abc import Sequence
from functools import partial

from flowos.model import (
    Argv,
    Blas,
    Case,
    Chart,
    Compiler,
    Effort,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Pairs,
    Reading,
    Tool,
    Unmeasured,
)
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, best_compiler, read_answer
from flowos.probes._cores import (
    NO_COMPILER,
    build_for,
    core_sets,
    library_threads,
    list_of,
    on_cores,
    options_of,
)
from flowos.probes._hpl_answer import hpl_input, read_answer_of_hpl
from flowos.probes._intensity import Intensity
from flowos.probes._left_out import sizes_left_out
from flowos.probes._measure_command import measure_command
from flowos.probes._own_folder import in_own_folder
from flowos.probes._ranks import process_grid, ranks_of
from flowos.probes.gemm import FORCED

XHPL = "xhpl"
"""The level of `solver` of an installed HPL; others are names of libraries."""

MAX_N = {"quick": 8000, "normal": 32000, "full": 1 << 30}
SECONDS = {"quick": 3.0, "normal": 20.0, "full": 3600.0}
"""For all solvers together."""
MEMORY_SHARE = {"quick": 0.1, "normal": 0.25, "full": 0.8}
"""Of the memory that we may use, for the matrix: HPL's guide advises 80 %."""
ROUND_N = 256
SLOWEST = 10e9
"""Assumed flop/s of a core, for xhpl: it does not end by itself when its time is over."""

FAMILIES = ("openblas", "mkl", "other", "blis")
"""The order in which libraries are preferred: BLIS has no LAPACK, and gets ours."""

NO_BLAS = Unmeasured(
    reason="no BLAS library and no xhpl was found", remedy="pip install numpy (it brings one)"
)


class Hpl(Probe):
    """Metrics flops (flop/s, by HPL's count) and time (second) over n, per solver."""

    info = ProbeInfo(
        name="hpl",
        title="Linpack (HPL)",
        charts=(
            Chart(
                title="Linpack over the size of the system",
                kind="curve",
                x="n",
                metrics=("flops",),
                series=("solver",),
                facets=("cores",),
                x_label="N (a dense system of N equations)",
                y_label="flop/s",
                log_x=True,
                about="(2/3 N³ + 3/2 N²) / time, f64. Each solution passed HPL's scaled residual."
                " HPL's rule for a rating is an N that takes 80 % of memory: measure --full.",
            ),
        ),
        headlines=(Headline("Linpack (HPL), f64", "flops"),),
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        """Only if the probe is asked for by name."""
        if self.name not in request.probes:
            return ()
        compiler, tool, effort = best_compiler(facts), facts.tool(XHPL), request.effort
        libraries = _libraries(facts, effort) if compiler else ()
        seconds = SECONDS[effort] / max(1, len(libraries) + (tool is not None))
        own = [_own(each, compiler, facts, effort, seconds) for each in libraries if compiler]
        installed = [_installed(tool, facts, effort, seconds)] if tool else []
        if own or installed:
            return (*own, *installed)
        return NO_BLAS if compiler else NO_COMPILER

    def seconds(self, case: Case) -> float:
        return 0.5 + float(case.detail("seconds"))

    def program(self, case: Case) -> Program:
        if case.level("solver") == XHPL:
            return _program_of_xhpl(case)
        threads = case.level("cores")
        names = ("library", "symbol", "family", "cpus", "sizes", "seconds")
        return Program(
            argv=options_of(case, *names),
            build=build_for(case, "hpl.c", ("-O2", "-pthread"), ("-ldl", "-lm")),
            variables=library_threads(threads),
            cores=int(threads),
            limit_seconds=60 + 5 * self.seconds(case),
            opens=(case.detail("library"),),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        if case.level("solver") == XHPL:
            return read_answer_of_hpl(outcome, [int(n) for n in case.detail("sizes").split(",")])
        return read_answer(outcome)

    def ceiling(self, case: Case) -> Case | None:
        """The widest flops of the same cores, in f64."""
        levels = (("cores", case.level("cores")), ("isa", case.detail("widest")), ("type", "f64"))
        return Case("flops", levels=tuple(pair for pair in levels if pair[1]))

    def intensity(self, measured: Measurement) -> Intensity | None:
        """The matrix is read and written once."""
        if measured.metric != "flops":
            return None
        n = int(measured.case.level("n"))
        return Intensity("HPL", (2 / 3 * n**3 + 3 / 2 * n**2) / (16 * n**2), "f64")

    def left_out(
        self, measured: Sequence[Measurement], of_pool: Argv = ()
    ) -> tuple[tuple[Case, Unmeasured], ...]:
        return sizes_left_out(measured, (), partial(_too_long, of_pool=of_pool))

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        """How much of memory the largest system took, and what HPL asks for."""
        ours = [m for m in measured if m.metric == "flops"]
        if not ours:
            return ()
        largest = max(ours, key=lambda m: (int(m.case.level("n")), m.value))
        n, memory = int(largest.case.level("n")), int(largest.case.detail("memory"))
        share = 8 * n * n / memory
        rule = "" if share > 0.7 else "; a rating by HPL's rules takes 80 % of it (--full)"
        return (f"hpl: the largest N, {n}, took {share:.2%} of the memory{rule}",)


def sizes_for(facts: Facts, effort: Effort) -> tuple[int, ...]:
    """1000, 2000, 4000 .., as memory allows; with full effort the N that takes 80 % of it."""
    memory = MEMORY_SHARE[effort] * (facts.usable_memory_bytes or 8 << 30)
    most = min(MAX_N[effort], math.isqrt(int(memory / 8)))
    before = most // 2 if effort == "full" else most
    doubled = [1000 << i for i in range(12) if 1000 << i <= before]
    if effort == "full" and most >= ROUND_N:
        doubled.append(most // ROUND_N * ROUND_N)
    return tuple(doubled) or (max(1, most),)


def _libraries(facts: Facts, effort: Effort) -> tuple[Blas, ...]:
    """The preferred one; more than that only where there is time."""
    ordered = sorted(facts.blas, key=lambda blas: FAMILIES.index(blas.family))
    return tuple(ordered[:1] if effort == "quick" else ordered)


def _own(library: Blas, compiler: Compiler, facts: Facts, effort: Effort, seconds: float) -> Case:
    details: Pairs = (
        ("library", str(library.path)),
        ("version", library.version),
        ("symbol", library.symbol),
        ("family", library.family),
        *_shared(facts, sizes_for(facts, effort), seconds),
    )
    levels = (("solver", library.name),)
    return on_cores("hpl", compiler, core_sets(facts)[-1], levels=levels, details=details)


def _installed(tool: Tool, facts: Facts, effort: Effort, seconds: float) -> Case:
    """By a rank on each core; of the sizes those that end in time on slow cores."""
    cores = len(core_sets(facts)[-1])
    sizes = sizes_for(facts, effort)
    fast = [n for n in sizes if 2 / 3 * n**3 <= seconds * cores * SLOWEST]
    return Case(
        "hpl",
        levels=(("cores", str(cores)), ("solver", XHPL)),
        details=(
            ("program", str(tool.path)),
            *ranks_of(tool, facts, cores).details,
            *_shared(facts, fast or sizes[:1], seconds),
        ),
    )


def _shared(facts: Facts, sizes: Sequence[int], seconds: float) -> Pairs:
    known = [isa for isa in FORCED["openblas"] if isa in facts.instruction_sets]
    return (
        ("widest", known[-1] if known else ""),
        ("memory", str(facts.usable_memory_bytes or 8 << 30)),
        ("sizes", list_of(tuple(sizes))),
        ("seconds", f"{seconds:.2f}"),
    )


def _program_of_xhpl(case: Case) -> Program:
    ranks = int(case.detail("ranks"))
    sizes = [int(n) for n in case.detail("sizes").split(",")]
    given = hpl_input(sizes, process_grid(ranks))
    return Program(
        argv=in_own_folder((case.detail("program"),), reads="HPL.dat", text=given),
        variables=library_threads(case.detail("threads")),
        cores=int(case.detail("threads")),
        ranks=ranks,
        mpi_family=case.detail("family"),
        mpirun=case.detail("mpirun"),
        limit_seconds=120 + 10 * float(case.detail("seconds")),
    )


def _too_long(case: Case, of_pool: Argv) -> Unmeasured:
    seconds = float(case.detail("seconds"))
    return Unmeasured(
        reason=f"these N would take longer than the {seconds:.3g} s that a solver has, or more"
        " memory than is free",
        remedy=measure_command("--full", "--only", "flops,hpl", of_pool=of_pool),
    )
