"""The first items of a map go to nodes whose workers run, and no node stays idle for it."""

import math
import os
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HeldSlice, SliceOptions, provider_of
from flowos.model import Ask, Pool
from tests.contract.test_providers import flow_of
from tests.integration.flow.node_tasks import meets, pid_once_there, root


def on(nodes: int) -> HeldSlice:
    pool = Pool(name="p", kind="fake", nodes=nodes, cores=1)
    return HeldSlice(provider_of(pool), Ask(nodes=nodes), SliceOptions(workers="process"))


def test_few_items_go_to_the_idle_worker_and_start_none_elsewhere(tmp_path: Path) -> None:
    flow, later = flow_of(pid_once_there, fo.str_), tmp_path / "later"
    with on(3) as s:
        busy = s.submit(flow, str(later))  # on p-1, whose worker has something to do
        (warm,) = s.run(flow, str(tmp_path))  # on p-2
        for _ in range(3):
            assert list(s.map(flow, [str(tmp_path)])) == [[warm]]
        assert "items of 'flow' go to p-2 first: its workers run there" in s.notes
        later.touch()
        assert busy.result() != [warm]
        assert [each.ready for each in s.opened(flow)] == [1, 1, 0]


def test_more_items_than_idle_workers_begin_on_all_nodes_at_once(tmp_path: Path) -> None:
    flow = flow_of(meets, fo.str_)
    names = [str(tmp_path / name) for name in "abc"]
    with on(3) as s:
        Path(names[1]).touch()
        Path(names[2]).touch()
        (warm,) = s.run(flow, names[0])
        for name in names:
            Path(name).unlink()
        found = [pid for (pid,) in s.map(flow, names, ahead=0)]
        assert len(set(found)) == 3
        assert warm in found


def test_threads_are_everywhere_alike() -> None:
    flow = flow_of(pid_once_there, fo.str_)
    pool = Pool(name="p", kind="fake", nodes=2, cores=1)
    with HeldSlice(provider_of(pool), Ask(nodes=2), SliceOptions()) as s:
        s.run(flow, "/")
        assert list(s.map(flow, ["/"])) == [[os.getpid()]]
        assert s.notes == ()


@pytest.mark.parametrize("wrong", ["text", -1.0])
def test_items_that_fail_within_batches_are_named_and_lose_no_others(wrong: object) -> None:
    """Refused before it is run, or by its task."""
    flow, bad = flow_of(root, fo.float64), range(700, 3000, 97)
    values = [wrong if i in bad else float(i) for i in range(3000)]
    with on(2) as s:
        results = list(s.map(flow, values, on_error="return"))
        assert [i for i, each in enumerate(results) if each.error] == list(bad)
        assert all(str(results[i].error).startswith(f"item {i}: ") for i in bad)
        assert all(
            each.outputs == [math.sqrt(i)] for i, each in enumerate(results) if each.error is None
        )
        found = s.map(flow, values)
        assert [next(found) for _ in range(700)] == [[math.sqrt(i)] for i in range(700)]
        with pytest.raises(fo.FlowosError, match=r"^item 700: "):
            next(found)
