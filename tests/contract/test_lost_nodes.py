"""What becomes of runs when a node is lost, or a script of a fake pool says so."""

import time
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import HeldSlice, SliceOptions, provider_of
from flowos.model import Ask
from tests.waiting import comes

from .test_providers import AWAITS, DOUBLE, NAP, Heard, flow_of, on, pool, touched_once


def test_a_fake_pool_waits_and_refuses_as_its_script_says() -> None:
    fake = provider_of(pool("fake", "wait 0.01 Priority; wait 0.01 Resources", "refuse no account"))
    heard = Heard()
    fake.free(fake.hold(Ask(), heard))
    assert [(e.what, e.reason) for e in heard.events] == [
        ("waiting", "Priority"),
        ("waiting", "Resources"),
        ("held", ""),
    ]
    with pytest.raises(fo.SliceRefused, match="no account"):
        fake.hold(Ask())
    fake.free(fake.hold(Ask()))


def test_a_lost_node_ends_its_runs_and_the_others_go_on(tmp_path: Path) -> None:
    fake = provider_of(pool("fake", "lose 1 after 0.2"))
    heard = Heard()
    with HeldSlice(fake, Ask(nodes=2), SliceOptions(), heard, requeue=False) as s:
        lost, left = s.nodes
        touching = touched_once(tmp_path / "lost", lambda: len(s.nodes) == 1)
        with pytest.raises(fo.WorkerLost, match=f"node {lost} is lost"):
            s.run(AWAITS, str(tmp_path / "lost"))
        touching.join()
        assert s.nodes == (left,)
        assert s.run(DOUBLE, 3) == [6]
        assert [e.node for e in heard.events if e.what == "lost"] == [lost]
    assert [node.state for node in fake.nodes()] == ["lost", "free", "free"]
    with pytest.raises(fo.SliceRefused, match="3 nodes asked for, it has 2"):
        fake.hold(Ask(nodes=3))


def test_what_ran_on_a_lost_node_runs_again_on_another(tmp_path: Path) -> None:
    fake = provider_of(pool("fake", "lose 1 after 0.2"))
    with HeldSlice(fake, Ask(nodes=2), SliceOptions()) as s:
        touching = touched_once(tmp_path / "lost", lambda: len(s.nodes) == 1)
        assert s.run(AWAITS, str(tmp_path / "lost")) == [str(tmp_path / "lost")]
        touching.join()


@pytest.mark.parametrize("requeue", [True, False])
def test_items_without_a_result_when_their_node_is_lost_run_again(requeue: bool) -> None:
    fake = provider_of(pool("fake", "lose 1 after 0.3"))
    with HeldSlice(fake, Ask(nodes=2), SliceOptions(cores=1), requeue=requeue) as s:
        results = s.map(NAP, [0.03] * 40)
        if requeue:
            assert list(results) == [[0.03]] * 40
        else:
            with pytest.raises(fo.WorkerLost, match="is lost"):
                list(results)
        assert len(s.nodes) == 1


def test_items_that_fail_are_told_by_their_number_after_a_node_was_lost() -> None:
    @fo.task
    def slow_or_bad(x: fo.int64) -> fo.int64:
        time.sleep(0.03)
        return x // (x - 37)

    fake = provider_of(pool("fake", "lose 1 after 0.3"))
    with HeldSlice(fake, Ask(nodes=2), SliceOptions(cores=1)) as s:
        results = list(s.map(flow_of(slow_or_bad, fo.int64), range(40), on_error="return"))
        assert [i for i, r in enumerate(results) if r.error is not None] == [37]
        assert "item 37" in str(results[37].error)


def test_a_slice_whose_last_node_is_lost_says_so() -> None:
    fake = provider_of(pool("fake", "lose 1 after 0.01"))
    with on(fake) as s:
        assert comes(lambda: "lost" in [node.state for node in fake.nodes()])
        assert comes(lambda: not s._held.nodes or bool(s._lost))
        with pytest.raises(fo.WorkerLost, match="all its nodes are lost"):
            s.run(DOUBLE, 1)


def test_a_script_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="'explode 3': expected wait SECONDS"):
        pool("fake", "wait 1 x; explode 3")
