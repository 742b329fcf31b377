"""The flop ceiling per instruction set: registers only, from one core to all."""

from collections.abc import Sequence

from flowos.model import Argv, Case, Chart, Facts, Measurement, MeasurementRequest, Unmeasured
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, best_compiler
from flowos.probes._cores import NO_COMPILER, build_for, core_sets, counted, on_cores
from flowos.probes._nominal import nominal_arithmetic

NARROW_TO_WIDE = (
    *("sse4.2", "avx", "avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16"),
    *("amx_int8", "amx_bf16", "neon", "neon_dotprod", "neon_i8mm", "neon_bf16", "sve"),
)
"""The levels of axis `isa`, as in Facts.instruction_sets."""

NO_TILES = "boot Linux 5.16 or later, and in a container allow arch_prctl (its seccomp profile)"

REFUSED = "refused "
"""Notes that begin so name instruction sets, and say why they are not used."""

REPETITIONS = {"quick": "4", "normal": "4", "full": "15"}


class Flops(Probe):
    """Metrics flops (flop/s) and ops (op/s, of integers) per cores.

    The program sweeps isa and type (f32, f64, bf16; i8) itself, as the processor has them.
    """

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
            Chart(
                title="Integer ceiling per instruction set",
                kind="bars",
                x="isa",
                metrics=("ops",),
                series=("cores",),
                facets=("type",),
                x_label="instruction set",
                y_label="op/s",
                about="Products of 8-bit integers in sums of 32 bits, as neural networks use them.",
            ),
        ),
        rounds=4,
        headlines=(
            Headline("Arithmetic ceiling, f64", "flops", (("type", "f64"),)),
            Headline("Arithmetic ceiling, f32", "flops", (("type", "f32"),)),
            Headline("Arithmetic ceiling, bf16", "flops", (("type", "bf16"),)),
            Headline("Integer ceiling, i8", "ops", (("type", "i8"),)),
        ),
        ceilings=("flops", "ops"),
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

    def left_out(
        self, measured: Sequence[Measurement], of_pool: Argv = ()
    ) -> tuple[tuple[Case, Unmeasured], ...]:
        """Instructions for bf16 or i8 that the processor says to have, and that gave wrong sums,
        ended the program, or, of AMX, are refused by the kernel."""
        refused = {
            (m.case.level("cores"), note.removeprefix(REFUSED)): reason
            for m in measured
            for note, reason in m.case.details
            if note.startswith(REFUSED)
        }
        return tuple(
            (
                Case(self.name, levels=(("cores", cores), ("isa", isa))),
                Unmeasured(reason=reason, remedy=NO_TILES if "tiles" in reason else ""),
            )
            for (cores, isa), reason in refused.items()
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
        unit = "Gop/s" if kind == "i8" else "Gflop/s"
        before = NARROW_TO_WIDE[: NARROW_TO_WIDE.index(isa)]
        for narrower in before:
            other = best.get((cores, kind, narrower), 0.0)
            if rate < 0.9 * other:
                found.append(
                    f"{isa} {kind} on {counted(cores, 'core')} does {rate / 1e9:.3g} {unit}, less"
                    f" than the narrower {narrower} with {other / 1e9:.3g} {unit}: the measurement"
                    " was disturbed, or the clock falls under wide vectors"
                )
    more = f"; and {len(found) - 1} more alike" if len(found) > 1 else ""
    return tuple(f"{first}{more}" for first in found[:1])
