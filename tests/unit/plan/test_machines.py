"""Which machines are ended, and when one is asked for again: at the limits, and just beyond."""

import pytest

from flowos.model import CloudRefusal, RefusalKind, Vm
from flowos.plan import left_over, next_try, nonce_at, orphans, superseded, without_machine


def vm(node: str, nonce: str = "1", created: float = 0.0) -> Vm:
    return Vm(id=f"{node}-{nonce}", node=node, nonce=nonce, created=created)


def test_nonces_sort_as_their_times() -> None:
    times = (0.0, 0.001, 9.999, 1795426868.398, 1795426868.399, 4e9)
    assert sorted(nonce_at(t, "f") for t in times) == [nonce_at(t, "f") for t in times]
    assert nonce_at(1.0, "zz") < nonce_at(1.001, "00")


def test_what_is_left_of_nodes_is_from_before_the_request() -> None:
    vms = (vm("c1", "1"), vm("c1", "3"), vm("c2", "1"), vm("c1", "2"))
    assert left_over(("c1",), vms, "2") == (vm("c1", "1"),)
    assert left_over(("c1", "c2"), vms, "3") == (vm("c1", "1"), vm("c2", "1"), vm("c1", "2"))


def test_a_later_request_for_the_same_node_counts() -> None:
    assert superseded(vm("c1", "1"), (vm("c1", "1"), vm("c1", "2")))
    assert not superseded(vm("c1", "2"), (vm("c1", "1"), vm("c1", "2"), vm("c2", "3")))


@pytest.mark.parametrize(("age", "ended"), [(89.9, False), (90.0, True), (90.1, True)])
def test_an_orphan_is_ended_after_90_seconds(age: float, ended: bool) -> None:
    found = orphans((vm("c1", created=1000.0),), (), 1000.0 + age)
    assert found == (((vm("c1", created=1000.0), "its node is powered down"),) if ended else ())


def test_of_two_machines_of_a_node_the_later_one_is_its_own() -> None:
    vms = (vm("c1", "1"), vm("c1", "2"), vm("c2", "1"))
    assert orphans(vms, ("c1", "c2"), 1e9) == ((vms[0], "its node has a later one"),)
    assert orphans(vms, ("c1",), 1e9, 0.0)[1:] == ((vms[2], "its node is powered down"),)
    assert orphans(vms, ("c1",), 5.0, 6.0) == ()


def test_a_node_that_is_up_may_have_lost_its_machine() -> None:
    assert without_machine(("c3", "c1", "c2"), (vm("c2"), vm("c4"))) == ("c1", "c3")
    assert without_machine((), (vm("c2"),)) == ()


@pytest.mark.parametrize(
    ("kind", "tries", "left", "wait"),
    [
        ("busy", 1, 60.0, 0.5),
        ("busy", 2, 60.0, 1.0),
        ("unreachable", 5, 60.0, 8.0),
        ("unreachable", 9, 60.0, 8.0),
        ("busy", 1, 0.5, None),
        ("busy", 1, 0.51, 0.5),
        ("quota", 1, 60.0, None),
        ("unknown", 1, 60.0, None),
    ],
)
def test_a_cloud_is_asked_again_if_it_may_answer_otherwise(
    kind: RefusalKind, tries: int, left: float, wait: float | None
) -> None:
    assert next_try(CloudRefusal(kind, ""), tries, left) == wait
