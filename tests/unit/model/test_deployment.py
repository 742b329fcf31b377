"""Nodes that were held to be measured: what is known of them, in words."""

import pytest

from flowos.model import DeployedNode

BOOTED = "2026-11-20T10:00:00"


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, "n1"),
        ({"instance": "i-7"}, "n1 (i-7)"),
        ({"booted": BOOTED}, f"n1 (booted {BOOTED})"),
        ({"instance": "i-7", "booted": BOOTED}, "n1 (i-7)"),
        ({"switch": "s2"}, "n1 (switch s2)"),
        ({"booted": BOOTED, "switch": "s2"}, f"n1 (booted {BOOTED}, switch s2)"),
    ],
)
def test_a_node_is_named_with_what_tells_it_from_others(known: dict[str, str], words: str) -> None:
    assert str(DeployedNode(name="n1", **known)) == words


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"booted": BOOTED}, {"booted": "2026-11-20T10:00:01"}, True),
        ({"booted": "2026-11-20T09:59:59"}, {"booted": BOOTED}, True),
        ({"booted": BOOTED}, {"booted": "2026-11-20T10:00:30"}, False),
        ({"booted": BOOTED}, {}, False),
        ({}, {}, True),
        ({"instance": "i-7", "booted": BOOTED}, {"instance": "i-8", "booted": BOOTED}, False),
    ],
)
def test_a_machine_is_the_same_until_it_is_booted_again(
    one: dict[str, str], other: dict[str, str], same: bool
) -> None:
    """Slurm says of one boot a second more or less each time."""
    assert DeployedNode(name="n1", **one).is_same_machine(DeployedNode(name="n1", **other)) is same
    assert not DeployedNode(name="n1").is_same_machine(DeployedNode(name="n2"))
