"""The state program: where it runs, how its answer is read, what becomes of it."""

import json
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.model import (
    Compiler,
    Exited,
    Facts,
    LogicalCpu,
    MachineState,
    MeasureError,
    Outcome,
    Unmeasured,
)
from flowos.probes import Program, built_by, state
from flowos.probes.state import Spin

GCC = Compiler(name="gcc", family="gcc", language="c", version="12", path=PurePath("/bin/gcc"))
SPIN = Spin(clock_hz=4e9, add_imul_ratio=3.0, scaling=0.99, starved_share=0.01)


def node(*kinds: str, siblings: int = 1) -> Facts:
    cpus = tuple(
        LogicalCpu(number=siblings * core + thread, core=core, socket=0, node=0, kind=kind)  # type: ignore[arg-type]
        for core, kind in enumerate(kinds)
        for thread in range(siblings)
    )
    return Facts(
        host="h",
        system="Linux",
        kernel="6",
        architecture="x86_64",
        cpu_model="",
        cpus=cpus,
        allowed=tuple(c.number for c in cpus),
        compilers=(GCC,),
    )


def cpus_of(facts: Facts) -> str:
    program = state.program(facts)
    assert not isinstance(program, Unmeasured)
    assert program.cores == len(program.argv[1].split(","))
    return program.argv[1]


def answer(**values: float) -> Outcome:
    readings = [{"metric": m, "unit": "1", "values": [v]} for m, v in values.items()]
    return Outcome(end=Exited(0), stdout=json.dumps({"readings": readings}).encode())


def test_one_cpu_of_each_core_spins() -> None:
    assert cpus_of(node("", "", siblings=2)) == "0,2"


def test_cores_of_two_kinds_are_not_compared_with_each_other() -> None:
    assert cpus_of(node("efficiency", "performance", "performance")) == "1,2"


def test_efficiency_cores_spin_where_there_are_no_others() -> None:
    assert cpus_of(node("efficiency", "efficiency")) == "0,1"


def test_all_cores_of_all_sockets_spin_for_half_a_minute_at_most() -> None:
    one = node("", "", "", "")
    assert state.program(
        replace(one, cpus=tuple(replace(c, socket=c.core // 2) for c in one.cpus))
    ) == (
        Program(
            argv=("--cpus", "0,1,2,3"),
            build=built_by("state.c", GCC, ("-O2", "-pthread")),
            cores=4,
            limit_seconds=30.0,
        )
    )


def test_a_quota_bounds_the_spinning_threads() -> None:
    assert cpus_of(replace(node("", "", "", ""), quota_cpus=2.5)) == "0,1"


def test_without_a_compiler_the_state_is_unmeasured_with_a_remedy() -> None:
    missing = state.program(replace(node(""), compilers=()))
    assert isinstance(missing, Unmeasured)
    assert missing.remedy


def test_the_answer_is_read() -> None:
    outcome = answer(clock=4e9, add_imul_ratio=3.0, scaling=0.99, starved_share=0.01)
    assert state.read(outcome) == SPIN


def test_a_failed_program_is_unmeasured() -> None:
    failed = state.read(Outcome(end=Exited(1), stderr=b"cannot run on cpu 1"))
    assert isinstance(failed, Unmeasured)
    assert "cannot run on cpu 1" in failed.reason


def test_an_answer_that_lacks_a_metric_is_refused_by_its_name() -> None:
    with pytest.raises(MeasureError, match="scaling"):
        state.read(answer(clock=4e9, add_imul_ratio=3.0, starved_share=0.01))


def test_a_state_is_what_spinning_showed_before_and_after() -> None:
    watched = MachineState(others_cpus=0.5)
    after = replace(SPIN, clock_hz=3e9, starved_share=0.2)
    assert state.around(watched, SPIN, after) == MachineState(
        clock_hz=(4e9, 3e9),
        add_imul_ratio=(3.0, 3.0),
        scaling=(0.99, 0.99),
        starved_share=0.2,
        others_cpus=0.5,
    )


@pytest.mark.parametrize(("before", "after"), [(None, SPIN), (SPIN, None), (None, None)])
def test_without_both_spins_the_state_is_what_was_counted(
    before: Spin | None, after: Spin | None
) -> None:
    watched = MachineState(others_cpus=0.5)
    assert state.around(watched, before, after) == watched


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(None, None, None), (0.1, None, 0.1), (None, 0.2, 0.2), (0.3, 0.2, 0.3)],
)
def test_the_larger_io_pressure_around_counts(
    before: float | None, after: float | None, expected: float | None
) -> None:
    spins = (replace(SPIN, io_pressure=before), replace(SPIN, io_pressure=after))
    assert state.around(MachineState(), *spins).io_pressure == expected
