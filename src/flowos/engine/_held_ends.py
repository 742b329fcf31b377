"""Why runs on held nodes end, in words, and how a slice hears of it."""

import weakref
from typing import Protocol

from flowos.engine._provider import HoldEvent, OnHoldEvent
from flowos.model import Flow, SliceFreed, WiringError, WorkerLost, brief_repr


def refuse_no_flow(flow: object) -> None:
    if not isinstance(flow, Flow):
        raise WiringError(
            f"run: the first argument is a flow, not {brief_repr(flow)}: make one with "
            "fo.flow_output(...)"
        )


def freed() -> SliceFreed:
    return SliceFreed("the slice was freed: make another with fo.slice(...)")


def freed_for(id: str, why: str) -> SliceFreed:
    return SliceFreed(f"slice {id} was freed {why}")


def left_to_lease() -> SliceFreed:
    return SliceFreed("the slice was left to its lease: fo.attach(ID) uses it again")


def given_back() -> SliceFreed:
    return SliceFreed("the node that this ran on was given back by resize")


def lease_ended(why: str) -> SliceFreed:
    mend = "" if why.startswith("early") else ": ask for more seconds, or free it sooner"
    return SliceFreed(f"the slice's lease ended {why}{mend}")


def node_lost(node: str, why: str) -> WorkerLost:
    return WorkerLost(f"node {node} is lost: {why}")


class EventListener(Protocol):
    """A slice."""

    def happened(self, event: HoldEvent) -> None: ...


def weakly(to: EventListener) -> OnHoldEvent:
    """A callback that refers to the slice weakly: the provider does not keep it alive."""
    known = weakref.ref(to)

    def tell(event: HoldEvent) -> None:
        alive = known()
        if alive is not None:
            alive.happened(event)

    return tell
