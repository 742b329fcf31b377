"""An executor of more places than this machine has cores: many threads, random flows and runs."""

import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import flowos as fo
from flowos.engine._ledger import ResourceLedger, Resources
from flowos.engine.flow._executor import Executor
from flowos.engine.flow._kernel import StopFlag
from flowos.engine.flow._runs import ExecutionSlot, FlowRun
from flowos.engine.flow._threads import ThreadLanes
from flowos.model import Flow, flow_input
from flowos.plan import Fuse, compile_flow

PLACES = 8
HAS = Resources(tuple(range(PLACES)), 0)


@fo.task
def mix(x: fo.int64, y: fo.int64) -> fo.int64:
    return (31 * x + y) % 1_000_003


@fo.task(needs=fo.Needs(cores=3))
def broad(x: fo.int64, y: fo.int64) -> fo.int64:
    return (37 * x + y) % 1_000_003


@fo.task(needs=fo.Needs(alone=True))
def alone(x: fo.int64, y: fo.int64) -> fo.int64:
    return (41 * x + y) % 1_000_003


@pytest.fixture(autouse=True)
def _threads_take_turns_often() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def executor_of(flow: Flow, fuse: Fuse = "chains") -> Executor:
    schedule = compile_flow(flow, fuse=fuse)
    stop_flags = [StopFlag() for _ in range(PLACES)]
    lanes = ThreadLanes(schedule, stop_flags)
    places = [ExecutionSlot(a, a, h) for a, h in zip(lanes.lanes, stop_flags, strict=True)]
    ledgers = ResourceLedger(HAS), ResourceLedger(HAS)
    return Executor(schedule, lanes, places, ledgers, helpers=PLACES)


def random_flow(seed: int, size: int, tasks: Sequence[fo.Task]) -> Flow:
    dice = random.Random(seed)
    ports: list[Any] = [flow_input("a", fo.int64), flow_input("b", fo.int64)]
    for _ in range(size):
        recent = ports[-dice.choice((2, 10, 1000)) :]
        ports.append(dice.choice(tasks)(dice.choice(recent), dice.choice(ports)))
    return fo.flow_output(*dice.sample(ports, 5), ports[-1])


def expected(flow: Flow, values: Sequence[int]) -> list[Any]:
    """By one thread, in the order of the calls."""
    known: dict[object, Any] = dict(zip(flow.inputs, values, strict=True))
    for call in flow.calls:
        fun: Callable[..., int] = call.task.body.fun  # type: ignore[union-attr]
        given = [known[a.call or a] for a in call.arguments]  # type: ignore[union-attr]
        known[call] = fun(*given)
    return [known[p.call or p] for p in flow.outputs]


@pytest.mark.parametrize("seed", range(12))
def test_many_threads_give_the_values_of_one(seed: int) -> None:
    tasks = [mix] if seed % 2 else [mix, mix, mix, broad, alone]
    flow = random_flow(seed, 300, tasks)
    executor = executor_of(flow, "none" if seed % 3 else "chains")
    try:
        for i in range(10):
            assert executor.run([i, seed]) == expected(flow, [i, seed])
        runs = [executor.start([i, seed]) for i in range(10)]
        executor.help()
        for i, run in enumerate(runs):
            assert isinstance(run, FlowRun)
            assert executor.finish(run) == expected(flow, [i, seed])
    finally:
        executor.end(fo.Cancelled, 5)


def test_many_callers_on_many_places_all_get_their_values() -> None:
    flow = random_flow(99, 60, [mix, broad])
    executor = executor_of(flow)
    wrong: list[object] = []

    def call(i: int) -> None:
        wanted = expected(flow, [i, i])
        wrong.extend(got for _ in range(30) if (got := executor.run([i, i])) != wanted)

    callers = [threading.Thread(target=call, args=(i,)) for i in range(12)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(120)
    assert not any(caller.is_alive() for caller in callers)
    assert wrong == []
    executor.end(fo.Cancelled, 5)


def test_an_ended_executor_starts_nothing() -> None:
    for flow in (random_flow(1, 20, [mix]), fo.flow_output(mix(flow_input("a", fo.int64), 1))):
        executor = executor_of(flow)
        executor.end(fo.Cancelled, 1)
        executor.end(fo.Cancelled, 1)
        assert executor.start([1, 1]) is None
        assert executor.run([1, 1]) is None


def test_a_cancelled_run_is_no_matter_to_others() -> None:
    gate = threading.Event()

    @fo.task
    def wait(x: fo.int64) -> fo.int64:
        gate.wait(60)
        return x

    a = flow_input("a", fo.int64)
    executor = executor_of(fo.flow_output(mix(wait(a), 1), mix(wait(a), 2)), "none")
    first, second = executor.start([1]), executor.start([2])
    assert first is not None
    assert second is not None
    executor.help()
    executor.cancel(first, fo.Cancelled("not wanted"))
    gate.set()
    with pytest.raises(fo.Cancelled, match="not wanted"):
        executor.finish(first)
    assert executor.finish(second) == [63, 64]
    executor.cancel(second, fo.Cancelled("too late"))
    executor.end(fo.Cancelled, 5)


def test_a_flow_of_a_hundred_thousand_tasks_compiles_and_runs() -> None:
    port: Any = flow_input("a", fo.int64)
    for _ in range(100_000):
        port = mix(port, 1)
    with fo.slice(port) as s:
        (value,) = s.run(1)
    del port, s
    assert 0 <= value < 1_000_003  # type: ignore[operator]
