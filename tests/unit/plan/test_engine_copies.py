"""What a run copies between memories, said before it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flowos as fo
from flowos.model import (
    EnginePlan,
    Flow,
    NativeCode,
    NativePorts,
    PlannedCopy,
    PlannedTask,
    PortSpec,
    Task,
    native_ports,
)
from flowos.plan import Fuse, compile_flow, whole_plan, with_resident_arrays

VECTOR = fo.array(fo.float32, ("n",))
HOMES = {"opencl": "opencl", "cuda": "cuda"}
NONE = EnginePlan(state="chosen", tasks=(), copies=())


@dataclass(frozen=True)
class Kernel:
    """What runs on a device, with its ports as they were before arrays stayed."""

    ports: NativePorts
    stays: frozenset[int] = frozenset()

    def leaving(self, outputs: frozenset[int]) -> "Kernel":
        return Kernel(self.ports, outputs)


def kernel(engine: str, inputs: Any = None, outputs: Any = None, name: str = "") -> Any:
    ports = native_ports("k", inputs or {"x": VECTOR}, outputs or {"y": VECTOR})
    body = NativeCode(Kernel(ports), engine=engine)  # type: ignore[arg-type]
    return Task(name=name or engine, inputs=ports.inputs, outputs=ports.outputs, body=body)


class Sized:
    def __init__(self, *shape: int) -> None:
        self.shape = shape


@fo.task
def host(v: VECTOR) -> VECTOR:  # type: ignore[valid-type]
    return v


@fo.task
def any_length(count: int) -> VECTOR:  # type: ignore[valid-type]
    raise NotImplementedError


A, B, OTHER, CPU = kernel("opencl"), kernel("opencl"), kernel("cuda"), kernel("cpu")
X = fo.flow_input("x", VECTOR)


def whole(
    flow: Flow,
    *values: object,
    sites: EnginePlan = NONE,
    numbers: Mapping[str, int] | None = None,
    across: bool = True,
    fuse: Fuse = "chains",
    **named: Any,
) -> EnginePlan:
    schedule = with_resident_arrays(compile_flow(flow, fuse=fuse), across=across)
    options: dict[str, Any] = {"homes": HOMES, "missing": {}, **named}
    return whole_plan(sites, schedule.stages, values, numbers or {}, **options)


def copies(plan: EnginePlan) -> list[str]:
    assert not plan.unknown
    return [f"{c.value} {c.bytes} {c.source}>{c.target}" for c in plan.copies]


def engines(plan: EnginePlan) -> list[str]:
    return [f"{task.task}:{task.engine}" for task in plan.tasks]


def test_each_task_is_listed_and_a_chain_of_one_engine_copies_at_its_ends() -> None:
    plan = whole(fo.flow_output(CPU(A(B(host(X))))), Sized(8))
    assert engines(plan) == ["host:python", "opencl:opencl", "opencl#2:opencl", "cpu:cpu"]
    assert all(task.fixed for task in plan.tasks)
    assert copies(plan) == ["opencl.x 32 host>opencl", "opencl#2.y 32 opencl>host"]


def test_arrays_go_from_one_engine_to_another_by_the_host() -> None:
    assert copies(whole(fo.flow_output(OTHER(A(X))), Sized(8))) == [
        "opencl.x 32 host>opencl",
        "opencl.y 32 opencl>host",
        "cuda.x 32 host>cuda",
        "cuda.y 32 cuda>host",
    ]


def test_what_both_read_is_copied_once() -> None:
    made = A(X)
    assert copies(whole(fo.flow_output(B(made), made, host(made)), Sized(8), across=False)) == [
        "opencl.x 32 host>opencl",
        "opencl.y 32 opencl>host",
        "opencl#2.x 32 host>opencl",
        "opencl#2.y 32 opencl>host",
    ]
    plan = whole(fo.flow_output(B(made), made), Sized(8), fuse="all")
    assert engines(plan) == ["opencl:opencl", "opencl#2:opencl"]
    assert copies(plan) == [
        "opencl.x 32 host>opencl",
        "opencl.y 32 opencl>host",
        "opencl#2.y 32 opencl>host",
    ]


def test_a_call_copies_an_object_once_and_no_scalar_or_empty_array() -> None:
    two = kernel(
        "opencl", {"a": VECTOR, "b": VECTOR, "s": fo.float64}, {"y": VECTOR, "z": fo.int64}
    )
    flow = fo.flow_output(*two(X, X, 1.0))
    assert copies(whole(flow, Sized(8))) == [
        "opencl.a 32 host>opencl",
        "opencl.y 32 opencl>host",
        "opencl.z 8 opencl>host",
    ]
    assert copies(whole(fo.flow_output(A(X)), Sized(0))) == []


def test_a_size_is_that_of_an_array_or_of_an_integer_of_its_name() -> None:
    kinds = {"n": fo.int64, "m": fo.array(fo.bool_, ("n", 3))}
    sized = kernel("opencl", kinds, {"y": fo.array(fo.complex128, ("n",))})
    n, m = fo.flow_input("n", fo.int64), fo.flow_input("m", kinds["m"])
    assert copies(whole(fo.flow_output(sized(n, m)), 4, object())) == [
        "opencl.m 12 host>opencl",
        "opencl.y 64 opencl>host",
    ]


def test_bytes_that_nothing_says_are_said_to_be_unknown() -> None:
    plan = whole(fo.flow_output(A(any_length(fo.flow_input("n", fo.int64)))), 4)
    assert str(plan).splitlines()[3:] == [
        "copy opencl.x: bytes not known before the run, host to opencl",
        "copy opencl.y: bytes not known before the run, opencl to host",
        "state: chosen",
    ]
    odd = fo.flow_output(kernel("opencl", outputs={"y": fo.array(fo.float32, (2,))})(X))
    assert copies(whole(odd, object())) == [
        "opencl.x None host>opencl",
        "opencl.y 8 opencl>host",
    ]


def test_what_comes_of_a_port_without_a_shape_is_unknown() -> None:
    loose = fo.task(
        {
            "task_name": "loose",
            "iport_nametypes": ("x", VECTOR),
            "oport_nametypes": (("y", fo.array(fo.float32)), ("z", fo.any_)),
            "fun": print,
        }
    )
    y, _ = loose(X)
    assert copies(whole(fo.flow_output(y, CPU(X)), Sized(8))) == []


def test_an_engine_that_is_not_here_leaves_its_copies_unknown() -> None:
    missing = {"opencl": "there is no OpenCL device"}
    plan = whole(fo.flow_output(A(X)), Sized(8), homes={}, missing=missing)
    assert str(plan).splitlines()[2:] == [
        "copies not known: opencl, as there is no OpenCL device",
        "state: chosen",
    ]


def test_tasks_of_loops_are_listed_and_their_copies_are_unknown() -> None:
    x, z = fo.flow_input("x", VECTOR), fo.flow_input("z", VECTOR)
    once = fo.flow_output(CPU(host(x)), name="once")
    plan = whole(fo.flow_output(fo.loop(once, X, max_rounds=2)), Sized(8))
    assert engines(plan) == ["loop:flow", "loop/host:python", "loop/cpu:cpu"]
    assert (plan.copies, plan.unknown) == ((), ())
    made = A(x)
    branch = fo.flow_output(host(made), B(made), name="branch")
    flow = fo.flow_output(*fo.cond(fo.flow_input("c", fo.bool_), branch, branch, X))
    twice = fo.flow_output(fo.loop(fo.flow_output(A(x), name="inner"), z, max_rounds=2))
    nested = fo.flow_output(fo.loop(twice, X, max_rounds=2))
    fuses: tuple[Fuse, Fuse] = ("all", "none")
    for made_of, given, fuse in (
        *((flow, (True, Sized(8)), fuse) for fuse in fuses),
        *((nested, (Sized(8),), fuse) for fuse in fuses),
    ):
        plan = whole(made_of, *given, fuse=fuse)
        assert [each.split(":")[1] for each in engines(plan)] == (
            ["flow", *["opencl", "python", "opencl"] * 2]
            if made_of is flow
            else ["flow", "flow", "opencl"]
        )
        (why,) = plan.unknown
        assert why.endswith(", as the run says how often its tasks run")
        assert "copies not known" in str(plan)


class Site:
    """As `SiteFunction`: takes its task's values, then the engines; gives a note last."""

    def __init__(self, task: Any, stays: frozenset[int] = frozenset()) -> None:
        self.task, self.stays = task, stays

    def leaving(self, outputs: frozenset[int]) -> "Site":
        return Site(self.task, outputs)


def site(name: str) -> Any:
    inner = kernel("opencl", name=name)
    return Task(
        name=name,
        inputs=(*inner.inputs, PortSpec("engines", fo.any_)),
        outputs=(*inner.outputs, PortSpec("note", fo.any_)),
        body=NativeCode(Site(inner), engine="either"),  # type: ignore[arg-type]
    )


def chosen(*found: str, copies: Sequence[PlannedCopy] = ()) -> EnginePlan:
    tasks = [PlannedTask(task=f"s{i}", engine=each, seconds=1.0) for i, each in enumerate(found)]
    return EnginePlan(state="measuring", tasks=tuple(tasks), copies=tuple(copies))


def test_chosen_tasks_take_arrays_from_where_others_left_them() -> None:
    e = fo.flow_input("e", fo.any_)
    ((first, n0),) = [site("s")(X, e)]
    (second, n1) = site("s")(first, e)
    third, n2 = site("s")(first, e)
    flow = fo.flow_output(CPU(second), third, n0, n1, n2)
    numbers = {"s": 0, "s#2": 1, "s#3": 2}
    plan = whole(flow, Sized(8), None, sites=chosen("opencl", "opencl", "python"), numbers=numbers)
    assert engines(plan)[:2] == ["s:opencl", "s#2:opencl"]
    assert (plan.state, plan.seconds) == ("measuring", 3.0)
    assert sorted(copies(plan)) == [
        "s#2.y 32 opencl>host",
        "s.x 32 host>opencl",
        "s.y 32 opencl>host",
    ]
    plan = whole(flow, Sized(8), None, sites=chosen("cuda", "opencl", "python"), numbers=numbers)
    assert sorted(copies(plan)) == [
        "s#2.x 32 host>opencl",
        "s#2.y 32 opencl>host",
        "s.x 32 host>cuda",
        "s.y 32 cuda>host",
    ]


def test_bytes_that_were_seen_stand_in_for_those_that_nothing_says() -> None:
    e, n = fo.flow_input("e", fo.any_), fo.flow_input("n", fo.int64)
    made, note = site("s")(any_length(n), e)
    seen = PlannedCopy(value="s0.x", bytes=96, source="host", target="opencl")
    plan = whole(
        fo.flow_output(made, note),
        24,
        None,
        sites=chosen("opencl", copies=[seen]),
        numbers={"s": 0},
    )
    assert copies(plan) == ["s.x 96 host>opencl", "s.y None opencl>host"]


def test_a_value_may_say_anything_of_its_shape() -> None:
    odd = type("Odd", (), {"shape": property(lambda _: 1 // 0)})()
    assert copies(whole(fo.flow_output(A(X)), odd)) == [
        "opencl.x None host>opencl",
        "opencl.y None opencl>host",
    ]


def test_a_command_is_listed_and_copies_nothing() -> None:
    plan = whole(fo.flow_output(fo.command(["true"], stdout="said")()))
    assert [task.engine for task in plan.tasks] == ["command"]
    assert "no copies" in str(plan)
