"""Samples in the order in which their cases were planned, whatever was drawn."""

from dataclasses import replace
from itertools import permutations
from pathlib import PurePath

from flowos.model import Case, Compiler, Entered, Facts, LogicalCpu, MeasurementRequest, Run, Sample
from flowos.operations.measure import as_planned
from flowos.probes import probes_for

GCC = Compiler(
    name="gcc", family="gcc", language="c", version="12.2.0", path=PurePath("/usr/bin/gcc")
)
RUN = Run(
    id="2026-11-20-abc",
    started="2026-11-20T10:00:00Z",
    host="node",
    version="0.1.0",
    request=MeasurementRequest(),
    facts=Facts(
        host="node",
        system="Debian 12",
        kernel="6.1",
        architecture="x86_64",
        cpu_model="?",
        cpus=tuple(LogicalCpu(number=n, core=n, socket=0, node=0) for n in range(8)),
        allowed=tuple(range(8)),
        memory_bytes=64 << 30,
        compilers=(GCC,),
    ),
)


def sample(case: Case, round_: int) -> Sample:
    return Sample(
        run=RUN.id, case=case, round=round_, metric="time", unit="second", values=(float(round_),)
    )


def planned() -> tuple[Case, ...]:
    probe = next(p for p in probes_for() if p.name == "flops")
    cases = probe.cases(RUN.facts, RUN.request)
    assert isinstance(cases, tuple)
    assert len(cases) > 1
    return cases


def test_cases_stand_as_their_probe_plans_them() -> None:
    cases = planned()
    for drawn in permutations(cases):
        found = as_planned(RUN, [sample(case, 0) for case in drawn])
        assert [s.case for s in found] == list(cases)


def test_what_a_program_swept_stands_with_its_case_and_as_it_was_swept() -> None:
    first, second = planned()[:2]
    points = [replace(second, levels=(*second.levels, ("isa", isa))) for isa in ("sse4.2", "avx")]
    found = as_planned(RUN, [sample(case, 0) for case in (*points, first)])
    assert [s.case for s in found] == [first, *points]


def test_samples_of_one_case_stay_as_they_were_measured() -> None:
    first, second = planned()[:2]
    given = [sample(case, at) for at in (2, 0, 1) for case in (second, first)]
    found = as_planned(RUN, given)
    assert [s.round for s in found] == [2, 0, 1, 2, 0, 1]


def test_the_base_environment_comes_first() -> None:
    run = replace(RUN, environments=(Entered(label="bare"), Entered(label="image")))
    case = planned()[0]
    of = {name: replace(case, levels=(*case.levels, ("env", name))) for name in ("bare", "image")}
    found = as_planned(run, [sample(of["image"], 0), sample(of["bare"], 0)])
    assert [s.case.level("env") for s in found] == ["bare", "image"]


def test_a_case_that_no_probe_plans_any_more_comes_last() -> None:
    old = Case(probe="flops", levels=(("cores", "of another version"),))
    found = as_planned(RUN, [sample(old, 0), sample(planned()[0], 0)])
    assert [s.case for s in found] == [planned()[0], old]


def test_a_run_may_hold_nothing() -> None:
    run: Run = RUN
    assert as_planned(run, ()) == ()
