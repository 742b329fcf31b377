"""Conjugate gradients as HPCG 3.1 defines them: what memory allows a sparse solver.

Dongarra, Heroux, Luszczek: High-performance conjugate-gradient benchmark, 2016. By a program of our
own, which computes what HPCG's reference does with a rank on each core, and by an xhpcg that is
installed. `solve` measures how fast FlowOS solves such a system when it may choose how.
"""

import math

from flowos.model import (
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
from flowos.probes._arrays import last_cache_bytes
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, best_compiler, read_answer
from flowos.probes._cores import (
    NO_COMPILER,
    build_for,
    core_sets,
    library_threads,
    native_flag,
    on_cores,
    options_of,
)
from flowos.probes._hpcg_answer import read_answer_of_hpcg
from flowos.probes._intensity import Intensity
from flowos.probes._own_folder import in_own_folder
from flowos.probes._ranks import ranks_of

XHPCG, OWN = "xhpcg", "flowos"
"""The levels of `solver`."""

SIZES = {"quick": 48, "normal": 64, "full": 104}
"""Rows of a core in each direction, unless the caches, or HPCG's rule of memory, need more."""
SECONDS = {"quick": 1, "normal": 8, "full": 60}
"""How long sets are repeated; at least one."""
MIN_SIZE, STEP = 16, 8
BYTES_PER_ROW = 450
"""Matrix, its three coarse levels, and vectors."""
CACHES = 2
MEMORY_SHARE = {"quick": 0.25, "normal": 0.25, "full": 0.4}
RULE_SHARE = 0.25
"""HPCG's rule for a rating: at least this share of memory."""
SET_PER_ROW, RATE = 19e3, 1e9
"""Operations of a set, and assumed flop/s of a core."""
INTENSITY = Intensity("HPCG", 0.158, "f64")
"""Of a set, by HPCG's counts of operations and of bytes, where each row has 27 entries."""
SETS_OF_XHPCG = 3.5
"""What it does before and besides the sets that it measures."""


class Hpcg(Probe):
    """Metrics flops (flop/s, HPCG's rating) and bandwidth (byte/s, what must be moved at least)."""

    info = ProbeInfo(
        name="hpcg",
        title="Conjugate gradients (HPCG)",
        charts=(
            Chart(
                title="HPCG",
                kind="bars",
                x="cores",
                metrics=("flops",),
                series=("solver", "size"),
                x_label="cores",
                y_label="flop/s",
                ceilings=False,
                about="By HPCG's counts, with its share of the set-up. HPCG asks of a rating that"
                " it runs for 30 minutes in a quarter of memory: these runs are shorter.",
            ),
            Chart(
                title="Memory traffic of HPCG",
                kind="bars",
                x="cores",
                metrics=("bandwidth",),
                series=("solver", "size"),
                x_label="cores",
                y_label="byte/s",
                about="What must be read and written at least, next to the best STREAM triad of as"
                " many threads.",
            ),
        ),
        headlines=(
            Headline("HPCG", "flops"),
            Headline("HPCG, memory traffic", "bandwidth"),
        ),
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        """Only if the probe is asked for by name."""
        if self.name not in request.probes:
            return ()
        compiler, tool, effort = best_compiler(facts), facts.tool(XHPCG), request.effort
        if compiler is None and tool is None:
            return NO_COMPILER
        size = size_for(facts, effort)
        if size < MIN_SIZE:
            return Unmeasured(
                reason=f"too little memory for {MIN_SIZE}x{MIN_SIZE}x{MIN_SIZE} rows a core"
            )
        own = [_own(compiler, facts, effort, size)] if compiler else []
        installed = [_installed(tool, facts, effort, size)] if tool else []
        return (*own, *installed)

    def seconds(self, case: Case) -> float:
        one = int(case.level("size")) ** 3 * SET_PER_ROW / RATE
        if case.level("solver") == XHPCG:
            return 1.0 + SETS_OF_XHPCG * one + float(case.detail("seconds"))
        return 0.3 + 0.4 * one + max(one, float(case.detail("seconds")))

    def program(self, case: Case) -> Program:
        limit = 60 + 10 * self.seconds(case)
        if case.level("solver") == XHPCG:
            return _program_of_xhpcg(case, limit)
        native = ("-O3", case.detail("native"), "-pthread")
        return Program(
            argv=(*options_of(case, "cpus", "seconds"), "--size", case.level("size")),
            build=build_for(case, "hpcg.c", native, ("-lm",)),
            cores=int(case.level("cores")),
            limit_seconds=limit,
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        return (
            read_answer_of_hpcg(outcome) if case.level("solver") == XHPCG else read_answer(outcome)
        )

    def ceiling(self, case: Case) -> Case | None:
        """The best triad of as many threads."""
        return Case("stream").at(metric="triad", threads=case.level("cores"))

    def intensity(self, measured: Measurement) -> Intensity | None:
        return INTENSITY if measured.metric == "bandwidth" else None


def size_for(facts: Facts, effort: Effort) -> int:
    """The effort's size, larger if it fits into the caches, smaller if not into memory.

    With full effort as large as HPCG's rule of memory asks.
    """
    memory, cores = facts.usable_memory_bytes or 8 << 30, len(core_sets(facts)[-1])
    least = CACHES * last_cache_bytes(facts)
    if effort == "full":
        least = max(least, int(RULE_SHARE * memory))
    wanted = max(SIZES[effort], _side(least, cores) + STEP)
    return min(wanted, _side(int(MEMORY_SHARE[effort] * memory), cores))


def _side(all_bytes: int, cores: int) -> int:
    """The largest multiple of 8 that so many bytes hold for each core."""
    return int(math.cbrt(all_bytes / cores / BYTES_PER_ROW) + 1e-9) // STEP * STEP


def _own(compiler: Compiler, facts: Facts, effort: Effort, size: int) -> Case:
    details: Pairs = (("seconds", str(SECONDS[effort])), ("native", native_flag(facts)))
    levels = (("solver", OWN), ("size", str(size)))
    return on_cores("hpcg", compiler, core_sets(facts)[-1], levels=levels, details=details)


def _installed(tool: Tool, facts: Facts, effort: Effort, size: int) -> Case:
    cores = len(core_sets(facts)[-1])
    return Case(
        "hpcg",
        levels=(("cores", str(cores)), ("solver", XHPCG), ("size", str(size))),
        details=(
            ("program", str(tool.path)),
            *ranks_of(tool, facts, cores).details,
            ("seconds", str(SECONDS[effort])),
        ),
    )


def _program_of_xhpcg(case: Case, limit_seconds: float) -> Program:
    """It reads the size of a rank and its time from hpcg.dat, as all its versions do."""
    size, threads = case.level("size"), case.detail("threads")
    lines = ("HPCG benchmark input file", "written by FlowOS", f"{size} {size} {size}")
    given = "\n".join((*lines, case.detail("seconds"))) + "\n"
    shows = "HPCG-Benchmark*.txt HPCG-Benchmark*.yaml"
    return Program(
        argv=in_own_folder((case.detail("program"),), reads="hpcg.dat", text=given, shows=shows),
        variables=library_threads(threads),
        cores=int(threads),
        ranks=int(case.detail("ranks")),
        mpi_family=case.detail("family"),
        mpirun=case.detail("mpirun"),
        limit_seconds=limit_seconds,
    )
