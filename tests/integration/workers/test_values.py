"""What crosses to worker processes and back: values, arrays, memory."""

import gc
import os
import resource
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import flowos as fo
from flowos.engine import Here, here
from flowos.engine._ledger import Resources
from flowos.engine.flow._inside import Surroundings
from flowos.engine.workers._blobs import Packed
from flowos.engine.workers._process_lanes import ProcessLanes
from flowos.engine.workers._values import OUT_OF_BAND
from flowos.plan import compile_flow

if TYPE_CHECKING:
    Floats = Any
else:
    Floats = fo.array(fo.float64)

LARGE = OUT_OF_BAND // 8 * 4
"""Elements of a float64 array that crosses as a memory file."""


@fo.task
def same(x: fo.any_) -> fo.any_:
    return x


@fo.task
def filled(value: fo.float64) -> Floats:
    return np.full(LARGE, value)


@fo.task
def doubled_in_place(x: Floats) -> fo.float64:
    x *= 2
    return float(x.sum())


@fo.task
def ones(count: fo.int64) -> Floats:
    return np.ones(count)


@fo.task
def total(x: Floats) -> fo.float64:
    return float(x.sum())


def wide_sum(*arrays: Any) -> float:
    return float(sum(a[0] + a[-1] for a in arrays))


def memory_files(pid: int | str = "self") -> int:
    return Path(f"/proc/{pid}/maps").read_text().count("/memfd:flowos ")


def open_files(pid: int | str) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def worker_pids() -> list[int]:
    me = os.getpid()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if not any(w.endswith(b"engine/workers/worker.py") for w in words):
                continue
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            grand = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if me in (int(parent), int(grand)):
            found.append(int(folder.name))
    return found


@pytest.fixture(scope="module")
def echo() -> Iterator[Any]:
    with fo.slice(fo.flow_output(same(fo.flow_input("x", fo.any_))), workers="process") as s:
        yield lambda x: s.run(x)[0]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(2**200),
        1.5,
        "text",
        "ü" * 5_000_000,
        b"x" * 10,
        bytes(range(256)) * 40_000,
        bytearray(200_000),
        (),
        (1, (2, "b"), None),
        [1, {"a": {1, 2}}],
        Path("/tmp/x"),
        range(10),
        {f"key {i}": [float(i)] * 10 for i in range(20_000)},
        (b"", ()),
        (b"abc", ((0, 1),), 0),
    ],
    ids=lambda v: type(v).__name__,
)
def test_every_value_comes_back_equal(echo: Any, value: object) -> None:
    back = echo(value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("count", [0, 1, OUT_OF_BAND // 8 - 1, OUT_OF_BAND // 8, 3 * LARGE])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "int8", ">i4", "U3", "complex128", "f8,i4"])
def test_arrays_come_back_equal_and_writable(echo: Any, count: int, order: Any, dtype: str) -> None:
    array = np.zeros((count, 2), dtype=dtype, order=order)
    if dtype != "f8,i4":
        array[:] = np.arange(count * 2).reshape(count, 2) % 100
    back = echo(array)
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.flags.writeable
    assert back.flags.f_contiguous == array.flags.f_contiguous
    np.testing.assert_array_equal(back, array)
    back[:] = back[:1] if count else back


def test_strided_read_only_and_object_arrays_come_back_equal(echo: Any) -> None:
    strided = np.arange(6.0 * LARGE).reshape(LARGE, 6)[::2, ::3]
    np.testing.assert_array_equal(echo(strided), strided)
    fixed = np.arange(float(LARGE))
    fixed.flags.writeable = False
    assert not echo(fixed).flags.writeable
    objects = np.array([None, "a", [1]], dtype=object)
    assert echo(objects).tolist() == objects.tolist()


def test_arrays_inside_containers_cross_out_of_band(echo: Any) -> None:
    value: Any = {"a": [np.arange(float(LARGE)), "text"], "b": np.ones(LARGE, dtype=np.int64)}
    back = echo(value)
    np.testing.assert_array_equal(back["a"][0], value["a"][0])
    np.testing.assert_array_equal(back["b"], value["b"])
    assert memory_files() >= 1


def test_a_task_may_write_to_its_array_and_nobody_else_sees_it() -> None:
    x = fo.flow_input("x", fo.array(fo.float64))
    made = filled(1.0)
    outputs = [
        doubled_in_place(made),
        doubled_in_place(made),
        total(made),
        doubled_in_place(x),
        total(x),
    ]
    with fo.slice(fo.flow_output(*outputs, made), workers="process") as s:
        for _ in range(3):
            mine = np.ones(LARGE)
            result: Any = s.run(mine)
            *sums, back = result
            assert sums == [2.0 * LARGE, 2.0 * LARGE, LARGE, 2.0 * LARGE, LARGE]
            assert (mine == 1).all()
            assert (back == 1).all()
            back += 7


def test_a_constant_that_a_task_writes_to_is_the_same_in_the_next_run() -> None:
    doubled = doubled_in_place(np.ones(LARGE))
    with fo.slice(fo.flow_output(doubled), workers="process") as s:
        assert [s.run()[0] for _ in range(3)] == [2.0 * LARGE] * 3


def test_results_stay_as_they_are_while_later_runs_use_memory_again() -> None:
    value = fo.flow_input("value", fo.float64)
    with fo.slice(fo.flow_output(filled(value)), workers="process") as s:
        kept: list[Any] = [s.run(float(i))[0] for i in range(20)]
        del kept[::2]
        kept += [s.run(float(i))[0] for i in range(20, 40)]
        wanted = [float(i) for i in (*range(1, 20, 2), *range(20, 40))]
        assert [set(np.unique(a)) for a in kept] == [{v} for v in wanted]
    assert [set(np.unique(a)) for a in kept] == [{v} for v in wanted]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_here_reads_what_it_was_forked_with() -> None:
    value = fo.flow_input("value", fo.float64)
    with fo.slice(fo.flow_output(filled(value)), workers="process") as s:
        array: Any = s.run(5.0)[0]
        reader, writer = os.pipe()
        again, go = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(again, 1)
            os.write(writer, b"y" if (array == 5.0).all() else b"n")
            os._exit(0)
        del array
        for i in range(4):
            s.run(100.0 + i)
        os.write(go, b"x")
        assert os.read(reader, 1) == b"y"
        os.waitpid(child, 0)
        for fd in (reader, writer, again, go):
            os.close(fd)


def test_values_that_only_workers_read_are_neither_mapped_nor_copied_here() -> None:
    value = fo.flow_input("value", fo.float64)
    schedule = compile_flow(fo.flow_output(total(filled(value))), fuse="none")
    lanes = ProcessLanes(schedule, 2, around=Surroundings(node=here()))
    try:
        make, use = schedule.stages
        gc.collect()
        before = memory_files()
        made = lanes.lanes[0].run([make], [[3.0]])
        assert isinstance(made[0][0], Packed)
        assert memory_files() == before
        assert lanes.lanes[1].run([use], made) == [[3.0 * LARGE]]
        assert lanes.lanes[0].run([use], made) == [[3.0 * LARGE]]
        assert memory_files() == before
    finally:
        lanes.close()


def test_one_task_takes_more_arrays_than_fit_one_packet_of_descriptors() -> None:
    value = fo.flow_input("value", fo.float64)
    count = 300
    names = [(f"x{i}", fo.any_) for i in range(count)]
    gather = fo.task(
        {
            "task_name": "gather",
            "iport_nametypes": tuple(names),
            "oport_nametypes": fo.float64,
            "fun": wide_sum,
        }
    )
    flow = fo.flow_output(gather(*[filled(value) for _ in range(count)]))
    schedule = compile_flow(flow, fuse="none")
    lanes = ProcessLanes(schedule, 1, around=Surroundings(node=here()))
    lane = lanes.lanes[0]
    try:
        made = [lane.run([stage], [[2.0]])[0][0] for stage in schedule.stages[:count]]
        assert lane.run([schedule.stages[count]], [made]) == [[4.0 * count]]
    finally:
        lanes.close()


def test_a_few_descriptors_are_enough_for_a_hundred_kept_results() -> None:
    value = fo.flow_input("value", fo.float64)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept: list[Any] = []
    with fo.slice(fo.flow_output(filled(value)), workers="process", cores=1) as s:
        s.run(0.0)
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files("self") + 20, hard))
        try:
            kept.extend(s.run(float(i))[0] for i in range(100))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert len(kept) == 100
        assert all((array == float(i)).all() for i, array in enumerate(kept))
        assert s.run(5.0)[0] is not None


def test_200_runs_leave_no_descriptor_and_no_mapping_more_than_the_second() -> None:
    value = fo.flow_input("value", fo.float64)
    x = fo.flow_input("x", fo.array(fo.float64))
    outputs = (total(filled(value)), filled(value), total(x))
    with fo.slice(fo.flow_output(*outputs), workers="process", cores=2) as s:

        def held() -> tuple[int, int, list[tuple[int, int]]]:
            pids = sorted(worker_pids())
            workers = [(memory_files(p), open_files(p)) for p in pids]
            return open_files("self"), memory_files(), workers

        for i in range(20):
            s.run(float(i), np.ones(LARGE))
        before = held()
        for i in range(200):
            s.run(float(i), np.ones(LARGE))
        after = held()
    assert after[0] <= before[0] + 4
    assert after[1] <= before[1] + 2
    for (maps, fds), (maps_then, fds_then) in zip(after[2], before[2], strict=True):
        assert maps <= maps_then + 3
        assert fds <= fds_then + 6


class Small(Here):
    """A node of this machine that has one megabyte."""

    def resources(self) -> Resources:
        return replace(super().resources(), memory_bytes=1 << 20)


def test_a_value_that_is_larger_than_the_memory_of_the_node_is_refused_by_its_port() -> None:
    count, x = fo.flow_input("count", fo.int64), fo.flow_input("x", fo.array(fo.float64))
    schedule = compile_flow(fo.flow_output(ones(count), total(x)))
    lanes = ProcessLanes(schedule, 1, around=Surroundings(node=Small()))
    make, use = schedule.stages
    limit = "more than the memory of this machine of 1048576 bytes; give parts of it, or write it"
    try:
        (lane,) = lanes.lanes
        with pytest.raises(fo.ValueRefused) as refused:
            lane.run([use], [[np.ones(200_000)]])
        sent = "task 'total', input 'x': cannot cross to a worker process: its 16001"
        assert str(refused.value).startswith(sent)
        assert limit in str(refused.value)
        with pytest.raises(fo.ValueRefused) as refused:
            lane.run([make, make], [[1000], [200_000]])
        made = "task 'ones', output 'out': cannot leave its worker process: its 16001"
        assert str(refused.value).startswith(made)
        assert limit in str(refused.value)
        assert lane.run([use], [[np.ones(100_000)]]) == [[100_000.0]]
    finally:
        lanes.close()
