"""What of a suite is measured on a machine, why the rest is not, and about how long it takes."""

from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import (
    Case,
    Compiler,
    Facts,
    FigurePart,
    FileSystemFacts,
    LogicalCpu,
    MeasurementRequest,
    Mpi,
    PaperFigure,
    PaperSuite,
    RdmaPort,
    Run,
    SuiteStep,
    Tool,
    Unmeasured,
    UsageError,
)
from flowos.operations._suite_plan import (
    LIMIT_SECONDS,
    NOT_HERE,
    SuitePlan,
    figures_of,
    in_time,
    plan_suite,
)
from flowos.operations.measure import offered
from flowos.probes._tables import PROBES
from flowos.probes.clock import Clock
from flowos.probes.suites import SUITES

GCC = Compiler(
    name="gcc",
    family="gcc",
    language="c",
    version="12.2.0",
    path=PurePath("/usr/bin/gcc"),
    openmp=True,
)
NODE = Facts(
    host="h",
    system="s",
    kernel="k",
    architecture="x86_64",
    cpu_model="c",
    cpus=tuple(LogicalCpu(number=n, core=n, socket=0, node=0) for n in range(2)),
    allowed=(0, 1),
    memory_bytes=64 << 30,
    compilers=(GCC,),
    storage=FileSystemFacts(free_bytes=100 << 30),
)
PROBE = {probe.name: probe for probe in PROBES}
QUICK = MeasurementRequest(effort="quick")


def figure(number: str, *parts: FigurePart, lacking: str = "", sockets: int = 1) -> PaperFigure:
    return PaperFigure(
        number=number, title="T", caption="C", parts=parts, lacking=lacking, sockets=sockets
    )


STREAM = FigurePart(probe="stream")
FEED = FigurePart(probe="feed")
NEW = FigurePart(probe="not_written_yet")
FIGURES = (
    figure("2", STREAM, NEW),
    figure("3", FigurePart(probe="mpi")),
    figure("4", lacking="no ImageNet"),
    figure("5", STREAM, sockets=2),
    figure("table A", replace(STREAM, levels=(("pages", "huge"),))),
)
SUITE = PaperSuite(name="s", title="S", figures=FIGURES)


def run(id_: str) -> Run:
    return Run(id=id_, started="", host="h", version="0", request=QUICK, facts=NODE)


def planned(
    *numbers: str, request: MeasurementRequest = QUICK, done: dict[str, Run] | None = None
) -> SuitePlan:
    return plan_suite(SUITE, figures_of(SUITE, numbers), NODE, request, done or {})


def why(plan: SuitePlan) -> dict[str, tuple[str, ...]]:
    return {
        each.figure.number: tuple(f"{probe}: {u.reason}" for probe, u in each.lacking)
        for each in plan.figures
    }


def test_each_figure_names_what_runs_and_why_the_rest_does_not() -> None:
    plan = planned()
    assert {each.figure.number: each.probes for each in plan.figures} == {
        "2": ("stream",),
        "3": (),
        "4": (),
        "5": (),
        "table A": (),
    }
    assert why(plan) == {
        "2": (f"not_written_yet: {NOT_HERE.reason}",),
        "3": ("mpi: no MPI with a compiler and an mpirun was found",),
        "4": (": no ImageNet",),
        "5": (": it needs 2 sockets, and 1 can be used here",),
        "table A": ("stream: none of its cases is measured with this effort",),
    }


def test_a_probe_is_one_run_for_all_its_figures_with_what_bounds_it() -> None:
    (step,) = planned(request=MeasurementRequest()).steps
    assert step.probes == ("working_set", "stream")
    assert step.figures == ("2", "table A")
    assert {case.probe for case in step.cases} == {"stream"}


def test_on_a_pool_what_is_measured_between_nodes_is_so_between_all_of_them() -> None:
    mpi = Mpi(
        name="Open MPI",
        family="openmpi",
        version="4.1.4",
        compiler=PurePath("/usr/bin/mpicc"),
        mpirun=PurePath("/usr/bin/mpirun"),
    )
    parts = [FigurePart(probe=name) for name in ("stream", "mpi", "parallel_io", "metadata")]
    suite = PaperSuite(name="s", title="S", figures=(figure("1", *parts),))
    node = replace(NODE, mpis=(mpi,))
    plan = plan_suite(suite, suite.figures, node, replace(QUICK, nodes=3), {})
    nodes = {step.probe: step.nodes for step in plan.steps}
    assert nodes == {"stream": 1, "mpi": 3, "parallel_io": 3, "metadata": 3}
    storage = next(step for step in plan.steps if step.probe == "parallel_io")
    assert [case.level("clients") for case in storage.cases] == ["1", "2", "3"]


def test_figure_4_of_fic_shows_rdma_where_there_is_a_port_and_says_why_not_elsewhere() -> None:
    port = RdmaPort(device="mlx4_0", number=1, state="ACTIVE")
    tool = Tool(name="ib_write_bw", version="", path=PurePath("/usr/bin/ib_write_bw"))
    suite = SUITES["fic"]
    figures = figures_of(suite, ("4",))
    there = plan_suite(suite, figures, replace(NODE, rdma=(port,), tools=(tool,)), QUICK, {})
    assert there.figures[0].probes == ("rdma",)
    (found,) = plan_suite(suite, figures, replace(NODE, tools=(tool,)), QUICK, {}).figures
    reasons = {probe: why.reason for probe, why in found.lacking}
    assert "no RDMA device" in reasons["rdma"]


def test_a_figure_of_huge_pages_is_in_the_normal_effort() -> None:
    assert planned("table a", request=MeasurementRequest()).figures[0].probes == ("stream",)
    assert planned("table A").steps == ()


def test_compilers_of_the_paper_that_are_not_here_are_named_with_what_to_install() -> None:
    both = (("gcc", "install GCC"), ("icx", "install oneAPI"))
    suite = PaperSuite(name="s", title="S", figures=(replace(figure("1", STREAM), compilers=both),))
    (found,) = plan_suite(suite, suite.figures, NODE, QUICK, {}).figures
    why = Unmeasured(reason="the paper has this compiler", remedy="install oneAPI")
    assert found.lacking == (("icx", why),)
    assert found.probes == ("stream",)
    of_cxx = replace(NODE, compilers=(GCC, replace(GCC, family="icx", language="c++")))
    (found,) = plan_suite(suite, suite.figures, of_cxx, QUICK, {}).figures
    assert found.lacking == (("icx", why),)


def test_figures_are_in_the_order_of_the_paper_and_unknown_ones_are_refused() -> None:
    found = figures_of(SUITE, ("table a", "Figure 2", "3"))
    assert [each.number for each in found] == ["2", "3", "table A"]
    assert figures_of(SUITE, ()) == FIGURES
    complaint = "suite s has no figure '9'; it has 2, 3, 4, 5, table A"
    with pytest.raises(UsageError, match=complaint):
        figures_of(SUITE, ("2", "9"))


def test_between_environments_only_probes_that_are_compared_run() -> None:
    request = replace(QUICK, environments=("bare", "bare"))
    suite = PaperSuite(
        name="s",
        title="S",
        figures=(
            figure("1", FigurePart(probe="startup"), FigurePart(probe="clock")),
            figure("2", STREAM),
        ),
    )
    plan = plan_suite(suite, suite.figures, NODE, request, {})
    assert [step.probe for step in plan.steps] == ["startup", "stream"]
    assert [step.probes for step in plan.steps] == [("startup",), ("stream",)]
    assert why(plan)["1"] == ("clock: it is not compared between environments",)
    alone = plan_suite(suite, suite.figures, NODE, QUICK, {})
    assert why(alone)["1"] == ("startup: it is measured between environments only",)


def test_what_was_measured_is_not_planned_again() -> None:
    plan = planned(done={"stream": run("run-1"), "gone": run("run-2")})
    assert [step.done for step in plan.steps] == ["run-1"]
    assert plan.left == ()
    assert plan.seconds == 0.0
    assert in_time(plan, QUICK, 60.0) == plan


def test_cases_that_an_earlier_run_did_not_come_to_are_measured_by_the_next() -> None:
    (whole,) = planned().steps
    first, *others = whole.cases
    assert others
    late = Unmeasured(reason="the time was out before its turn")
    unmeasured = (
        *((case, late) for case in others),
        (first, Unmeasured(reason="it broke")),
        (replace(first, probe="flops"), late),
    )
    plan = planned(done={"stream": replace(run("run-1"), unmeasured=unmeasured)})
    (step,) = plan.left
    assert (step.done, step.measured, step.cases) == ("", (first.label,), whole.cases)
    assert 0 < step.seconds < whole.seconds
    part = SuiteStep(of="o", suite="s", probe="stream", measured=step.measured)
    found = offered(PROBE["stream"], NODE, replace(QUICK, probes=("stream",), suite=part))
    assert isinstance(found, tuple)
    assert [each.case for each in found] == others


def test_time_that_is_given_is_shared_out_by_what_each_step_needs() -> None:
    suite = PaperSuite(name="s", title="S", figures=(figure("1", STREAM, FEED), figure("2", NEW)))
    plan = plan_suite(suite, suite.figures, NODE, QUICK, {})
    shared = in_time(plan, QUICK, 30.0)
    assert shared.seconds == pytest.approx(30.0)
    assert [step.limit for step in shared.steps] == [step.seconds for step in shared.steps]
    before, after = ([s.seconds for s in each.steps] for each in (plan, shared))
    assert after[0] / after[1] == pytest.approx(before[0] / before[1])
    left = replace(shared, steps=(replace(plan.steps[0], done="run"), plan.steps[1]))
    assert in_time(left, QUICK, 10.0).steps[1].limit == pytest.approx(10.0)


def test_without_a_time_a_step_has_that_of_its_effort() -> None:
    plan = planned()
    assert in_time(plan, QUICK, None) == plan
    assert plan.steps[0].limit is None
    long = replace(plan, steps=(replace(plan.steps[0], seconds=100.0),))
    assert in_time(long, QUICK, None).steps[0].limit == 150.0


def test_between_environments_a_suite_has_a_limit() -> None:
    request = replace(QUICK, environments=("bare", "bare"))
    plan = planned(request=request)
    several = in_time(plan, request, None)
    assert several.seconds == pytest.approx(4 * plan.seconds)
    long = replace(plan, steps=tuple(replace(s, seconds=1e6) for s in plan.steps))
    assert in_time(long, request, None).seconds == LIMIT_SECONDS["quick"] <= 15 * 60


def test_a_probe_is_asked_by_its_name_and_may_have_nothing_to_measure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Shy(Clock):
        def cases(self, facts: Facts, request: MeasurementRequest) -> tuple[Case, ...] | Unmeasured:
            named = request.probes == ("clock",) and facts.gpus
            return super().cases(facts, request) if named else ()

    probes = tuple(Shy() if probe.name == "clock" else probe for probe in PROBES)
    monkeypatch.setattr("flowos.probes._tables.PROBES", probes)
    figures = (figure("1", FigurePart(probe="clock")),)
    suite = PaperSuite(name="s", title="S", figures=figures)
    assert plan_suite(suite, figures, replace(NODE, gpus=("a",)), QUICK, {}).steps
    nothing = plan_suite(suite, figures, NODE, QUICK, {})
    assert why(nothing)["1"] == ("clock: it has nothing to measure on this machine",)
