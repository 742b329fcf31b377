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
