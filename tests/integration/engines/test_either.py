"""Tasks with several bodies: measured, chosen, forced; equal results wherever they run."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import flowos as fo
from flowos.engine import SliceOptions, here, open_slice
from flowos.engine.bodies._opencl_engine import opencl_engine
from flowos.engine.flow._sites import SiteFunction
from flowos.model import EngineMissing
from tests.integration.engines import either_tasks as bodies

VECTOR = fo.array(fo.float64, ("n",))
TWICE = """
#include <cstdint>
extern "C" int twice(const double* x, int64_t n, double* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
  return 0;
}
"""
X = np.arange(4.0)
ANY: Any = {"task_name": "x", "iport_nametypes": ("v", fo.any_), "oport_nametypes": ("x", VECTOR)}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "flowos" / "engines"


def in_python(name: str, port: str = "x", **options: Any) -> Any:
    ports = {"iport_nametypes": (port, VECTOR), "oport_nametypes": ("y", VECTOR)}
    return fo.task({"task_name": name, **ports, "fun": getattr(bodies, name)}, **options)


def in_c() -> Any:
    return fo.cxx(TWICE, "twice", inputs={"x": VECTOR}, outputs={"y": VECTOR})


def twice() -> Any:
    return fo.either(in_python("twice"), in_c())


def flow() -> Any:
    task = twice()
    return fo.flow_output(task(in_python("add_one")(task(fo.flow_input("x", VECTOR)))))


def wrong() -> Any:
    return in_c(), 3


def listed(outputs: Any) -> list[Any]:
    return [each.tolist() for each in outputs]


def run(opened: Any, *values: object) -> Any:
    return listed(opened.run(*values))[0]


def engines_of(opened: Any, *values: object) -> list[str]:
    return [task.engine for task in opened.plan(*values).tasks]


@pytest.mark.parametrize("workers", ["inline", "thread", "process"])
def test_each_engine_is_measured_and_then_one_is_chosen(workers: Any) -> None:
    with fo.slice(flow(), workers=workers) as opened:
        states: list[str] = []
        while (plan := opened.plan(X)).state == "measuring" and len(states) < 60:
            states.append(plan.state)
            assert run(opened, X) == [2, 6, 10, 14]
        assert run(opened, X) == [2, 6, 10, 14]
    assert len(states) >= 6
    assert plan.state == "chosen"
    assert [task.task for task in plan.tasks] == ["twice", "add_one", "twice#2"]
    assert [task.fixed for task in plan.tasks] == [False, True, False]
    assert plan.seconds is not None
    assert plan.seconds > 0


def test_a_map_submit_and_results_by_item_say_nothing_of_engines() -> None:
    with fo.slice(flow()) as opened:
        found: Any = list(opened.map([X, X + 1, X + 2]))
        assert [each[0].tolist()[0] for each in found] == [2, 6, 10]
        assert listed(opened.submit(X).result())[0] == [2, 6, 10, 14]
        (result,) = opened.map([X], on_error="return")
        assert len(result.outputs or ()) == 1


@pytest.mark.parametrize("engine", ["python", "cpu"])
def test_a_forced_engine_is_the_only_one(engine: str) -> None:
    with fo.slice(flow(), engines=(engine,)) as opened:
        assert run(opened, X) == [2, 6, 10, 14]
        assert "engines" not in str(opened)
        assert {engine, "python"} == {*engines_of(opened, X)}


def test_the_faster_one_is_chosen_and_a_later_program_knows_it(cache: Path) -> None:
    slow = fo.either(in_python("slowly_twice"), in_c())
    made = fo.flow_output(slow(fo.flow_input("x", VECTOR)))
    with fo.slice(made, workers="inline") as opened:
        for _ in range(7):
            opened.run(X)
        assert engines_of(opened, X) == ["cpu"]
    (kept,) = cache.glob("*.json")
    assert json.loads(kept.read_text())
    with fo.slice(made, workers="inline") as opened:
        plan = opened.plan(X)
        assert (plan.state, [task.engine for task in plan.tasks]) == ("chosen", ["cpu"])
        assert opened.plan(np.ones(9000)).state == "measuring"
    kept.write_text("torn")
    with fo.slice(made, workers="inline") as opened:
        assert opened.plan(X).state == "measuring"


def test_once_chosen_few_runs_are_noted_and_they_go_on_to_be() -> None:
    with fo.slice(flow(), workers="inline") as s:
        for _ in range(70):
            run(s, X)
        history = cast("Any", s)._executor[0]._history
        began = time.monotonic()
        noted = sum(history.begin([X]).noted for _ in range(2000))
        assert noted <= 2 + (time.monotonic() - began) / 0.05
        time.sleep(0.06)
        assert sum(history.begin([X]).noted for _ in range(64)) == 1


def test_where_functions_cannot_be_called_another_engine_is_taken_and_the_machine_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flowos.engine.bodies._native_function._MACHINES", ("none", "other"))
    said = f"functions are called on none or other, this is {here().architecture()}"
    x = fo.flow_input("x", VECTOR)
    with fo.slice(in_c()(x)) as s, pytest.raises(fo.TaskFailed, match=said):
        s.run(X)
    with fo.slice(fo.either(in_c(), in_python("twice"))(x), workers="inline") as s:
        assert listed(s.run(X)) == [(2 * X).tolist()]
        assert any(said in note for note in s.notes)


def test_an_engine_that_is_not_there_is_left_out_with_the_reason() -> None:
    lacking = fo.either(in_python("twice"), replaced_body(in_c(), bodies.missing))
    with fo.slice(fo.flow_output(lacking(fo.flow_input("x", VECTOR)))) as opened:
        for _ in range(9):
            assert run(opened, X) == [0, 2, 4, 6]
        assert engines_of(opened, X) == ["python"]
        assert "no such card" in opened.notes
    with (
        fo.slice(fo.flow_output(lacking(fo.flow_input("x", VECTOR))), engines=["cpu"]) as opened,
        pytest.raises(fo.TaskFailed, match="no such card") as caught,
    ):
        opened.run(X)
    assert isinstance(caught.value.__cause__, EngineMissing)


def test_arrays_stay_on_an_engine_where_the_next_task_is_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FLOWOS_OPENCL_MEMORY", "own")
    kernel = "__kernel void twice(__global const double* x, long n, __global double* y)"
    source = f"{kernel} {{ y[get_global_id(0)] = 2 * x[get_global_id(0)]; }}"
    ports: Any = {"inputs": {"x": VECTOR}, "outputs": {"y": VECTOR}}
    task = fo.either(in_python("twice"), fo.opencl(source, "twice", **ports))
    device = opencl_engine()
    before = device.copies_in, device.copies_out
    with fo.slice(fo.flow_output(task(task(task(fo.flow_input("x", VECTOR)))))) as opened:
        for _ in range(3):
            assert run(opened, X) == (8 * X).tolist()
        assert engines_of(opened, X) == ["opencl"] * 3
        for _ in range(2):
            assert run(opened, X) == (8 * X).tolist()
        copies = [(each.value, each.source, each.target) for each in opened.plan(X).copies]
        run(opened, X)
    assert (device.copies_in - before[0], device.copies_out - before[1]) == (3, 3)
    assert copies == [("twice.x", "host", "opencl"), ("twice#3.y", "opencl", "host")]


@pytest.mark.parametrize("workers", ["thread", "process"])
def test_an_engine_that_is_gone_in_a_later_program_is_left_out(workers: Any) -> None:
    two = fo.either(in_python("slowly_twice"), replaced_body(in_c(), bodies.there_once))
    made = fo.flow_output(two(fo.either(in_python("twice"), in_c())(fo.flow_input("x", VECTOR))))
    with fo.slice(made, workers="inline") as opened:
        for _ in range(16):
            assert run(opened, X) == [0, 4, 8, 12]
        assert engines_of(opened, X)[1] == "cpu"
    bodies.gone.touch()
    try:
        with fo.slice(made, workers=workers) as opened:
            assert [listed(each)[0] for each in opened.map([X] * 6)] == [[0, 4, 8, 12]] * 6
            assert listed(opened.submit(X).result())[0] == [0, 4, 8, 12]
            for _ in range(8):
                assert run(opened, X) == [0, 4, 8, 12]
            assert engines_of(opened, X)[1] == "python"
            assert "the card is gone" in opened.notes
    finally:
        bodies.gone.unlink()


@pytest.mark.parametrize(("workers", "on"), [("thread", " on engine python"), ("process", "")])
def test_what_fails_names_its_inputs_and_in_a_thread_its_engine(workers: Any, on: str) -> None:
    failing = fo.either(in_python("refuse"), in_c())
    said = rf"no \(.*\){on}; given x = [^=]*$"
    with (
        fo.slice(fo.flow_output(failing(fo.flow_input("x", VECTOR))), workers=workers) as opened,
        pytest.raises(fo.TaskFailed, match=said),
    ):
        opened.run(X)


def replaced_body(task: Any, fun: Any) -> Any:
    from dataclasses import replace

    return replace(task, body=replace(task.body, fun=fun))


def test_in_flows_within_flows_each_call_is_chosen_and_loops_take_the_first() -> None:
    task = twice()
    inner = fo.flow_output(task(fo.flow_input("x", VECTOR)), name="inner")
    x = fo.flow_input("x", VECTOR)
    looped = fo.loop(inner, inner(inner(x)), max_rounds=2)
    with fo.slice(fo.flow_output(looped, inner(np.ones(4))), workers="inline") as opened:
        for _ in range(8):
            assert listed(opened.run(X)) == [(16 * X).tolist(), [2, 2, 2, 2]]
        assert [each.task for each in opened.plan(X).tasks] == [
            "inner/twice",
            "inner/twice#2",
            "loop",
            "loop/twice",
            "inner/twice#3",
        ]


@pytest.mark.parametrize("engines", [None, ("cpu",), ("python",)])
def test_an_input_that_gives_nothing_is_none_of_another(engines: Any) -> None:
    i, j, a, b, x, y = (fo.flow_input(name, VECTOR) for name in "ijabxy")
    inner = fo.flow_output(twice()(j), i, name="inner")
    branch = fo.flow_output(inner(a, b)[0], name="branch")
    for flow, given in ((branch, 2), (fo.flow_output(fo.loop(branch, x, b=y, max_rounds=2)), 2)):
        with fo.slice(flow, workers="inline", engines=engines) as s:
            for _ in range(9):
                assert listed(s.run(X + 100, X)) == [(given * X).tolist()]


@pytest.mark.parametrize("nbytes", [[1.0], 1.0, property(lambda _: 1 // 0)])
def test_whatever_a_value_says_of_its_size_it_is_taken(nbytes: Any) -> None:
    value = type("Sized", (), {"nbytes": nbytes})()
    length = fo.task({**ANY, "fun": lambda _: X})
    made = fo.flow_output(twice()(length(fo.flow_input("x", fo.any_))))
    with fo.slice(made, workers="inline") as s:
        for _ in range(9):
            assert run(s, value) == [0, 2, 4, 6]


@pytest.mark.parametrize("fuse", ["all", "none"])
def test_once_chosen_an_engine_may_go_and_a_task_may_fail(fuse: Any) -> None:
    failing = replaced_body(in_c(), bodies.fails_as_it_should)
    two = fo.either(in_python("slowly_twice"), failing)
    x = fo.flow_input("x", VECTOR)
    made = fo.flow_output(x, two(in_python("add_one")(x)), x)
    with open_slice(made, here(), SliceOptions(workers="inline", fuse=fuse)) as s:
        for _ in range(80):
            assert listed(s.run(X)) == [[0, 1, 2, 3], [2, 4, 6, 8], [0, 1, 2, 3]]
        assert engines_of(s, X) == ["python", "cpu"]
        for _ in range(3):
            with pytest.raises(fo.TaskFailed, match=r"twice' .*: 13 \(.*\) on engine cpu; given"):
                s.run(X + 12)
        with pytest.raises(fo.ValueRefused, match=r"twice', output 'y': .*; its inputs were"):
            s.run(X + 13)
        bodies.gone.touch()
        try:
            for _ in range(3):
                assert listed(s.run(X))[1] == [2, 4, 6, 8]
        finally:
            bodies.gone.unlink()
        assert "the card is gone" in s.notes


def test_a_task_with_the_name_of_one_with_engines_fails_on_none_of_them() -> None:
    slow = fo.either(in_python("slowly_twice"), in_c())
    ports = {"iport_nametypes": ("x", VECTOR), "oport_nametypes": ("y", VECTOR)}
    fails = fo.task({"task_name": "slowly_twice", **ports, "fun": bodies.fails_as_it_should})
    with fo.slice(slow(fails(fo.flow_input("x", VECTOR))), workers="inline") as s:
        for _ in range(80):
            assert run(s, X) == [0, 4, 8, 12]
        assert engines_of(s, X) == ["python", "cpu"]
        for _ in range(3):
            with pytest.raises(fo.TaskFailed, match="'slowly_twice' raised") as caught:
                s.run(X + 13)
            assert "on engine" not in str(caught.value)


def test_a_run_that_is_not_noted_costs_no_call_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with fo.slice(flow(), workers="inline") as s:
        for _ in range(80):
            run(s, X)
        calls: list[object] = []
        monkeypatch.setattr(SiteFunction, "__call__", lambda *values: calls.append(values))
        began = time.monotonic()
        for _ in range(63):
            with suppress(fo.FlowosError):
                assert run(s, X) == [2, 6, 10, 14]
        assert len(calls) <= 2 + (time.monotonic() - began) / 0.05


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fo.either(), "two tasks or more"),
        (lambda: fo.either(in_c()), "two tasks or more"),
        (lambda: fo.either(in_c(), in_c()), "two of its tasks are on engine 'cpu'"),
        (lambda: fo.either(*wrong()), "expected tasks, given 3"),
        (lambda: fo.either(in_c(), in_python("twice", "z")), "inputs of 'twice' are"),
        (lambda: fo.either(in_c(), twice()), "is no function on one engine"),
        (lambda: fo.either(in_c(), in_python("twice", retries=1)), "retries of 'twice'"),
        (lambda: fo.slice(flow(), engines=("gpu",)), "a tuple of one or more of python, cpu"),
        (lambda: fo.slice(flow(), engines="cpu"), "a tuple of one or more of python, cpu"),
        (lambda: fo.slice(flow(), engines=()), "a tuple of one or more of python, cpu"),
        (lambda: fo.slice(flow(), engines=("hdl",)), "has bodies for python, cpu; engines are hdl"),
    ],
)
def test_what_does_not_fit_is_one_line(make: Any, says: str) -> None:
    with pytest.raises(fo.FlowosError, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("workers", ["inline", "thread", "process"])
def test_kept_results_are_found_whichever_engines_are_chosen(workers: Any, tmp_path: Path) -> None:
    ports = {"iport_nametypes": ("n", fo.int64), "oport_nametypes": ("m", fo.int64)}
    same = fo.task({"task_name": "same", **ports, "fun": bodies.same}, cache=False)
    doubled = twice()(fo.flow_input("x", VECTOR))
    both = fo.flow_output(doubled, same(fo.flow_input("n", fo.int64)))
    with fo.slice(both, workers=workers, journal=tmp_path / "kept") as opened:
        for n in (1, 1000, 1_000_000):  # of other sizes, for which others may be chosen
            assert listed([opened.run(X, n)[0]]) == [[0, 2, 4, 6]]
        assert any(note.startswith("2 results were taken from") for note in opened.notes)
    with fo.slice(both, workers=workers, journal=tmp_path / "kept") as opened:
        for _ in range(8):
            opened.run(X, 1)
        assert any(note.startswith("8 results were taken from") for note in opened.notes)
        assert opened.plan(X, 1).state == "measuring", "nothing of it was run"
        for i in range(60):
            opened.run(X + i, 1)
        assert opened.plan(X, 1).state == "chosen"


def test_what_was_measured_on_a_node_is_of_that_node(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flowos.toml").write_text('[pools.one]\nkind = "fake"\n')
    there, here = lambda: fo.slice(flow(), pool="one", nodes=1), lambda: fo.slice(flow())
    for opened_by in (there, here, here):
        with opened_by() as opened:
            for _ in range(8):
                opened.run(X)
    assert len(list(cache.glob("*.json"))) == 2
