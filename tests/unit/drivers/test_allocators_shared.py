"""What the drivers of resource managers share."""

import pytest

from flowos.drivers._allocators import (
    Complaint,
    classify_complaint,
    lacking,
    no_such,
    node_names,
    read_clock,
    refuse_topology,
)
from flowos.model import Ask, NodeInfo, SliceRefused


def test_nodes_are_named_once_in_order() -> None:
    assert node_names("X", ["n2", "", "n1", "n2"]) == ("n2", "n1")
    with pytest.raises(SliceRefused, match=r"X names a node '\.\./etc', which is no node's name"):
        node_names("X", ["n1", "../etc"])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:00:07", 7.0), ("100:01:02", 360062.0), ("1:2:3", None), ("", None), ("INFINITY", None)],
)
def test_times_of_the_clock(text: str, seconds: float | None) -> None:
    assert read_clock(text) == seconds


def test_a_complaint_is_its_last_line_and_the_kind_of_any() -> None:
    patterns = (("gone", "no such job"), ("refused", "denied"))
    assert classify_complaint("x: No such job\nx: bye\n\n", patterns, "x: ") == Complaint(  # type: ignore[arg-type]
        kind="gone", text="bye"
    )


def test_the_nearest_name_is_offered_or_all() -> None:
    assert no_such("queue", "mian", ("main", "gpu")) == (
        "the cluster has no queue 'mian'; did you mean 'main'?"
    )
    assert no_such("queue", "x", ("main", "gpu")).endswith("no queue 'x'; there are main, gpu")
    assert no_such("queue", "x", ()).endswith("; there are none")


def test_nodes_have_to_have_what_is_asked_of_each() -> None:
    nodes = [NodeInfo(name=f"n{cores}", cores=cores) for cores in (2, 4)]
    assert lacking(Ask(nodes=2), nodes) == ""
    assert lacking(Ask(nodes=2, cores=4), nodes) == (
        "2 nodes asked for, 1 of 2 have what each has to have: 4 cores asked for, n2 has 2"
    )
    assert lacking(Ask(), ()) == "1 node asked for, 0 of 0 have what each has to have"


def test_a_device_that_no_node_has_is_named_with_the_nearest() -> None:
    nodes = [NodeInfo(name="n1", cores=2, gpus=1, devices=(("gpu", 1), ("fpga", 2), ("nic", 1)))]
    assert lacking(Ask(devices={"fpga": 2, "nic": 1}), nodes) == ""
    assert lacking(Ask(devices={"fgpa": 1}), nodes) == (
        "no node has a device 'fgpa'; did you mean 'fpga'?"
    )
    assert lacking(Ask(devices={"x": 1}), nodes) == "no node has a device 'x'; they have fpga, nic"
    assert lacking(Ask(devices={"fpga": 3}), nodes).endswith("3 fpga asked for, n1 has 2")


def test_what_the_largest_node_lacks_is_said() -> None:
    nodes = [
        NodeInfo(name=f"n{gpus}", cores=4, gpus=gpus, memory_bytes=100, devices=(("gpu", gpus),))
        for gpus in (0, 2, 1)
    ]
    for ask, words in (
        (Ask(gpus=3), "3 GPUs asked for, n2 has 2"),
        (Ask(gpus=3, cores=5), "5 cores asked for, n2 has 4"),
        (Ask(memory_bytes=200), "200 bytes of memory asked for, n0 has 100"),
    ):
        assert lacking(ask, nodes).endswith(f"0 of 3 have what each has to have: {words}")


def test_where_nodes_are_to_each_other_is_refused() -> None:
    refuse_topology("X", Ask())
    with pytest.raises(SliceRefused, match="topology='pack': X does not place nodes"):
        refuse_topology("X", Ask(topology="pack"))
