"""Flows whose Python tasks run in actors of Ray, on two nodes of Slurm.

One Ray for all of them: it takes ten seconds to start. `test_ray_faults.py` ends one by parts.
"""

import hashlib
import os
from collections.abc import Iterator
from threading import Lock
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.engine import HeldSlice
from tests.guests import named_in
from tests.waiting import comes

from .box import Box
from .ray_tasks import (
    add,
    drawn,
    locked,
    made,
    mixed,
    naps,
    read,
    root,
    says,
    subtract,
    threads,
    three,
)
from .tasks import measures

NODES = {"n1", "n2"}


@pytest.fixture(scope="module")
def pool(box: Box, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its name. Nothing of it is left."""
    pytest.importorskip("ray")
    settings = tmp_path_factory.mktemp("ray") / "flowos.toml"
    settings.write_text(f'[pools.c]\nkind = "slurm"\nnodes = 2\nshared = "{box.shared}"\n')
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (*box.variables.items(), ("FLOWOS_CONFIG", str(settings))):
            patch.setenv(name, value)
        yield "c"
        assert comes(lambda: box.ask("squeue", "--noheader") == "")
        assert comes(lambda: not list(box.shared.iterdir()))


@pytest.fixture(scope="module")
def on_ray(pool: str) -> Iterator[HeldSlice]:
    before = variables()
    with fo.slice(pool=pool, nodes=2, cores=2, workers="ray", fuse="none") as s:
        assert set(s.nodes) == NODES
        folders = s._ray._guest.folders  # type: ignore[attr-defined]
        yield s
    assert len(folders) >= 2
    assert not any(map(named_in, folders))
    assert variables() == before


def variables() -> dict[str, str]:
    return {name: os.environ[name] for name in os.environ if not name.startswith("PYTEST_")}


def paper() -> fo.Flow:
    a, b, c = (fo.flow_input(name, fo.int64) for name in "abc")
    return fo.flow_output(subtract(add(a, b), c))


def hundred() -> fo.Flow:
    """Ten rows of ten tasks, each of which takes what two of the row before gave."""
    seed = fo.flow_input("seed", fo.int64)
    row = [drawn(add(seed, i)) for i in range(5)] * 2
    for _ in range(9):
        row = [mixed(row[i], row[(3 * i + 1) % 10]) for i in range(10)]
    return fo.flow_output(*row)


def digest(values: list[Any]) -> str:
    data = b"".join(np.asarray(value).tobytes() for value in values)
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(("flow", "given"), [(paper(), (1, 2, 3)), (hundred(), (7,))])
def test_outputs_are_equal_to_the_last_bit_with_all_workers(
    on_ray: HeldSlice, flow: fo.Flow, given: tuple[int, ...]
) -> None:
    found = {"ray": digest(on_ray.run(flow, *given))}
    for workers in ("thread", "process"):
        with fo.slice(flow, workers=workers, cores=2) as s:
            found[workers] = digest(s.run(*given))
    assert set(found.values()) == {found["thread"]}


def test_values_between_tasks_go_from_node_to_node_and_not_by_way_of_the_program(
    on_ray: HeldSlice,
) -> None:
    value = made(fo.flow_input("name", fo.str_))
    found = on_ray.run(fo.flow_output(*(read(value, i) for i in range(4))), "x")
    assert len({words.partition(" at ")[0] for words in found}) == 1  # type: ignore[attr-defined]
    assert {words[-2:] for words in found} == NODES  # type: ignore[index]


def test_a_task_that_measures_is_refused(on_ray: HeldSlice) -> None:
    flow = fo.flow_output(measures(fo.flow_input("x", fo.int64)))
    with pytest.raises(fo.TaskFailed, match="measure: called by a task of a slice"):
        on_ray.run(flow, 1)


def failure(run: Any, *given: object) -> tuple[type, str, str]:
    with pytest.raises(fo.FlowosError) as failed:
        run(*given)
    return failed.type, str(failed.value), repr(failed.value.__cause__)


@pytest.mark.parametrize(("task", "value"), [(root, -4.0), (root, 1e7), (naps, 1.0)])
def test_a_task_that_fails_is_told_as_with_worker_processes(
    on_ray: HeldSlice, task: Any, value: float
) -> None:
    flow = fo.flow_output(task(fo.flow_input("x", fo.float64)))
    with fo.slice(flow, workers="process", cores=1) as s:
        expected = failure(s.run, value)
    assert failure(on_ray.run, flow, value) == expected
    assert failure(lambda: list(on_ray.map(flow, [value])))[1] == f"item 0: {expected[1]}"


def test_what_cannot_be_sent_is_refused_with_the_port_it_was_for(on_ray: HeldSlice) -> None:
    flow = fo.flow_output(locked(fo.flow_input("x", fo.any_)))
    kind, said, _ = failure(on_ray.run, flow, Lock())
    assert kind is fo.ValueRefused
    assert said.startswith("task 'locked', input '_': cannot cross to a worker process: TypeError")
    kind, said, _ = failure(on_ray.run, flow, 1)
    assert kind is fo.ValueRefused
    assert said.startswith("task 'locked', output 'out': cannot leave its worker process: TypeErr")
    assert said.count("\n") == 0


def test_a_task_has_cores_of_one_node(on_ray: HeldSlice) -> None:
    x = fo.flow_input("x", fo.int64)
    assert on_ray.run(fo.flow_output(threads(x)), 1) == ["2"]
    kind, said, _ = failure(on_ray.opened, fo.flow_output(three(x)))
    assert kind is fo.SliceRefused
    assert said.startswith("slice: task 'three' needs 3 cores, 0 GPUs and 0 bytes of one node, and")


def test_items_go_to_all_nodes_and_what_tasks_print_comes_out(
    on_ray: HeldSlice, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = fo.flow_output(says(fo.flow_input("x", fo.int64)))
    assert {node for (node,) in on_ray.map(flow, range(100))} == NODES
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(f"at {x}" for x in range(100))


def test_a_ray_that_exists_is_used_and_left_as_it_is(on_ray: HeldSlice) -> None:
    x = fo.flow_input("x", fo.int64)
    flow = fo.flow_output(add(x, 1))
    with fo.slice(flow, workers="ray", address="auto") as s:
        assert s.run(1) == [2]
    assert on_ray.run(flow, 2) == [3]
    with pytest.raises(fo.SliceRefused, match="another Ray"):
        fo.slice(flow, workers="ray", address="192.0.2.1:6379")
    with pytest.raises(fo.SliceRefused, match="this process is connected to a Ray"):
        fo.slice(flow, workers="ray")
    with pytest.raises(fo.SliceRefused, match="command 'true' would run on this machine"):
        fo.slice(fo.flow_output(fo.command(["true"])()), workers="ray", address="auto")
