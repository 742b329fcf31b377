"""Which machines of a cloud are ended, and when a node that got none is tried anew.

A machine belongs to a node if its tags name it. Nothing else is kept: a later request has a nonce
that sorts behind, so that of two machines of one node the later one counts.
"""

from collections.abc import Collection, Iterable

from flowos.model import CloudRefusal, Vm

ORPHAN_SECONDS = 90.0
"""A machine that is younger may be one whose node Slurm does not yet count as powered up."""

_PATIENT: Collection[str] = ("busy", "unreachable")
_FIRST_SECONDS, _MAX_SECONDS = 0.5, 8.0


def nonce_at(seconds: float, random: str) -> str:
    """Of a request at this time since 1970; those of later ones sort behind."""
    return f"{round(seconds * 1000):012x}-{random}"


def left_over(nodes: Collection[str], vms: Iterable[Vm], nonce: str) -> tuple[Vm, ...]:
    """Machines of these nodes from before a request: a node that is made anew, or ended, has none.

    One that a later request made stays: what ends late ends what was there.
    """
    return tuple(vm for vm in vms if vm.node in nodes and vm.nonce < nonce)


def superseded(vm: Vm, vms: Iterable[Vm]) -> bool:
    """Has a later request made another machine for its node?"""
    return any(other.node == vm.node and other.nonce > vm.nonce for other in vms)


def orphans(
    vms: Collection[Vm], powered: Collection[str], now: float, min_age: float = ORPHAN_SECONDS
) -> tuple[tuple[Vm, str], ...]:
    """Machines that no node owns, and why, but for those that are younger than `min_age` seconds.

    powered: nodes that Slurm has powered up, or is powering up.
    """
    found = ((vm, _why_orphan(vm, vms, powered)) for vm in vms)
    return tuple((vm, why) for vm, why in found if why and now - vm.created >= min_age)


def _why_orphan(vm: Vm, vms: Collection[Vm], powered: Collection[str]) -> str:
    if vm.node not in powered:
        return "its node is powered down"
    return "its node has a later one" if superseded(vm, vms) else ""


def without_machine(nodes: Collection[str], vms: Iterable[Vm]) -> tuple[str, ...]:
    """Nodes that are up and have none: it was ended from outside, as spot machines are."""
    has = {vm.node for vm in vms}
    return tuple(sorted(set(nodes) - has))


def next_try(refusal: CloudRefusal, tries: int, left_seconds: float) -> float | None:
    """Seconds until a call is repeated that has failed `tries` times; None: it is not."""
    wait = min(_FIRST_SECONDS * 2 ** (tries - 1), _MAX_SECONDS)
    return wait if refusal.kind in _PATIENT and wait < left_seconds else None
