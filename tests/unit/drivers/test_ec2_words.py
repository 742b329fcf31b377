"""What EC2 is asked with, and what its machines are."""

from dataclasses import replace
from typing import Any

import pytest

from flowos.drivers.clouds.ec2 import address_of, creation, filter_of, read_machine
from flowos.model import Cloud, Vm, VmOrder

PLAIN = Cloud(name="a", region="r", image="ami-1", size="c6i.large")
ORDER = VmOrder(cluster="box", node="c1", nonce="07")
TAGS = {"flowos-cluster": "box", "flowos-node": "c1", "flowos-nonce": "07"}


def test_a_plain_machine_has_its_tags_and_a_token() -> None:
    words = creation(PLAIN, ORDER, "")
    token = words.pop("ex_clienttoken")
    assert len(token) == 64
    assert words == {"name": "box-c1", "ex_metadata": TAGS, "ex_terminate_on_shutdown": True}


def test_the_token_is_that_of_the_order_alone() -> None:
    def token(order: VmOrder) -> Any:
        return creation(PLAIN, order, "")["ex_clienttoken"]

    others = (
        *(replace(ORDER, node="c2"), replace(ORDER, nonce="08"), replace(ORDER, cluster="x")),
        *(replace(ORDER, cluster="bo", node="xc1"), replace(ORDER, node="c10", nonce="7")),
    )
    assert token(ORDER) == token(replace(ORDER))
    assert len({token(ORDER), *map(token, others)}) == 6


def test_what_a_table_says_is_asked_for() -> None:
    full = replace(
        PLAIN,
        spot=True,
        ssh_key="mine",
        subnet="subnet-1",
        security_groups=("sg-1", "sg-2"),
        tags=("project=physics",),
    )
    words = creation(full, ORDER, "#!/bin/sh")
    assert words["ex_spot"] is True
    assert words["ex_keyname"] == "mine"
    assert words["ex_security_group_ids"] == ["sg-1", "sg-2"]
    assert words["ex_userdata"] == "#!/bin/sh"
    assert words["ex_metadata"] == {"project": "physics", **TAGS}


def test_machines_are_found_by_their_cluster() -> None:
    assert filter_of("box") == {"tag:flowos-cluster": "box"}


@pytest.mark.parametrize(
    ("endpoint", "host", "port", "secure"),
    [
        ("https://cloud.example:8443", "cloud.example", 8443, True),
        ("http://127.0.0.1:5000", "127.0.0.1", 5000, False),
        ("http://cloud.example", "cloud.example", 80, False),
        ("https://cloud.example/", "cloud.example", 443, True),
    ],
)
def test_a_cloud_may_have_a_place_of_its_own(
    endpoint: str, host: str, port: int, secure: bool
) -> None:
    assert address_of(endpoint) == {"host": host, "port": port, "secure": secure}
    assert address_of("") == {}


@pytest.mark.parametrize(
    ("extra", "counts"),
    [
        ({"tags": TAGS, "status": "pending"}, True),
        ({"tags": TAGS, "status": "stopped"}, True),
        ({"tags": TAGS, "status": "shutting-down"}, False),
        ({"tags": TAGS, "status": "terminated"}, False),
        ({"tags": {"flowos-node": "c1", "flowos-nonce": "07"}, "status": "running"}, True),
        ({"tags": {"flowos-node": "c1"}, "status": "running"}, False),
        ({"tags": None}, False),
        ({}, False),
    ],
)
def test_a_machine_counts_until_it_is_ended(extra: dict[str, Any], counts: bool) -> None:
    found = read_machine("i-1", extra, ["10.0.0.7", "10.0.0.8"], 5.0)
    vm = Vm(id="i-1", node="c1", nonce="07", created=5.0, address="10.0.0.7")
    assert found == (vm if counts else None)


def test_a_machine_may_have_no_address_yet() -> None:
    found = read_machine("i-1", {"tags": TAGS}, [], 5.0)
    assert found is not None
    assert found.address == ""
