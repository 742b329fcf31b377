"""Which nodes a flow needs, and which nodes are near to each other."""

import math
from collections.abc import Sequence
from itertools import product

import pytest

import flowos as fo
from flowos.model import Topology
from flowos.plan import (
    MapPlaces,
    NodePicture,
    choose_node,
    devices_needed,
    gpus_needed,
    lacking_time,
    map_first,
    map_share,
    memory_needed,
    nodes_by_switch,
    topology_notes,
)


def needing(**devices: int) -> fo.Task:
    @fo.task(needs=fo.Needs(devices=devices))
    def task(x: fo.int64) -> fo.int64:
        return x

    return task


def test_a_flow_needs_the_most_that_one_of_its_tasks_does() -> None:
    x = fo.flow_input("x", fo.int64)
    assert devices_needed(fo.flow_output(needing()(x))) == {}
    two = fo.flow_output(needing(fpga=2)(needing(fpga=1, nic=1)(x)))
    assert devices_needed(two) == {"fpga": 2, "nic": 1}


def test_what_flows_loops_and_conds_within_it_need_counts() -> None:
    x = fo.flow_input("x", fo.int64)
    inner = fo.flow_output(needing(fpga=3)(fo.flow_input("y", fo.int64)))
    assert devices_needed(fo.flow_output(inner(x))) == {"fpga": 3}
    looped = fo.loop(inner, x, max_rounds=2)
    assert devices_needed(fo.flow_output(looped)) == {"fpga": 3}
    chosen = fo.cond(fo.flow_input("z", fo.bool_), inner, needing(nic=1), x)
    assert devices_needed(fo.flow_output(chosen)) == {"fpga": 3, "nic": 1}


def test_gpus_and_memory_are_needed_once_by_whoever_needs_most() -> None:
    @fo.task(needs=fo.Needs(gpus=2, memory_bytes=10))
    def large(x: fo.int64) -> fo.int64:
        return x

    @fo.task(needs=fo.Needs(gpus=1, memory_bytes=30))
    def wide(x: fo.int64) -> fo.int64:
        return x

    x = fo.flow_input("x", fo.int64)
    flow = fo.flow_output(fo.flow_output(wide(fo.flow_input("y", fo.int64)))(large(x)))
    assert (gpus_needed(flow), memory_needed(flow), devices_needed(flow)) == (2, 30, {})
    plain = fo.flow_output(needing()(x))
    assert (gpus_needed(plain), memory_needed(plain)) == (0, 0)


def test_a_task_begins_only_where_enough_time_is_left() -> None:
    needs = fo.Needs(remaining_seconds=600)
    assert lacking_time(needs, math.inf) == lacking_time(needs, 600.0) == ""
    assert lacking_time(fo.Needs(), -1.0) == ""
    for left, words in ((599.99, "599.9"), (300.0, "300"), (-5.0, "0")):
        assert lacking_time(needs, left) == (
            f"600 s until its nodes are given back, {words} s are left: {MORE}"
        )


MORE = "hold them for more seconds"
NODES = ("n1", "n2", "n3", "n4", "n5", "n6", "n7")
SWITCHES = {"n1": "a", "n2": "b", "n3": "b", "n4": "c", "n5": "c", "n6": "c"}


@pytest.mark.parametrize(
    ("topology", "count", "nodes"),
    [
        ("", 2, "n1 n2"),
        ("switch", 1, "n7"),  # which leaves larger switches to others
        ("switch", 2, "n2 n3"),
        ("switch", 3, "n4 n5 n6"),
        ("switch", 4, ""),
        ("pack", 1, "n7"),
        ("pack", 2, "n2 n3"),
        ("pack", 4, "n4 n5 n6 n7"),
        ("pack", 5, "n4 n5 n6 n2 n3"),
        ("pack", 7, "n4 n5 n6 n2 n3 n1 n7"),
        ("spread", 1, "n4"),
        ("spread", 4, "n4 n2 n1 n7"),
        ("spread", 6, "n4 n2 n1 n7 n5 n3"),
    ],
)
def test_nodes_of_one_switch_of_few_or_of_many(topology: Topology, count: int, nodes: str) -> None:
    chosen = nodes_by_switch(NODES, count, topology, SWITCHES)
    assert chosen == tuple(nodes.split())


def test_notes_say_which_nodes_are_on_which_switch() -> None:
    several = [("n1", "s1"), ("n2", "s2"), ("n3", "s1"), ("n4", "")]
    words = "topology='pack': n1, n3 on s1; n2 on s2; n4 on no known switch"
    assert topology_notes("pack", several) == (words,)
    assert topology_notes("", several) == ()


OPEN, CONFIGURED = "the image is open there", "its devices are configured for it"
FREE = "its devices are configured for no other flow"


def picture(busy: int, image: float = 0.0, device: float = 0.0) -> NodePicture:
    return NodePicture(busy=busy, places=4, image_seconds=image, device_seconds=device)


@pytest.mark.parametrize(
    ("nodes", "run_seconds", "chosen"),
    [
        ([picture(1), picture(0), picture(0)], 1.0, (1, "")),
        ([picture(0), picture(0)], None, (0, "")),
        ([picture(0), picture(0, image=9)], None, (0, "")),
        ([picture(0, image=9), picture(0)], None, (1, OPEN)),
        ([picture(1), picture(0, image=9)], None, (1, "")),
        ([picture(1), picture(0, image=9)], 8.9, (0, OPEN)),
        ([picture(1), picture(0, image=9)], 9.0, (1, "")),
        ([picture(2), picture(0, image=9)], 4.5, (1, "")),
        ([picture(2), picture(0, image=9)], 4.4, (0, OPEN)),
        ([picture(3), picture(0, image=9)], 0.1, (0, OPEN)),
        ([picture(4), picture(0, image=9)], 0.1, (1, "")),
        ([picture(9), picture(4, image=9)], 0.1, (1, "")),
        ([picture(0, device=4), picture(0, device=2)], 1.0, (1, FREE)),
        ([picture(1), picture(0, device=2)], 1.9, (0, CONFIGURED)),
        ([picture(1), picture(0, device=2)], 2.0, (1, "")),
    ],
)
def test_a_run_goes_where_what_is_ready_saves_more_than_all_runs_there_take(
    nodes: list[NodePicture], run_seconds: float | None, chosen: tuple[int, str]
) -> None:
    assert choose_node(nodes, run_seconds) == chosen


def rooms(*nodes: tuple[int, int]) -> list[MapPlaces]:
    return [MapPlaces(places=places, warm=warm) for places, warm in nodes]


def shares(nodes: Sequence[MapPlaces], items: int) -> list[int]:
    return [map_share(node, nodes, items) for node in nodes]


@pytest.mark.parametrize(
    ("nodes", "items", "expected"),
    [
        (rooms((4, 0), (4, 0)), 0, [0, 0]),
        (rooms((4, 0), (4, 0)), 2, [1, 1]),
        (rooms((4, 4), (4, 4)), 2, [1, 1]),
        (rooms((4, 0), (4, 0)), 20, [10, 10]),
        (rooms((4, 4), (4, 0)), 1, [1, 0]),
        (rooms((4, 4), (4, 0)), 4, [4, 0]),
        (rooms((4, 4), (4, 0)), 5, [4, 1]),
        (rooms((4, 1), (4, 0)), 1, [1, 0]),
        (rooms((4, 1), (4, 0)), 3, [2, 2]),
        (rooms((4, 4), (4, 0)), 8, [4, 4]),
        (rooms((4, 4), (4, 0)), 20, [10, 10]),
        (rooms((2, 2), (4, 4), (2, 0)), 3, [1, 2, 0]),
        (rooms((2, 2), (4, 4), (2, 0)), 7, [2, 4, 1]),
    ],
)
def test_items_of_a_map_fill_places_with_workers_then_others_then_are_dealt_by_places(
    nodes: list[MapPlaces], items: int, expected: list[int]
) -> None:
    assert shares(nodes, items) == expected


def test_no_item_is_left_and_no_node_idle_once_there_are_more_than_warm_places() -> None:
    kinds = [(places, warm) for places in (1, 3) for warm in range(places + 1)]
    for nodes in map(rooms, *zip(*product(kinds, repeat=3), strict=True)):
        for items in range(12):
            given = shares(nodes, items)
            assert sum(given) >= items
            if items > sum(node.warm for node in nodes):
                assert all(share > 0 for share in given)


def test_it_is_said_which_nodes_take_the_first_items_if_others_do_not() -> None:
    a, b, cold = rooms((4, 1), (4, 4), (4, 0))
    assert map_first({"n1": cold, "n2": a, "n3": b}) == "n2, n3 first: its workers run there"
    assert map_first({"n1": a, "n2": b}) == map_first({"n1": cold, "n2": cold}) == ""
