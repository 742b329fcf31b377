"""Matrix products by every BLAS found, over n, and per instruction set if it can be forced.

After figures 5 and 6 of seed 001: GEMM over matrix size per instruction set, below its ceiling.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from flowos._dataclasses import dataclass, replace
from flowos.model import (
    Advice,
    Argv,
    Blas,
    Case,
    Chart,
    Compiler,
    Facts,
    Killed,
    Measurement,
    MeasurementRequest,
    Outcome,
    Pairs,
    Reading,
    Unmeasured,
)
from flowos.probes._base import (
    ComparedCase,
    Headline,
    Probe,
    ProbeInfo,
    Program,
    best_compiler,
    compared_case,
    read_answer,
    with_details,
)
from flowos.probes._cores import (
    NO_COMPILER,
    build_for,
    core_sets,
    counted,
    library_threads,
    on_cores,
)
from flowos.probes._env_charts import env_curve
from flowos.probes._intensity import Intensity, of_product
from flowos.probes._left_out import sizes_left_out
from flowos.probes._measure_command import measure_command
from flowos.probes._nominal import TYPE_BITS, nominal_arithmetic
from flowos.probes._tuning_gain import TuningGain

SIGILL, SIGABRT = 4, 6
SLOW = 0.8
"""A default is slow if it does less than this share of the best forced kernels."""

LARGE = 1000
TYPES = ("f64", "f32")
"""The types, in the order in which the program measures them."""

DEFAULT = "default"
FORCED: dict[str, dict[str, str]] = {
    "openblas": {
        "sse4.2": "Nehalem",
        "avx": "Sandybridge",
        "avx2": "Haswell",
        "avx512f": "SkylakeX",
        "neon": "ARMV8",
        "sve": "ARMV8SVE",
    },
    "blis": {
        "sse4.2": "penryn",
        "avx": "sandybridge",
        "avx2": "haswell",
        "avx512f": "skx",
        "sve": "armsve",
    },
    "mkl": {"sse4.2": "SSE4_2", "avx": "AVX", "avx2": "AVX2", "avx512f": "AVX512"},
}
"""Family -> instruction set -> the library's name for its kernels."""

SIZES = {
    "quick": (256, 1000, 2048),
    "normal": (128, 256, 384, 512, 768, 1000, 1024, 1536, 2000, 2048, 3072, 4096),
    "full": (
        *(128, 256, 384, 512, 768, 1000, 1024, 1536, 2000, 2048, 3072, 4096),
        *(5000, 6144, 8192, 10000, 13056),
    ),
}
SECONDS = {"quick": 4.5, "normal": 12.0, "full": 600.0}
"""For all cases together, once; without start-up."""
MAX_SECONDS_PER_CASE = {"quick": 1.0, "normal": 1.8, "full": 40.0}
MEMORY_SHARE = 0.5

COMPARED_SIZES = {"quick": "1000", "normal": "1000,2048", "full": "512,1000,2048,4096"}
COMPARED_SECONDS = {"quick": "0.8", "normal": "1.5", "full": "8.0"}
"""For comparisons of environments: the sizes, and the time limit of one run."""


@dataclass(frozen=True, slots=True)
class GemmPoint:
    """A library on these cpus, with kernels of an instruction set or those it chooses."""

    library: Blas
    cpus: tuple[int, ...]
    isa: str
    weight: int


class Gemm(Probe):
    """Metric flops (flop/s) per cores, library and isa; the program sweeps type and n itself."""

    info = ProbeInfo(
        name="gemm",
        title="Matrix products (GEMM)",
        charts=(
            Chart(
                title="GEMM over matrix size",
                kind="curve",
                x="n",
                metrics=("flops",),
                series=("library", "isa"),
                facets=("type", "cores"),
                x_label="n (matrices of n x n)",
                y_label="flop/s",
                about="Each library as it comes (default), and with kernels of one instruction"
                " set.",
            ),
        ),
        headlines=(
            Headline("Matrix product, f64", "flops", (("type", "f64"),)),
            Headline("Matrix product, f32", "flops", (("type", "f32"),)),
        ),
        deciding=("flops",),
        env_charts=(env_curve("GEMM", "n", "flops", "type", "All cores, one library.", "flop/s"),),
        nominal=nominal_arithmetic,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        compiler = best_compiler(facts)
        if compiler is None:
            return NO_COMPILER
        if not facts.blas:
            return Unmeasured(
                reason="no BLAS library was found", remedy="pip install numpy (it brings one)"
            )
        points = tuple(_points(facts, request))
        second = SECONDS[request.effort] / sum(p.weight for p in points)
        most = MAX_SECONDS_PER_CASE[request.effort]
        sizes = ",".join(str(n) for n in SIZES[request.effort] if _fits(n, facts))
        return tuple(
            _case(point, compiler, facts, ("sizes", sizes), min(most, second * point.weight))
            for point in points
        )

    def seconds(self, case: Case) -> float:
        return float(case.detail("seconds")) + 0.1

    def program(self, case: Case) -> Program:
        options = ("library", "symbol", "family", "core", "cpus", "sizes", "seconds")
        given = ((option, case.detail(option)) for option in options)
        threads = case.level("cores")
        return Program(
            argv=tuple(word for option, value in given if value for word in (f"--{option}", value)),
            build=build_for(case, "gemm.c", ("-O2", "-pthread"), ("-ldl", "-lm")),
            variables=library_threads(threads),
            cores=int(threads),
            limit_seconds=60 + 5 * float(case.detail("seconds")),
            opens=(case.detail("library"),),
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        core = case.detail("core")
        match outcome.end:
            case Killed(signal=signal) if core and signal in (SIGILL, SIGABRT):
                name = "SIGILL" if signal == SIGILL else "SIGABRT"
                return Unmeasured(
                    reason=f"{case.level('library')} has no {core} kernels that run here ({name})"
                )
        readings = read_answer(outcome)
        if isinstance(readings, Unmeasured):
            return readings
        took = dict(readings[0].notes).get("kernel", "")
        if core and case.detail("family") != "mkl" and took.lower() != core.lower():
            return Unmeasured(
                reason=f"{case.level('library')} was asked for {core} kernels and took {took}"
            )
        return readings

    def ceiling(self, case: Case) -> Case | None:
        """The flops of the same cores, instruction set (the widest, for a default) and type."""
        isa = case.level("isa")
        levels = (
            ("cores", case.level("cores")),
            ("isa", case.detail("widest") if isa == DEFAULT else isa),
            ("type", case.level("type")),
        )
        return Case("flops", levels=tuple(pair for pair in levels if pair[1]))

    def intensity(self, measured: Measurement) -> Intensity | None:
        kind, n = measured.case.level("type"), int(measured.case.level("n"))
        return of_product(f"GEMM {kind}", kind, n, 3 * TYPE_BITS[kind] // 8)

    def compared(
        self, facts: Facts, request: MeasurementRequest
    ) -> tuple[ComparedCase, ...] | Unmeasured:
        """One library: its widest kernels if the binary is the same, else its default ones."""
        cases = self.cases(facts, replace(request, effort="quick"))
        if isinstance(cases, Unmeasured):
            return cases
        families = list(FORCED)

        def rank(case: Case) -> tuple[bool, int]:
            family = case.detail("family")
            known = families.index(family) if family in families else len(families)
            return (case.level("isa") == DEFAULT) == (request.binary == "same"), known

        best = min(cases, key=rank)
        sizes, seconds = COMPARED_SIZES[request.effort], COMPARED_SECONDS[request.effort]
        case = with_details(best, sizes=sizes, seconds=seconds)
        stack = " ".join((case.level("library"), case.detail("version"), case.level("isa")))
        return (compared_case(self, case, ("cores",), stack),)

    def left_out(
        self, measured: Sequence[Measurement], of_pool: Argv = ()
    ) -> tuple[tuple[Case, Unmeasured], ...]:
        return sizes_left_out(measured, TYPES, partial(_no_time, of_pool=of_pool))

    def advice(
        self,
        measured: Sequence[Measurement],
        best: TuningGain | None,
    ) -> tuple[Advice, ...] | None:
        return slow_defaults(measured) if measured else None


def _points(facts: Facts, request: MeasurementRequest) -> Iterable[GemmPoint]:
    """Each library by default and with its widest kernels, and one library's narrower ones.

    Most of the time is for all cores, where large n matter. Only full effort measures everything.
    """
    sets = core_sets(facts)
    forceable = (library for library in facts.blas if _forceable(library, facts))
    first = min(forceable, key=lambda library: list(FORCED).index(library.family), default=None)
    for cpus in sets[-1:] if request.effort == "quick" else sets:
        everywhere = cpus == sets[-1]
        for library in facts.blas:
            possible = _forceable(library, facts)
            for isa in (DEFAULT, *possible[-1:]):
                yield GemmPoint(library, cpus, isa, 5 if everywhere else 2)
            series = library == first and everywhere and request.effort == "normal"
            for isa in possible[:-1] if series or request.effort == "full" else ():
                yield GemmPoint(library, cpus, isa, 2)


def _forceable(library: Blas, facts: Facts) -> tuple[str, ...]:
    """Instruction sets, narrow to wide. MKL lets them be forced only on Intel's processors."""
    if library.family == "mkl" and "Intel" not in facts.cpu_model:
        return ()
    known = FORCED.get(library.family, {})
    return tuple(isa for isa in known if isa in facts.instruction_sets)


def _fits(n: int, facts: Facts) -> bool:
    return 3 * 8 * n * n <= MEMORY_SHARE * (facts.usable_memory_bytes or 8 << 30)


def _case(
    point: GemmPoint, compiler: Compiler, facts: Facts, sizes: tuple[str, str], seconds: float
) -> Case:
    library = point.library
    known = [isa for isa in FORCED["openblas"] if isa in facts.instruction_sets]
    details: Pairs = (
        ("library", str(library.path)),
        ("version", library.version),
        ("symbol", library.symbol),
        ("family", library.family),
        ("core", FORCED.get(library.family, {}).get(point.isa, "")),
        ("widest", known[-1] if known else ""),
        sizes,
        ("seconds", f"{seconds:.2f}"),
    )
    levels = (("library", library.name), ("isa", point.isa))
    return on_cores("gemm", compiler, point.cpus, levels=levels, details=details)


def _no_time(case: Case, of_pool: Argv) -> Unmeasured:
    seconds = float(case.detail("seconds"))
    return Unmeasured(
        reason=f"these sizes would take longer than the {seconds:.3g} s that a library has",
        remedy=measure_command("--full", "--only", "flops,gemm", of_pool=of_pool),
    )


def slow_defaults(measured: Sequence[Measurement]) -> tuple[Advice, ...]:
    """The remedy for libraries that chose slower kernels than others that they have.

    For each library its worst case, by the best values at one n of at least LARGE.
    """
    ours = [m for m in measured if int(m.case.level("n", "0")) >= LARGE]
    forced: dict[Pairs, Measurement] = {}
    for m in ours:
        key = _but_isa(m.case)
        if m.case.level("isa") != DEFAULT and (key not in forced or m.best > forced[key].best):
            forced[key] = m
    worst: dict[str, tuple[float, Measurement]] = {}
    for m in ours:
        best = forced.get(_but_isa(m.case))
        if m.case.level("isa") == DEFAULT and best and _chose_slower(m, best):
            name, ratio = m.case.level("library"), m.best / best.best
            worst[name] = min(worst.get(name, (1.0, m)), (ratio, m), key=lambda pair: pair[0])
    return tuple(_slow(m, forced[_but_isa(m.case)]) for _, m in worst.values())


def _chose_slower(default: Measurement, forced: Measurement) -> bool:
    """False if the library names the same kernels: then the reason is another one. Of few values on
    a busy machine one alone may be fast: the best of the default is below most of the others too.
    """
    kernels = [m.case.detail("kernel").lower() for m in (default, forced)]
    slow = default.best < min(SLOW * forced.best, forced.median)
    return slow and (kernels[0] != kernels[1] or not kernels[0])


def _but_isa(case: Case) -> Pairs:
    return tuple(pair for pair in case.levels if pair[0] != "isa")


def _slow(default: Measurement, forced: Measurement) -> Advice:
    case = default.case
    cores = counted(case.level("cores"), "core")
    environment = case.detail("environment")
    because = f", as your environment sets {environment}" if environment else ""
    why = (
        f"{case.level('library')} chose its {case.detail('kernel', 'default')} kernels{because}:"
        f" at best {default.best / 1e9:.0f} Gflop/s ({case.level('type')}, n {case.level('n')},"
        f" {cores}), where its {forced.case.detail('kernel')} kernels do"
        f" {forced.best / 1e9:.0f} Gflop/s"
    )
    return Advice(
        do=f"`export {forced.case.detail('forced_by')}`",
        gain=forced.best / default.best,
        why=why,
        trusted=default.trust.good and forced.trust.good,
    )
