"""Runs go to the node where the image is open, and devices are configured, as far as that pays."""

import time
from collections import Counter

import flowos as fo
from flowos.engine import Node
from flowos.engine._warm_nodes import WarmNodes
from flowos.engine.local._fake_provider import FakeNode
from tests.contract.test_providers import DOUBLE, flow_of


@fo.task(needs=fo.Needs(devices={"fpga": 1}))
def one(x: fo.int64) -> fo.int64:
    return x


@fo.task(needs=fo.Needs(devices={"fpga": 1}))
def other(x: fo.int64) -> fo.int64:
    return x


ONE, OTHER = flow_of(one, fo.int64), flow_of(other, fo.int64)


def ago(seconds: float) -> float:
    return time.monotonic() - seconds


def test_short_runs_stay_where_the_image_is_open_until_their_node_is_full() -> None:
    warm, nodes, busy = (
        WarmNodes(in_image=True),
        (FakeNode("n1", 4), FakeNode("n2", 4)),
        Counter[Node](),
    )
    assert warm.weighs(DOUBLE)
    first = warm.choose(DOUBLE, nodes, busy, None)
    assert first is nodes[0]
    warm.opened(first, ago(100.0))
    busy[first] += 1
    assert warm.choose(DOUBLE, nodes, busy, None) is nodes[1]  # a run may take for ever
    warm.ran(DOUBLE, ago(1.0))
    for busy[first] in (1, 2, 3):
        assert warm.choose(DOUBLE, nodes, busy, None) is first
    assert warm.choose(DOUBLE, nodes, busy, 3) is nodes[1]
    busy[first] = 4
    assert warm.choose(DOUBLE, nodes, busy, None) is nodes[1]
    assert warm.notes == ("runs of 'flow' go to n1: the image is open there",)
    busy[first] = 1
    warm.ran(DOUBLE, ago(200.0))
    assert warm.choose(DOUBLE, nodes, busy, None) is nodes[1]
    warm.left(first)
    assert warm.choose(DOUBLE, nodes, busy, None) is nodes[1]


def test_each_flow_keeps_to_the_devices_that_it_configured() -> None:
    warm, nodes, busy = (
        WarmNodes(in_image=False),
        (FakeNode("n1", 4), FakeNode("n2", 4)),
        Counter[Node](),
    )
    assert not warm.weighs(DOUBLE)
    assert warm.weighs(ONE)
    assert warm.weighs(OTHER)
    for flow, node in ((ONE, 0), (OTHER, 1), (ONE, 0), (OTHER, 1)):
        assert warm.choose(flow, nodes, busy, None) is nodes[node]
    assert warm.notes == (
        "runs of 'flow' go to n2: its devices are configured for no other flow",
        "runs of 'flow' go to n2: its devices are configured for it",
    )
