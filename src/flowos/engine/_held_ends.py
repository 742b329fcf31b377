"""Why runs on held nodes end, in words, and how a slice hears of it."""

import weakref
from collections.abc import Callable
from typing import TypeVar

from flowos.engine._node import Node
from flowos.engine.launch._end_reasons import step_words
from flowos.model import SliceFreed, WorkerLost

T = TypeVar("T")


def freed() -> SliceFreed:
    return SliceFreed("the slice was freed: make another with fo.slice(...)")


def freed_for(id: str, why: str) -> SliceFreed:
    return SliceFreed(f"slice {id} was freed {why}")


def left_to_lease() -> SliceFreed:
    return SliceFreed("the slice was left to its lease: fo.attach(ID) uses it again")


def given_back() -> SliceFreed:
    return SliceFreed("the node that this ran on was given back by resize")


def lease_ended(why: str) -> SliceFreed:
    """why: "after 3 s", or what ended it before that."""
    if not why.startswith("after "):
        return SliceFreed(f"the slice has ended: {why}")
    return SliceFreed(f"the slice's lease ended {why}: ask for more seconds, or free it sooner")


def node_lost(node: Node, why: str) -> WorkerLost:
    return WorkerLost(f"node {node.name} is lost: {why}{step_words(*node.steps())}")


def lost_with(node: Node, error: WorkerLost) -> Node | str:
    """What was lost with a run on this node: another one of its ranks by its name."""
    return node if error.node in ("", node.name) else error.node


def weakly(method: Callable[[T], None]) -> Callable[[T], None]:
    """A callback that refers to the method's slice weakly: the provider does not keep it alive."""
    known = weakref.WeakMethod(method)

    def call(said: T) -> None:
        alive = known()
        if alive is not None:
            alive(said)

    return call
