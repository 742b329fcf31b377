"""Conds and loops on slices, with every kind of worker: values, errors, what is kept and logged."""

import json
import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import flowos as fo
from flowos.engine import Event
from tests.integration.flow.control_tasks import (
    VECTOR,
    add,
    at_least,
    count_lines,
    divide,
    ends_at_one,
    even,
    half,
    integer,
    mean_again,
    mean_of_neighbours,
    minus_one,
    smoothed,
    thrice_plus_one,
    tiny,
)

Way = Literal["thread", "process", "inline"]
WAYS: tuple[Way, ...] = ("thread", "inline", "process")


def collatz(done: fo.Task = tiny, **how: Any) -> fo.Flow:
    """A loop around a cond; the second output is the number of rounds."""
    x, count = integer(), integer("count")
    body = fo.flow_output(fo.cond(even(x), half, thrice_plus_one, x), add(count, 1))
    return fo.flow_output(
        fo.loop(body, integer("n"), 0, until=lambda x, _: done(x), max_rounds=200, **how)
    )


def steps_of_collatz(x: int) -> int:
    count = 0
    while True:
        x, count = x // 2 if x % 2 == 0 else 3 * x + 1, count + 1
        if x <= 1:
            return count


@pytest.mark.parametrize("done", [tiny, ends_at_one])
@pytest.mark.parametrize("way", WAYS)
def test_a_loop_around_a_cond_gives_what_python_does(way: Way, done: fo.Task) -> None:
    with fo.slice(collatz(done), workers=way) as s:
        assert s.run(27) == [1, 111]
        assert s.run(n=6) == [1, 8]
        assert list(s.map(range(2, 30))) == [[1, steps_of_collatz(n)] for n in range(2, 30)]
        assert s.submit(7).result() == [1, 16]


Function = Callable[[Sequence[int]], list[int]]


class TooManyRounds(Exception):  # noqa: N818
    """Of the function in Python."""


def random_flow(draw: random.Random, depth: int, inputs: int) -> tuple[fo.Flow, Function]:
    """A flow, and a function in Python that computes the same."""
    ports = [integer(f"in{i}") for i in range(inputs)]
    steps: list[Function] = []
    for i in range(inputs):  # each is used, so that it is an input of the flow
        ports.append(add(ports[i], i))
        steps.append(lambda v, i=i: [v[i] + i])  # type: ignore[misc]
    for _ in range(draw.randrange(1, 4)):
        made, fun = random_call(draw, ports, depth)
        ports += made if isinstance(made, tuple) else [made]
        steps.append(fun)
    total = ports[0]
    for port in ports[1:]:  # all are used: what is not would not run, nor fail
        total = add(total, port)

    def run(values: Sequence[int]) -> list[int]:
        known = list(values)
        for step in steps:
            known += step(known)
        return [*known[inputs : 2 * inputs], sum(known)]

    return fo.flow_output(*ports[inputs : 2 * inputs], total), run


def random_call(draw: random.Random, ports: list[Any], depth: int) -> tuple[Any, Function]:
    a, b = draw.randrange(len(ports)), draw.randrange(len(ports))
    kind = draw.choice(["add", "retry", "divide", "cond", "loop", "loop"] if depth else ["add"])
    if kind == "retry":
        return minus_one(ports[a]), lambda v: [v[a] - 1]
    if kind == "divide":
        return divide(ports[a], 7), lambda v: [*divmod(v[a], 7)]
    if kind == "cond":
        (yes, if_yes), (no, if_no) = (random_flow(draw, depth - 1, 2) for _ in range(2))
        made = fo.cond(even(ports[a]), yes, no, ports[a], ports[b])
        return made, lambda v: (if_no if v[a] % 2 else if_yes)([v[a], v[b]])
    if kind == "loop":
        (body, once), rounds = random_flow(draw, depth - 1, 2), draw.randrange(1, 4)
        until = draw.choice([None, lambda x, *_: even(x)])
        made = fo.loop(body, ports[a], in1=ports[b], max_rounds=rounds, until=until)

        def run(v: Sequence[int]) -> list[int]:
            x = v[a]
            for _ in range(rounds):
                given = once([x, v[b]])
                if until and given[0] % 2 == 0:
                    return given
                x = given[0]
            if until:
                raise TooManyRounds
            return given

        return made, run
    return add(ports[a], ports[b]), lambda v: [v[a] + v[b]]


@pytest.mark.parametrize("seed", range(8))
def test_random_flows_give_what_python_does_with_every_worker(seed: int) -> None:
    draw = random.Random(seed)
    flow, fun = random_flow(draw, 3, 2)
    ways: list[dict[str, Any]] = [{"workers": way} for way in WAYS]
    for options in (*ways, {"fuse": "none"}, {"workers": "process", "fuse": "none"}):
        with fo.slice(flow, **options) as s:
            for values in ((3, 4), (10, -7)):
                try:
                    expected: Any = fun(values)
                except TooManyRounds:
                    with pytest.raises(fo.RoundLimitExceeded):
                        s.run(*values)
                else:
                    assert s.run(*values) == expected, options


@pytest.mark.parametrize("way", WAYS)
def test_64_loops_in_each_other(way: Way) -> None:
    for task in (half, minus_one):
        flow = fo.flow_output(task(integer()))
        for i in range(64):
            flow = fo.flow_output(fo.loop(flow, integer(f"x{i}"), max_rounds=1))
        with fo.slice(flow, workers=way) as s:
            assert s.run(2) == [1]


@pytest.mark.parametrize("way", ["thread", "inline"])
@pytest.mark.parametrize("body", [half, minus_one])
def test_100_000_rounds_need_no_recursion(way: Way, body: fo.Task) -> None:
    rounds = 100_000
    with fo.slice(fo.loop(body, integer(), max_rounds=rounds), workers=way) as s:
        assert s.run(rounds) == [0]


def test_100_000_rounds_in_a_worker_process_are_one_message() -> None:
    with fo.slice(fo.loop(half, integer(), max_rounds=100_000), workers="process") as s:
        assert s.run(2**40) == [0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("body", [mean_of_neighbours, mean_again])
def test_arrays_go_from_round_to_round(way: Way, body: fo.Task) -> None:
    values = np.linspace(0.0, 1.0, 1000) ** 2
    expected = values
    for _ in range(10):
        expected = smoothed(expected)
    with fo.slice(fo.loop(body, fo.flow_input("v", VECTOR), max_rounds=10), workers=way) as s:
        assert np.array_equal(np.asarray(s.run(values)[0]), expected)


append = fo.command(
    ["sh", "-c", 'cat "$1" > "$2"; echo line >> "$2"', "sh", fo.In("text"), fo.Out("longer")],
    name="append",
)


@pytest.mark.parametrize("way", WAYS)
def test_a_command_writes_its_file_anew_in_each_round(tmp_path: Path, way: Way) -> None:
    (tmp_path / "start").write_text("first\n")
    file = fo.flow_input("text", fo.File)
    longer = append(file)
    body = fo.flow_output(longer, count_lines(longer))
    path, count = fo.loop(
        body,
        fo.flow_input("start", fo.File),
        until=lambda _, count: at_least(count, 4),
        max_rounds=9,
    )
    with fo.slice([path, count], workers=way, folder=tmp_path / "files") as s:
        path, count = s.run(tmp_path / "start")
    assert count == 4
    assert Path(str(path)).read_text() == "first\nline\nline\nline\n"
    assert sorted(p.name for p in tmp_path.glob("files/*/*")) == ["longer"] * 3


def test_a_file_that_is_written_into_a_loop_has_to_be_there(tmp_path: Path) -> None:
    inner = fo.flow_output(count_lines(str(tmp_path / "none")))
    flow = fo.flow_output(fo.cond(fo.flow_input("yes", fo.bool_), inner, half, x=4))
    with pytest.raises(fo.ValueRefused, match="nothing is at"):
        fo.slice(flow)
    (tmp_path / "none").write_text("1\n")
    with fo.slice(flow) as s:
        assert (s.run(True), s.run(False)) == ([1], [2])


def test_the_branch_that_is_not_chosen_is_not_run(tmp_path: Path) -> None:
    touch = fo.command(["touch", str(tmp_path / "touched")], inputs={"x": fo.int64}, stdout="said")
    show = fo.command(["echo", fo.In("x")], inputs={"x": fo.int64})
    flow = fo.flow_output(fo.cond(fo.flow_input("yes", fo.bool_), touch, show, 3))
    with fo.slice(flow) as s:
        assert s.run(False) == ["3\n"]
        assert not (tmp_path / "touched").exists()
        assert s.run(np.bool_(True)) == [""]
    assert (tmp_path / "touched").exists()


def test_a_branch_without_tasks_ends_a_run_at_once() -> None:
    same = fo.flow_output(fo.flow_input("x", fo.str_))
    show = fo.command(["printf", fo.In("x")], inputs={"x": fo.str_})
    port = fo.flow_input("text", fo.str_)
    yes = fo.flow_input("yes", fo.bool_)
    for _ in range(2000):
        port = fo.cond(yes, show, same, port)
    with fo.slice(port) as s:
        assert s.run("a", False) == ["a"]
        assert s.submit("b", False).result() == ["b"]


@pytest.mark.parametrize("way", WAYS)
def test_no_task_at_all_is_run_in_any_workers(way: Way) -> None:
    a, b = integer("a"), integer("b")
    flows = [fo.flow_output(each, name=name) for each, name in ((a, "first"), (b, "second"))]
    yes = fo.flow_input("yes", bool)
    same = fo.flow_output(integer("n"))
    chosen = fo.cond(yes, *flows, a=integer("x"), b=integer("y"))
    with fo.slice(
        fo.flow_output(chosen, fo.loop(same, integer("z"), max_rounds=3)), workers=way
    ) as s:
        assert s.run(yes=True, x=1, y=2, z=3) == [1, 3]
        assert s.run(yes=False, x=1, y=2, z=3) == [2, 3]


def test_stages_of_a_round_run_side_by_side() -> None:
    both = threading.Barrier(2, timeout=300)

    @fo.task
    def meet(x: fo.int64, by: fo.int64) -> fo.int64:
        both.wait()
        return x + by

    x = integer()
    body = fo.flow_output(add(meet(x, 1), meet(x, 2)))
    with fo.slice(fo.loop(body, 1, max_rounds=3), cores=2) as s:
        assert s.run() == [29]


def test_needs_hold_in_a_loop() -> None:
    wide = fo.task(half.body.fun, name="wide", needs=fo.Needs(cores=2))  # type: ignore[union-attr]
    with fo.slice(fo.loop(wide, integer(), max_rounds=3), workers="process") as s:
        assert s.run(80) == [10]
    huge = fo.task(half.body.fun, name="huge", needs=fo.Needs(cores=5000))  # type: ignore[union-attr]
    with pytest.raises(fo.SliceRefused, match="task 'loop' needs 5000 cores"):
        fo.slice(fo.loop(huge, 1, max_rounds=3))


def test_events_and_the_log_say_the_rounds(tmp_path: Path) -> None:
    seen: list[Event] = []
    inner = fo.flow_output(fo.loop(minus_one, integer(), max_rounds=2))
    with fo.slice(fo.loop(inner, 9, max_rounds=2), on_stage=seen.append, log=tmp_path / "log") as s:
        assert s.run() == [5]
    ended = [event.rounds for event in seen if event.what == "ended"]
    assert ended == [(1, 1), (1, 2), (2, 1), (2, 2)]
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["rounds"] for line in lines] == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert {line["task"] for line in lines} == {"loop/loop/minus_one"}


def test_a_run_within_a_task_of_a_loop_uses_the_same_slice() -> None:
    holder: list[Any] = []

    @fo.task
    def nested(x: fo.int64) -> fo.int64:
        return holder[0].run(x - 1)[0] + 1 if x > 0 else 0

    @fo.task(retries=1)
    def same(x: fo.int64) -> fo.int64:
        return x

    body = fo.flow_output(same(nested(integer())))
    with fo.slice(fo.loop(body, integer("n"), max_rounds=1), cores=1) as s:
        holder.append(s)
        assert s.run(3) == [3]
