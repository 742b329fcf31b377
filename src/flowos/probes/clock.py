"""The actual clock of a core, by dependent adds per second."""

from flowos.model import Case, Chart, Facts, MeasurementRequest, Unmeasured
from flowos.probes._base import Headline, Probe, ProbeInfo, Program, best_compiler
from flowos.probes._cores import NO_COMPILER, build_for, list_of, remembered

MAX_CPUS = 8


class Clock(Probe):
    """Metrics clock (Hz) and add_imul_ratio (1) per cpu: first and last core of each socket."""

    info = ProbeInfo(
        name="clock",
        title="Clock, measured by dependent adds",
        charts=(
            Chart(
                title="Clock under light load",
                kind="bars",
                x="cpu",
                metrics=("clock",),
                x_label="cpu",
                y_label="Hz",
                ceilings=False,
                about="One add per cycle, in a chain: this is the clock, whatever the system"
                " reports.",
            ),
        ),
        headlines=(Headline("Clock", "clock"),),
    )

    def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
        compiler = best_compiler(facts)
        if compiler is None:
            return NO_COMPILER
        details = (
            ("cpus", list_of(_cpus_to_ask(facts))),
            *remembered(compiler),
            ("repetitions", "7" if request.effort == "quick" else "15"),
        )
        return (Case(self.name, details=details),)

    def seconds(self, case: Case) -> float:
        return 0.2 * len(case.detail("cpus").split(","))

    def program(self, case: Case) -> Program:
        repetitions = case.detail("repetitions")
        return Program(
            argv=("--cpus", case.detail("cpus"), "--repetitions", repetitions),
            build=build_for(case, "clock.c", ("-O2", "-pthread")),
        )


def _cpus_to_ask(facts: Facts) -> tuple[int, ...]:
    """The first and the last core of each kind in each socket, at most MAX_CPUS."""
    groups: dict[tuple[int, str], list[int]] = {}
    for cpu in facts.one_per_core:
        groups.setdefault((cpu.socket, cpu.kind), []).append(cpu.number)
    ends = (number for group in groups.values() for number in (group[0], group[-1]))
    return tuple(sorted(dict.fromkeys(ends)))[:MAX_CPUS]
