"""Start-up: the time from starting a program that does nothing to seeing its end.

It is measured by the engine's clock around a launch: our own part of it (flowos-init, pipes) is the
same in every environment, and the difference to bare is what a container adds.
"""

from collections.abc import Sequence

from flowos.model import (
    Case,
    Chart,
    Exited,
    Facts,
    Measurement,
    MeasurementRequest,
    Outcome,
    Reading,
    Unmeasured,
)
from flowos.probes._base import ENV, Probe, ProbeInfo, Program, best_compiler, read_answer
from flowos.probes._cores import NO_COMPILER, build_for, remembered

STARTS = {"quick": 5, "normal": 10, "full": 30}
SLOW_START_SECONDS = 0.1


class Startup(Probe):
    """Metric startup (second), one value per start."""

    info = ProbeInfo(
        name="startup",
        title="Start-up of a program that does nothing",
        rounds=4,
        alone=False,
        deciding=("startup",),
        env_charts=(
            Chart(
                title="Start-up",
                kind="bars",
                x="env",
                metrics=("startup",),
                x_label="environment",
                y_label="second",
                ceilings=False,
                about="From asking for the start to knowing of the end.",
            ),
        ),
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        compiler = best_compiler(facts)
        if compiler is None:
            return NO_COMPILER
        details = (("starts", str(STARTS[request.effort])), *remembered(compiler))
        return (Case(self.name, details=details),)

    def seconds(self, case: Case) -> float:
        return int(case.detail("starts")) * SLOW_START_SECONDS

    def program(self, case: Case) -> Program:
        return Program(
            argv=(),
            build=build_for(case, "nothing.c", ("-O2",)),
            starts=int(case.detail("starts")),
            limit_seconds=30.0,
        )

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:
        """No readings if it started: the engine takes the times, see `timed`."""
        return () if outcome.end == Exited(0) else read_answer(outcome)

    def differences(self, base: str, measured: Sequence[Measurement]) -> tuple[str, ...]:
        """What each environment adds to the start of a program, in seconds: a ratio says little."""
        medians = {m.case.level(ENV): m.median for m in measured}
        bare = medians.pop(base, 0.0)
        added = ", ".join(
            f"{env} {round(1e3 * (m - bare), 1) or 0.0:+.1f} ms" for env, m in medians.items()
        )
        if not bare or not added:
            return ()
        said = f"a program that does nothing takes {1e3 * bare:.1f} ms in {base}"
        return (f"{said}; next to it {added}",)


def timed(seconds: Sequence[float]) -> tuple[Reading, ...]:
    """Readings of the engine's clock, a value per start."""
    return (Reading(metric="startup", unit="second", values=tuple(seconds)),)
