"""Tasks that begin only while their nodes are held for long enough."""

import time
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import GrowingSlice, HeldSlice, SliceOptions, provider_of
from flowos.model import Ask, Pool
from flowos.plan import NodeRange
from tests.contract.test_providers import flow_of

POOL = Pool(name="t", kind="fake", cores=2, nodes=2)
LATE = fo.Needs(remaining_seconds=600)


@fo.task(needs=LATE, retries=3)
def long(x: fo.int64) -> fo.int64:
    return x


LONG = flow_of(long, fo.int64)


def test_what_is_too_late_when_its_inputs_are_there_ends_the_run() -> None:
    with HeldSlice(provider_of(POOL), Ask(seconds=3000), SliceOptions(workers="thread")) as s:

        @fo.task
        def first(x: fo.int64) -> fo.int64:
            s._hold_end.until = time.time() + 100  # it took very long
            return x

        flow = fo.flow_output(long(first(fo.flow_input("x", fo.int64))))
        assert s.run(LONG, 1) == [1]
        words = r"'long' needs 600 s until .*, \d\d\.\d s are left"
        with pytest.raises(fo.SliceRefused, match=words):
            s.run(flow, 1)
        with pytest.raises(fo.SliceRefused, match="'long' needs 600 s"):
            list(s.map(LONG, range(9)))
        with pytest.raises(fo.SliceRefused, match="item 0: slice: task 'long' needs 600 s"):
            list(s.map(LONG, range(2), on_error="return"))
        assert s.submit(flow_of(first, fo.int64), 1).result() == [1]


def test_a_slice_that_grows_has_one_end_for_all_its_nodes() -> None:
    bounds = NodeRange(min_nodes=0, max_nodes=2, idle_seconds=300.0)
    for seconds, fits in ((3000, True), (500, False)):
        held = GrowingSlice(provider_of(POOL), Ask(seconds=seconds), SliceOptions(), bounds=bounds)
        with held as s:
            if fits:
                assert s.run(LONG, 1) == [1]
            else:
                with pytest.raises(fo.SliceRefused, match="needs 600 s until its nodes are given"):
                    s.run(LONG, 1)


def test_nodes_are_not_waited_for_that_are_held_too_shortly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
[pools.short]
kind = "fake"
max_seconds = 300
[pools.endless]
kind = "fake"
script = ["refuse it was asked"]
"""
    (tmp_path / "flowos.toml").write_text(text)
    monkeypatch.setenv("FLOWOS_CONFIG", str(tmp_path / "flowos.toml"))
    inner = fo.flow_output(LONG(fo.flow_input("y", fo.int64)))
    for pool, seconds, left in (("short", None, 300), ("short", 9000, 300), ("endless", 60, 60)):
        words = f"^slice: task 'long' needs 600 s until its nodes are given back, {left} s are left"
        with pytest.raises(fo.SliceRefused, match=words):
            fo.slice(inner, pool=pool, seconds=seconds)
    with pytest.raises(fo.SliceRefused, match="it was asked"):
        fo.slice(inner, pool="endless")
    with fo.slice(LONG) as s:  # this machine stays
        assert s.run(1) == [1]
