"""The largest values that cross to the workers of a node, and back."""

import os

from flowos.engine._node import Node
from flowos.engine.workers._values import NO_LIMIT, Limit


def limit_there(node: Node) -> Limit:
    """What its memory holds. Where that is not known there is none."""
    known, name = node.ledger.whole.memory_bytes, "this machine" if node.is_here else node.name
    return (known, f"the memory of {name}") if known else NO_LIMIT


def limit_back(node: Node) -> Limit:
    """What the memory of both holds."""
    ours = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(limit_there(node), (ours, "the memory of this machine"))
