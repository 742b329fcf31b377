"""The flop ceiling per instruction set: registers only, from one core to all."""

from collections.abc import Sequence

from flowos.model import Case, Chart, Facts, Measurement, MeasurementRequest, Unmeasured
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, best_compiler
from flowos.probes._cores import NO_COMPILER, build_for, core_sets, counted, on_cores
from flowos.probes._nominal import nominal_arithmetic

NARROW_TO_WIDE = ("sse4.2", "avx", "avx2", "avx512f", "neon", "sve")
"""The levels of axis `isa`, as in Facts.instruction_sets."""

REPETITIONS = {"quick": "4", "normal": "4", "full": "15"}


class Flops(Probe):
    """Metric flops (flop/s) per cores; the program sweeps isa and type (f32, f64) itself."""

    info = ProbeInfo(
        name="flops",
        title="Arithmetic ceiling",
        charts=(
            Chart(
                title="Arithmetic ceiling per instruction set",
                kind="bars",
                x="isa",
                metrics=("flops",),
                series=("cores",),
                facets=("type",),
                x_label="instruction set",
                y_label="flop/s",
                about="The best of several register-only kernels. No library can be faster.",
            ),
        ),
        rounds=4,
        headlines=(
            Headline("Arithmetic ceiling, f64", "flops", (("type", "f64"),)),
            Headline("Arithmetic ceiling, f32", "flops", (("type", "f32"),)),
        ),
        ceilings=("flops",),
        roofs=("flops",),
        nominal=nominal_arithmetic,
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        compiler = best_compiler(facts)
        if compiler is None:
            return NO_COMPILER
        repeat = ("repetitions", REPETITIONS[request.effort])
        return tuple(
            on_cores(self.name, compiler, cpus, details=(repeat,)) for cpus in core_sets(facts)
        )

    def seconds(self, case: Case) -> float:
        return 0.2 + 0.12 * int(case.detail("repetitions"))

    def program(self, case: Case) -> Program:
        return Program(
            argv=("--cpus", case.detail("cpus"), "--repetitions", case.detail("repetitions")),
            build=build_for(case, "flops.c", ("-O2", "-pthread")),
            cores=int(case.level("cores")),
        )

    def findings(self, measured: Sequence[Measurement]) -> tuple[str, ...]:
        return suspicious(measured)


def suspicious(measured: Sequence[Measurement]) -> tuple[str, ...]:
    """One sentence on instruction sets that were slower than a narrower one; () if none.

    Each includes the narrower one, so less than 0.9 of its rate means a disturbed measurement, or
    (for AVX-512) a clock that drops under wide vectors.
    """
    best = {
        (m.case.level("cores"), m.case.level("type"), m.case.level("isa")): m.best for m in measured
    }
    found = []
    for (cores, kind, isa), rate in best.items():
        before = NARROW_TO_WIDE[: NARROW_TO_WIDE.index(isa)]
        for narrower in before:
            other = best.get((cores, kind, narrower), 0.0)
            if rate < 0.9 * other:
                found.append(
                    f"{isa} {kind} on {counted(cores, 'core')} does {rate / 1e9:.3g} Gflop/s, less"
                    f" than the narrower {narrower} with {other / 1e9:.3g} Gflop/s: the measurement"
                    " was disturbed, or the clock falls under wide vectors"
                )
    more = f"; and {len(found) - 1} more alike" if len(found) > 1 else ""
    return tuple(f"{first}{more}" for first in found[:1])
