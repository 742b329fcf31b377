"""Which arrays stay in the memory of an engine, and where they are copied."""

from dataclasses import dataclass
from typing import Any

import flowos as fo
from flowos.model import Flow, NativeCode, PortSpec, Task, float32
from flowos.plan import Fuse, Schedule, Stage, compile_flow, with_resident_arrays

VECTOR = fo.array(fo.float32, ("n",))


@dataclass(frozen=True)
class Kernel:
    """What runs on a device; stays: outputs that are left there."""

    name: str
    stays: frozenset[int] = frozenset()

    def __call__(self, *values: object) -> object:
        raise NotImplementedError

    def leaving(self, outputs: frozenset[int]) -> "Kernel":
        return Kernel(self.name, outputs)


def kernel(name: str, engine: str = "opencl", gives: Any = (VECTOR,), takes: int = 1) -> Any:
    return Task(
        name=name,
        inputs=tuple(PortSpec(f"x{i}", VECTOR) for i in range(takes)),
        outputs=tuple(PortSpec(f"y{i}", port) for i, port in enumerate(gives)),
        body=NativeCode(Kernel(name), engine=engine),
    )


@fo.task
def host(v: VECTOR) -> VECTOR:  # type: ignore[valid-type]
    return v


A, B, OTHER = kernel("a"), kernel("b"), kernel("other", "cuda")
X = fo.flow_input("x", VECTOR)


def resident(flow: Flow, fuse: Fuse = "chains", *, across: bool = True) -> Schedule:
    return with_resident_arrays(compile_flow(flow, fuse=fuse), across=across)


def staying(schedule: Schedule) -> list[str]:
    """The steps of each stage with the outputs that stay."""
    return [words(stage) for stage in schedule.stages]


def words(stage: Stage) -> str:
    found = []
    for step in stage.steps:
        stays = sorted(getattr(getattr(step.task.body, "fun", None), "stays", ()))
        found.append(step.label + (f"{stays}" if stays else ""))
    return ", ".join(found)


def test_a_flow_without_engines_stays_as_it_is() -> None:
    schedule = compile_flow(fo.flow_output(host(host(X))))
    assert with_resident_arrays(schedule, across=True) is schedule


def test_within_a_chain_of_one_engine_arrays_stay() -> None:
    schedule = resident(fo.flow_output(B(A(B(X)))), across=False)
    assert staying(schedule) == ["b[0], a[0], b#2"]


def test_other_engines_and_the_host_get_arrays_of_numpy() -> None:
    assert staying(resident(fo.flow_output(A(OTHER(A(X)))))) == ["a, other, a#2"]
    assert staying(resident(fo.flow_output(A(host(A(X)))))) == ["a, host, a#2"]


def test_what_both_read_is_copied_once_by_a_step() -> None:
    made = A(X)
    schedule = resident(fo.flow_output(B(made), host(made)), "all")
    (stage,) = schedule.stages
    assert words(stage) == "a[0], a to the host, b, host"
    a, copy, b, last = stage.steps
    assert copy.inputs == a.outputs == b.inputs
    assert last.inputs == copy.outputs == (len(stage.inputs) + len(stage.constants) - 1,)
    assert copy.task.outputs[0].type == VECTOR
    assert stage.returns == b.outputs + last.outputs


def test_an_output_of_the_flow_is_returned_as_its_copy() -> None:
    made = A(X)
    (stage,) = resident(fo.flow_output(made, B(made)), "all").stages
    assert words(stage) == "a[0], a to the host, b"
    assert stage.returns == (*stage.steps[1].outputs, *stage.steps[2].outputs)


def test_a_register_is_used_again_after_its_copy() -> None:
    """What it holds then is not on the host by the copy's register."""
    made = A(X)
    (stage,) = resident(fo.flow_output(host(host(host(made))), B(made)), "all").stages
    assert words(stage) == "a[0], a to the host, host, host#2, host#3, b"
    _, copy, *hosts, _b = stage.steps
    assert hosts[0].inputs == copy.outputs
    assert [h.inputs for h in hosts[1:]] == [h.outputs for h in hosts[:-1]]


def test_across_stages_an_array_stays_if_only_its_engine_reads_it() -> None:
    made = A(X)
    assert staying(resident(fo.flow_output(B(made), A(made)))) == ["a[0]", "b", "a#2"]
    assert staying(resident(fo.flow_output(B(made), A(made)), across=False)) == ["a", "b", "a#2"]
    assert staying(resident(fo.flow_output(B(made), host(made)))) == ["a", "b", "host"]
    assert staying(resident(fo.flow_output(B(made), A(made), made))) == ["a", "b", "a#2"]


def test_loops_get_arrays_of_numpy_and_their_tasks_keep_them_within_a_round() -> None:
    v = fo.flow_input("v", VECTOR)
    looped = fo.loop(fo.flow_output(B(A(v))), A(X), max_rounds=2)
    (stage,) = resident(fo.flow_output(A(looped)), "all").stages
    assert words(stage) == "a, loop, a#2"
    assert words(stage.steps[1].inner[0]) == "loop/a[0], loop/b"


def test_a_loop_of_stages_has_arrays_that_stay_within_a_round() -> None:
    v = fo.flow_input("v", VECTOR)
    made = A(v)
    looped = fo.loop(fo.flow_output(kernel("two", takes=2)(B(made), A(made))), A(X), max_rounds=2)
    schedule = resident(fo.flow_output(looped))
    assert staying(schedule) == ["a", "loop"]
    assert staying(schedule.stages[1].flows[0]) == [
        "loop/a[0]",
        "loop/b[0]",
        "loop/a#2[0]",
        "loop/two",
    ]


def test_scalars_are_on_the_host_anyway() -> None:
    two = kernel("two", gives=(fo.float32, VECTOR))
    one = Task(
        name="one",
        inputs=(PortSpec("s", float32), PortSpec("v", VECTOR)),
        outputs=(PortSpec("y", VECTOR),),
        body=NativeCode(Kernel("one"), engine="opencl"),
    )
    schedule = resident(fo.flow_output(one(*two(X))))
    assert staying(schedule) == ["two[1], one"]
    (stage,) = schedule.stages
    types = [port.type for port in stage.steps[0].task.outputs]
    assert types == [fo.float32, fo.any_]


def test_a_step_of_several_outputs() -> None:
    two = kernel("two", gives=(VECTOR, VECTOR))
    first, second = two(X)
    (stage,) = resident(fo.flow_output(B(first), host(second)), "all").stages
    assert words(stage) == "two[0], b, host"
    types = [port.type for port in stage.steps[0].task.outputs]
    assert types == [fo.any_, VECTOR]


def test_of_two_engines_that_read_a_value_only_its_own_takes_it_where_it_is() -> None:
    made = A(X)
    flow = fo.flow_output(B(made), OTHER(made))
    (stage,) = resident(flow, "all").stages
    a, copy, b, other = stage.steps
    assert words(stage) == "a[0], a to the host, b, other"
    assert b.inputs == a.outputs
    assert other.inputs == copy.outputs
