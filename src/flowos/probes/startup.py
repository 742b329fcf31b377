"""Start-up: what it takes to start a program that does nothing, until its end is known.

The instrument is the engine's clock around a launch: our own part of it (flowos-init, pipes) is the
same in every environment, and what a container adds is the difference to bare.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from flowos.model import Case, Chart, Exited, Facts, Outcome, Reading, Unmeasured, Wanted
from flowos.probes._base import Program, best_compiler, read_answer
from flowos.probes._cores import NO_COMPILER, build_for, remembered

STARTS = {"quick": 5, "normal": 10, "full": 30}
SLOW_START_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Startup:
    """Metric startup (second), one value per start."""

    name: str = "startup"
    title: str = "Start-up of a program that does nothing"
    charts: tuple[Chart, ...] = (
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
    )
    build: Literal["once", "each"] = "once"
    rounds: int = 4

    def cases(self, facts: Facts, wanted: Wanted) -> tuple[Case, ...] | Unmeasured:
        compiler = best_compiler(facts)
        if compiler is None:
            return NO_COMPILER
        details = (("starts", str(STARTS[wanted.effort])), *remembered(compiler))
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

    def read(self, case: Case, outcome: Outcome) -> tuple[Reading, ...] | Unmeasured:  # noqa: ARG002
        """Nothing, where it started: the times are not the program's to tell, see `timed`."""
        return () if outcome.end == Exited(0) else read_answer(outcome)

    def ceiling(self, case: Case) -> Case | None:  # noqa: ARG002
        return None


def timed(seconds: Sequence[float]) -> tuple[Reading, ...]:
    """What the engine's clock showed, a value per start."""
    return (Reading(metric="startup", unit="second", values=tuple(seconds)),)
