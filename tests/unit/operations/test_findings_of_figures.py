"""What a suite says of a figure: what its runs find in its numbers, and which cases failed."""

from dataclasses import replace

from flowos.model import (
    Case,
    Entered,
    FigurePart,
    PaperFigure,
    Run,
    Sample,
    SuiteStep,
    Unmeasured,
)
from flowos.operations.measure import report_of
from flowos.operations.measure._time import STOPPED, TOOK_TOO_LONG, not_reached
from flowos.operations.suite import with_findings
from flowos.report import SuiteFigure
from tests.unit.operations.test_case_order import RUN

LATENCY, BANDWIDTH = ("latency", "8", "second"), ("bandwidth", "1048576", "byte/s")


def run_of(probe: str, *environments: str) -> Run:
    step = SuiteStep(of="s-1", suite="s", probe=probe)
    request = replace(RUN.request, suite=step, probes=(probe,))
    labels = tuple(Entered(label=label) for label in environments)
    return replace(RUN, id=probe, request=request, environments=labels)


def samples(case: Case, metric: str, unit: str, value: float) -> list[Sample]:
    return [
        Sample(run="r", case=case, round=n, metric=metric, unit=unit, values=(value,))
        for n in range(5)
    ]


def messages(mpi: str, key: tuple[str, str, str], value: float) -> list[Sample]:
    metric, size, unit = key
    return samples(Case("mpi", (("mpi", mpi), ("bytes", size))), metric, unit, value)


def found(part: FigurePart, run: Run, seen: list[Sample], times: int = 1) -> list[tuple[str, str]]:
    figure = PaperFigure(number="5", title="t", caption="c", parts=(part,) * times)
    return [*with_findings(SuiteFigure(figure=figure, reports=(report_of(run, seen),))).findings]


def test_of_each_metric_its_figure_says_which_mpi_is_the_best() -> None:
    seen = [
        *messages("a", LATENCY, 1e-7),
        *messages("b", LATENCY, 2e-7),
        *messages("a", BANDWIDTH, 4e9),
        *messages("b", BANDWIDTH, 8e9),
    ]
    run = run_of("mpi")
    whole = [line for line in report_of(run, seen).findings if line.startswith("best ")]
    said = {
        metric: found(FigurePart(probe="mpi", metrics=(metric,)), run, seen)
        for metric in ("latency", "bandwidth")
    }
    assert [line for lines in said.values() for line in lines] == [("mpi", w) for w in whole]
    ((_, latency),), ((_, bandwidth),) = said.values()
    assert latency.startswith("best latency of 8 bytes: 0.1 us by a; ")
    assert bandwidth.startswith("best bandwidth of 1048576 bytes: 8 GB/s by b; ")
    assert found(FigurePart(probe="mpi", metrics=("message_rate",)), run, seen) == []


def test_a_figure_says_what_holds_for_its_own_cases_once() -> None:
    one, other = (
        Case("solve", (("problem", kind), ("setting", "ours"), ("nodes", "1")), (("x", kind),))
        for kind in ("poisson", "g3like")
    )
    seen = [*samples(one, "total", "second", 1.0), *samples(other, "total", "second", 1.0)]
    poisson = FigurePart(probe="solve", levels=(("problem", "poisson"),))
    (said,) = found(poisson, run_of("solve"), seen, times=2)
    assert said[1].startswith("solve poisson ours: x is the same to the last bit in all 1 cases")


def test_between_environments_differences_are_said_that_no_ratio_shows() -> None:
    seen = [
        *samples(Case("startup", (("env", "bare"),)), "startup", "second", 0.001),
        *samples(Case("startup", (("env", "mine"),)), "startup", "second", 0.021),
    ]
    ((probe, said),) = found(FigurePart(probe="startup"), run_of("startup", "bare", "mine"), seen)
    assert probe == "startup"
    assert said.endswith("takes 1.0 ms in bare; next to it mine +20.0 ms")


def test_a_figure_says_which_of_its_cases_failed_but_not_which_had_no_time_yet() -> None:
    failed = (Case("mpi", (("mpi", "b"),)), Unmeasured(reason="mpirun ended with exit code 1"))
    reasons = (STOPPED, TOOK_TOO_LONG, not_reached(9, 0, "flowos"), not_reached(9, 5, "flowos"))
    waits = ((Case("mpi", (("mpi", f"c{n}"),)), why) for n, why in enumerate(reasons))
    run = replace(run_of("mpi"), unmeasured=(*waits, failed))
    reports = (report_of(run, messages("a", LATENCY, 1e-7)),)
    figure = PaperFigure(number="5", title="t", caption="c", parts=(FigurePart(probe="mpi"),))
    assert with_findings(SuiteFigure(figure=figure, reports=reports)).gaps == (failed,)
