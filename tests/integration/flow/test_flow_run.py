"""Flows on slices, with every kind of worker: what runs, what is refused, which error is shown."""

import threading
import traceback
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import flowos as fo
from flowos.engine import Event
from flowos.model import PortType, flow_input
from tests.integration.flow.number_tasks import add, divide, integer, tree

Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "inline", "process")
Vector = Annotated[NDArray[np.float64], fo.array(fo.float64, (None,))]


@fo.task
def ramp(n: fo.int64) -> Vector:
    return np.arange(n, dtype=np.float64)


@fo.task
def total(values: Vector) -> fo.float64:
    return float(values.sum())


def wide(count: int = 1000) -> fo.Flow:
    a = integer()
    return fo.flow_output(*(add(a, i) for i in range(count)))


def deep(count: int = 1000) -> fo.Flow:
    port = integer()
    for _ in range(count):
        port = add(port, 1)
    return fo.flow_output(port)


@pytest.mark.parametrize("way", WAYS)
def test_flows_of_every_shape_give_their_values(way: Way) -> None:
    with fo.slice(wide(), workers=way) as s:
        assert s.run(5) == [5 + i for i in range(1000)]
        assert s.run(a=6) == [6 + i for i in range(1000)]
    with fo.slice(deep(), workers=way) as s:
        assert [s.run(i) for i in range(3)] == [[1000], [1001], [1002]]
    with fo.slice(tree(), workers=way) as s:
        assert s.run(1) == [64 + sum(range(64))]


@pytest.mark.parametrize("way", WAYS)
def test_several_outputs_and_arrays_cross(way: Way) -> None:
    n = integer("n")
    quotient, rest = divide(n, 7)
    vector = ramp(n)
    flow = fo.flow_output(rest, total(vector), quotient, vector, n)
    with fo.slice(flow, workers=way) as s:
        found = s.run(100)
    assert found[:3] == [2, 4950.0, 14]
    assert np.array_equal(np.asarray(found[3]), np.arange(100.0))
    assert found[4] == 100


def test_a_slice_takes_ports_in_place_of_a_flow() -> None:
    with fo.slice([add(integer(), 1), add(2, 3)]) as s:
        assert s.run(1) == [2, 5]
    with fo.slice(add(2, 3)) as s:
        assert s.run() == [5]


@pytest.mark.parametrize("way", ["thread", "inline"])
def test_an_input_or_a_constant_may_be_an_output(way: Way) -> None:
    x = integer("x")
    same = fo.flow_output(x)
    a = integer()
    with fo.slice(fo.flow_output(a, same(7), same(add(a, 1))), workers=way) as s:
        assert s.run(3) == [3, 7, 4]
    with fo.slice(fo.flow_output(a, a), workers=way) as s:
        assert s.run(3) == [3, 3]


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_value_anywhere_in_a_thousand_tasks_is_refused(way: Way) -> None:
    for place in (0, 499, 999):

        @fo.task
        def spoil(x: fo.int64) -> fo.int64:
            return float(x)  # type: ignore[return-value]

        port = integer()
        for i in range(1000):
            port = spoil(port) if i == place else add(port, 1)
        with (
            fo.slice(port, workers=way) as s,
            pytest.raises(fo.ValueRefused, match="task 'spoil', output 'out': expected int64"),
        ):
            s.run(1)


@pytest.mark.parametrize(
    ("type_", "value", "words"),
    [
        (fo.int64, 2**63, "run: input 'a': expected int64 (-9223372036854775808..92"),
        (fo.int64, 1.0, "run: input 'a': expected int64, given 1.0 (float)"),
        (fo.array(fo.float64, (2,)), np.zeros(3), "given an array of float64, shape (3,)"),
        (fo.File, "/no/such/file", "run: input 'a': expected a file, nothing is at /no/such/file"),
        (fo.File, 3, "run: input 'a': expected File (a path), given 3 (int)"),
    ],
)
def test_a_wrong_input_is_refused_before_any_task_starts(
    type_: PortType, value: object, words: str
) -> None:
    started = []

    @fo.task
    def see(x: fo.any_) -> fo.any_:
        started.append(x)
        return x

    with (
        fo.slice(see(flow_input("a", type_))) as s,
        pytest.raises(fo.ValueRefused) as caught,
    ):
        s.run(value)
    assert words in str(caught.value)
    assert started == []


def test_wrong_results_are_named_with_their_port() -> None:
    @fo.task
    def pair(kind: fo.str_) -> tuple[fo.int64, fo.float64]:
        return {"three": (1, 2.0, 3), "one": 7, "wrong": (1, "x")}[kind]  # type: ignore[return-value]

    @fo.task
    def file(path: fo.str_) -> fo.File:
        return path  # type: ignore[return-value]

    with fo.slice(pair(flow_input("kind", fo.str_))) as s:
        for kind, words in (
            ("three", "task 'pair', outputs out1, out2: expected 2 values, given 3 values"),
            ("one", "expected 2 values, given int"),
            (
                "wrong",
                "task 'pair', output 'out2': expected float64, given 'x' (str); its inputs were "
                "kind = 'wrong' (str)",
            ),
        ):
            with pytest.raises(fo.ValueRefused) as caught:
                s.run(kind)
            assert words in str(caught.value)
    with fo.slice(file(flow_input("path", fo.str_))) as s:
        with pytest.raises(fo.ValueRefused, match="output 'out': expected a file, nothing is at"):
            s.run("/no/such/file")
        assert s.run("/etc/../etc/passwd") == [Path("/etc/../etc/passwd")]


def test_files_are_given_to_tasks_as_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @fo.task
    def read(path: fo.File, other: fo.int64) -> fo.str_:
        assert path.is_absolute()
        return path.read_text() * other

    (tmp_path / "here").write_text("text")
    monkeypatch.chdir(tmp_path)
    with fo.slice(read(flow_input("path", fo.File), integer())) as s:
        assert s.run("here", 2) == ["texttext"]


@pytest.mark.parametrize("way", ["thread", "inline"])
def test_a_failing_task_is_told_with_name_inputs_and_its_own_traceback(way: Way) -> None:
    @fo.task
    def fails(x: fo.int64, values: Vector) -> fo.int64:
        return x // int(values.sum())

    flow = fo.flow_output(fails(add(integer(), 1), flow_input("v", fo.array(fo.float64, (None,)))))
    with fo.slice(flow, workers=way) as s, pytest.raises(fo.TaskFailed) as caught:
        s.run(6, np.zeros(3))
    cause = caught.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    frames = traceback.extract_tb(cause.__traceback__)
    assert [f.name for f in frames] == ["fails"]
    assert str(caught.value) == (
        "task 'fails' raised ZeroDivisionError: integer division or modulo by zero "
        f"(test_flow_run.py:{frames[0].lineno}); "
        "given x = 7 (int), values = an array of float64, shape (3,)"
    )


def test_a_task_that_exits_or_raises_without_words_is_a_failure() -> None:
    @fo.task
    def leaves(x: fo.int64) -> fo.int64:
        raise SystemExit if x else AssertionError

    with fo.slice(leaves(integer())) as s:
        with pytest.raises(
            fo.TaskFailed, match=r"task 'leaves' raised SystemExit \(.*\); given x = 1"
        ):
            s.run(1)
        with pytest.raises(fo.TaskFailed, match=r"raised AssertionError \(.*\); given x = 0"):
            s.run(0)


def test_a_task_without_inputs_that_fails_says_so() -> None:
    def fails() -> None:
        raise KeyError("k")

    made = fo.task(
        {"task_name": "f", "iport_nametypes": (), "oport_nametypes": fo.any_, "fun": fails}
    )
    with (
        fo.slice(made()) as s,
        pytest.raises(fo.TaskFailed, match=r"KeyError: .k. \(.*\); given nothing"),
    ):
        s.run()


@pytest.mark.parametrize("way", WAYS)
def test_a_slice_goes_on_after_a_failed_run(way: Way) -> None:
    @fo.task
    def invert(x: fo.int64) -> fo.int64:
        return 10 // x

    a = integer()
    with fo.slice(fo.flow_output(*(add(invert(a), i) for i in range(20))), workers=way) as s:
        for _ in range(3):
            with pytest.raises(fo.TaskFailed, match=r"task 'invert(#\d+)?' raised"):
                s.run(0)
            assert s.run(5) == [2 + i for i in range(20)]


def test_tasks_that_wait_run_side_by_side_on_two_cores() -> None:
    meet = threading.Barrier(2, timeout=300)

    @fo.task
    def wait(x: fo.int64) -> fo.int64:
        meet.wait()
        return x

    a = integer()
    with fo.slice(fo.flow_output(wait(a), wait(a)), cores=2) as s:
        assert s.run(1) == [1, 1]


def test_a_failure_ends_the_run_while_another_task_still_runs() -> None:
    release, running = threading.Event(), threading.Event()

    @fo.task
    def waits(x: fo.int64) -> fo.int64:
        running.set()
        release.wait(60)
        return x

    @fo.task
    def fails(x: fo.int64) -> fo.int64:
        running.wait(60)
        raise ValueError(x)

    a = integer()
    with fo.slice(fo.flow_output(fails(a), waits(a)), cores=2) as s:
        for _ in range(2):
            running.clear()
            release.clear()
            with pytest.raises(fo.TaskFailed, match="task 'fails' raised ValueError: 1"):
                s.run(1)
            release.set()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": "fork"}, "slice: workers='fork' (str); one of thread, process, inline"),
        ({"fuse": "all"}, "slice: fuse='all' (str); one of chains, none"),
        ({"on_stage": 3}, "slice: on_stage=3 (int); expected a function"),
        ({"cores": 0}, "slice: cores=0 (int); expected a positive int"),
        ({"cores": 1.5}, "slice: cores=1.5 (float); expected a positive int"),
        ({"cores": 10**6}, "slice: 1000000 cores asked for, this node has"),
    ],
)
def test_a_slice_that_is_not_to_be_had_is_refused(options: Any, words: str) -> None:
    with pytest.raises(fo.SliceRefused, match=r"^slice: [^\n]*$") as caught:
        fo.slice(add(integer(), 1), **options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ("./none.sqfs", r"^no such image: there is nothing at /[^\n]*none\.sqfs$"),
        (3, r"^environment 3 \(int\): expected 'bare', or an image by its path or name$"),
        ("bare@podman", r"^environment bare: it needs no runtime, leave out @podman$"),
        (f"{__file__}@docker", r"unknown runtime 'docker'; known are auto, [^\n]*ch-run[^\n]*$"),
    ],
)
def test_an_environment_that_is_not_to_be_had_is_refused(env: Any, words: str) -> None:
    with pytest.raises(fo.EnvironmentRefused, match=words):
        fo.slice(add(integer(), 1), env)


def test_what_is_no_flow_is_refused() -> None:
    with pytest.raises(fo.WiringError, match="expected ports, given 3"):
        fo.slice(3)  # type: ignore[call-overload]


def test_what_happens_is_told_as_it_happens() -> None:
    events: list[Event] = []

    @fo.task
    def fails(x: fo.int64) -> fo.int64:
        raise ValueError(x)

    a = integer()
    with fo.slice(fo.flow_output(add(add(a, 1), 1)), on_stage=events.append) as s:
        s.run(1)
    assert [(e.what, e.label) for e in events] == [
        ("started", "add .. add#2"),
        ("ended", "add .. add#2"),
    ]
    events.clear()
    with fo.slice(fails(a), on_stage=events.append) as s, pytest.raises(fo.TaskFailed):
        s.run(1)
    assert [e.what for e in events] == ["started", "failed"]


def test_many_callers_may_run_one_slice_at_once() -> None:
    results: dict[int, list[list[object]]] = {}
    with fo.slice(tree()) as s:

        def call(i: int) -> None:
            results[i] = [s.run(i) for _ in range(50)]

        threads = [threading.Thread(target=call, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert results == {i: [[64 * i + sum(range(64))]] * 50 for i in range(6)}


def test_threads_do_not_wake_one_another_for_each_task() -> None:
    """Where they do, each task costs a switch between them: a thousand or more."""
    switches = []
    with fo.slice(wide(2000), workers="thread", cores=2) as s:
        s.run(1)
        for _ in range(5):
            before = getrusage(RUSAGE_SELF).ru_nvcsw
            s.run(1)
            switches.append(getrusage(RUSAGE_SELF).ru_nvcsw - before)
    assert median(switches) < 300
