"""Is the machine quiet? A tenth of a second of spinning, before and after each measurement.

Not a probe: its answers become the `MachineState` of samples.
"""

from flowos._dataclasses import dataclass, replace
from flowos.model import Facts, MachineState, MeasureError, Outcome, Unmeasured
from flowos.probes._base import Program, best_compiler, read_answer
from flowos.probes._build import built_by
from flowos.probes._cores import NO_COMPILER, core_sets, list_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Spin:
    """Result of spinning; the terms are those of `MachineState`."""

    clock_hz: float
    add_imul_ratio: float
    scaling: float
    starved_share: float
    io_pressure: float | None = None


def program(facts: Facts) -> Program | Unmeasured:
    """The program for this node: one cpu per core, performance cores if there are two kinds."""
    compiler = best_compiler(facts)
    if compiler is None:
        return NO_COMPILER
    cores = core_sets(facts)[-1]
    fast = {cpu.number for cpu in facts.cpus if cpu.kind != "efficiency"}
    cpus = tuple(number for number in cores if number in fast) or cores
    return Program(
        argv=("--cpus", list_of(cpus)),
        build=built_by("state.c", compiler, ("-O2", "-pthread")),
        cores=len(cpus),
        limit_seconds=30.0,
    )


def read(outcome: Outcome) -> Spin | Unmeasured:
    """Parse the program's output. Raises MeasureError if it is invalid."""
    answer = read_answer(outcome)
    if isinstance(answer, Unmeasured):
        return answer
    value = {reading.metric: reading.values[0] for reading in answer}
    missing = {"clock", "add_imul_ratio", "scaling", "starved_share"} - set(value)
    if missing:
        raise MeasureError(f"the state program did not report {', '.join(sorted(missing))}")
    return Spin(
        clock_hz=value["clock"],
        add_imul_ratio=value["add_imul_ratio"],
        scaling=value["scaling"],
        starved_share=value["starved_share"],
    )


def around(watched: MachineState, before: Spin | None, after: Spin | None) -> MachineState:
    """The state with the results of spinning before and after, if there are both."""
    if before is None or after is None:
        return watched
    pressures = (before.io_pressure, after.io_pressure)
    return replace(
        watched,
        clock_hz=(before.clock_hz, after.clock_hz),
        add_imul_ratio=(before.add_imul_ratio, after.add_imul_ratio),
        scaling=(before.scaling, after.scaling),
        starved_share=max(before.starved_share, after.starved_share),
        io_pressure=max((p for p in pressures if p is not None), default=None),
    )
