"""Which of several needs a stage gets, and how many a flow has."""

from dataclasses import replace

import flowos as fo
from flowos.model import Needs, with_choices
from flowos.plan import (
    compile_flow,
    cores_needed,
    devices_needed,
    gpus_needed,
    max_choices,
    memory_needed,
    with_needs,
)

EITHER = (Needs(gpus=2, devices={"fpga": 1}), Needs(cores=8, memory_bytes=9), Needs(cores=2))


def task(name: str, needs: object) -> fo.Task:
    def same(x: int) -> int:
        return x

    return fo.task(same, name=name, needs=needs)  # type: ignore[call-overload, no-any-return]


def test_a_flow_is_asked_for_with_each_choice_of_its_tasks() -> None:
    x = fo.flow_input("x", fo.int64)
    plain = fo.flow_output(task("plain", Needs(memory_bytes=1))(x))
    assert max_choices(plain) == 1
    assert max_choices(fo.flow_output(x)) == 1
    flow = fo.flow_output(task("either", EITHER)(task("plain", Needs(memory_bytes=1))(x)))
    assert max_choices(flow) == 3
    assert [cores_needed(flow, i) for i in range(4)] == [1, 8, 2, 2]
    assert cores_needed(fo.flow_output(x)) == 1
    assert [gpus_needed(flow, i) for i in range(4)] == [2, 0, 0, 0]
    assert [memory_needed(flow, i) for i in range(4)] == [1, 9, 1, 1]
    assert [devices_needed(flow, i) for i in range(2)] == [{"fpga": 1}, {}]


def test_stages_get_other_needs_also_within_loops() -> None:
    x = fo.flow_input("x", fo.int64)
    body = fo.flow_output(task("a", EITHER)(task("b", Needs())(fo.flow_input("y", fo.int64))))
    schedule = compile_flow(fo.flow_output(fo.loop(body, x, max_rounds=2)), fuse="none")
    assert with_needs(schedule, lambda stage: stage.needs) is schedule
    chosen = with_needs(schedule, lambda stage: stage.needs.choices[-1])
    needs = {stage.steps[0].label: stage.needs for stage in chosen.all_stages}
    assert [n for label, n in needs.items() if label.endswith("a")] == [Needs(cores=2)]
    same = [stage for stage in chosen.all_stages if stage.steps[0].label.endswith("b")]
    assert same == [s for s in schedule.all_stages if s.steps[0].label.endswith("b")]
    assert replace(chosen.stages[0], flows=()) == replace(schedule.stages[0], flows=())
    assert with_choices(EITHER[0], ()) == EITHER[0]
