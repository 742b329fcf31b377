"""What a slice waited, held and cost, from its record."""

import json
from dataclasses import replace

import pytest

from flowos.model import (
    Ask,
    HeldNode,
    Price,
    SliceAccounts,
    SliceEvent,
    SliceRecord,
    from_plain,
    to_plain,
)

NOW = 1100.0
ASKED = SliceRecord(id="c-1", pool="c", kind="slurm", process="p-1", asked=1000.0, ask=Ask(nodes=2))


def event(at: float, what: str, reason: str = "", node: str = "") -> SliceEvent:
    return SliceEvent(at=at, what=what, reason=reason, node=node)  # type: ignore[arg-type]


def held(**keys: object) -> SliceRecord:
    """Two nodes since 1030, after two reasons for waiting."""
    found = ASKED
    for each in (
        event(1001.0, "waiting", "Priority"),
        event(1021.0, "waiting", "Resources"),
        event(1030.0, "held"),
    ):
        found = found.happened(each)
    nodes = tuple(HeldNode(name=name, cores=4, gpus=1, since=1030.0) for name in ("n1", "n2"))
    return replace(found, nodes=nodes, **keys)  # type: ignore[arg-type]


def test_a_slice_that_waits_says_for_how_long_and_why() -> None:
    waits = ASKED.happened(event(1001.0, "waiting", "Priority"))
    assert (waits.state, waits.is_over, waits.why) == ("waiting", False, "Priority")
    assert waits.waited_seconds(NOW) == 100.0
    assert waits.waits(NOW) == (("Priority", 99.0),)
    assert (ASKED.why, ASKED.waits(NOW), ASKED.node_seconds(NOW)) == ("", (), 0)


def test_each_reason_for_waiting_is_kept_with_its_time() -> None:
    assert held().waits(NOW) == (("Priority", 20.0), ("Resources", 9.0))
    assert held().waited_seconds(NOW) == 30.0
    assert held().state == "held"


def test_seconds_of_a_boot_are_no_wait() -> None:
    boots = ASKED.happened(event(1001.0, "waiting", "Priority"))
    boots = boots.happened(event(1010.0, "booting", "n1, n2 into B"))
    assert (boots.waited_seconds(NOW), boots.booted_seconds(NOW)) == (10.0, 90.0)
    assert (boots.waits(NOW), boots.why) == ((("Priority", 9.0),), "n1, n2 into B")
    for what, state in (("held", "held"), ("refused", "refused")):
        then = boots.happened(event(1040.0, what))
        assert (then.waited_seconds(NOW), then.booted_seconds(NOW)) == (10.0, 30.0), state
    assert held().booted_seconds(NOW) == 0.0
    assert boots.booted_seconds(900.0) == 0.0


def test_a_clock_that_went_back_makes_no_time_negative() -> None:
    assert ASKED.waited_seconds(900.0) == 0.0
    assert held().node_seconds(1000.0) == 0.0
    waits = ASKED.happened(event(1005.0, "waiting", "Priority"))
    assert waits.waits(1001.0) == (("Priority", 0.0),)


def test_nodes_count_from_when_they_were_held_to_when_they_were_given_back() -> None:
    lost = held().happened(event(1050.0, "lost", "no answer", "n1"))
    assert [node.until for node in lost.nodes] == [1050.0, None]
    assert lost.node_seconds(NOW) == 20 + 70
    assert (lost.core_seconds(NOW), lost.gpu_seconds(NOW)) == (4 * 90, 90)
    over = lost.over("freed", event(1080.0, "freed"))
    assert (over.state, over.is_over, over.ended) == ("freed", True, 1080.0)
    assert over.node_seconds(NOW) == over.node_seconds(9e9) == 20 + 50
    assert over.given_back({"n1"}, 1099.0) == over


def test_what_is_refused_waited_until_then() -> None:
    refused = ASKED.over("refused", event(1003.0, "refused", "no such partition"))
    assert (refused.waited_seconds(NOW), refused.why) == (3.0, "no such partition")


@pytest.mark.parametrize(
    ("price", "cost"),
    [
        (None, None),
        (Price(currency="CHF"), None),
        (Price(per_node_hour=0), 0.0),
        (Price(per_node_hour=3.6), 140 / 1000),
    ],
)
def test_a_cost_is_node_hours_times_price_and_without_one_it_is_not_known(
    price: Price | None, cost: float | None
) -> None:
    found = held(price=price).cost(NOW)
    assert found is cost if cost is None else found == pytest.approx(cost)


def test_a_record_is_read_back_as_it_was_written() -> None:
    accounts = SliceAccounts(cpu_seconds=1.5, max_rss_bytes=7, joules=2.0, tres=(("cpu", 8.0),))
    whole = held(accounts=accounts, price=Price(per_node_hour=1.0), jobs=("7",), log="/x")
    assert from_plain(SliceRecord, json.loads(json.dumps(to_plain(whole)))) == whole
