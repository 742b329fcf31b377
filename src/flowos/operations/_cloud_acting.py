"""What is done to machines and nodes, and said: or, in a dry run, only said."""

import time
from collections.abc import Callable

from flowos._dataclasses import replace
from flowos.engine import Machines, PowerSaving, now, utc_of
from flowos.model import Cloud, CloudAction, CloudRefusal, Vm

OnAction = Callable[[CloudAction], None]


class Acting:
    """Does what was decided and says it; in a dry run it only says it."""

    def __init__(self, on_action: OnAction, *, dry_run: bool) -> None:
        self.slurm, self.dry_run = PowerSaving(), dry_run
        self._on_action = on_action

    def say(self, action: CloudAction) -> None:
        self._on_action(replace(action, at=utc_of(time.time())))

    def end(self, machines: Machines, vm: Vm, why: str) -> CloudRefusal | None:
        since = now()
        refusal = None if self.dry_run else machines.end(vm)
        took = None if self.dry_run else now() - since
        action = CloudAction(what="end", node=vm.node, vm=vm.id, why=why, seconds=took)
        if refusal is not None:
            action = replace(action, what="keep", why=str(refusal))
        self.say(action)
        return refusal

    def announce(self, vm: Vm) -> None:
        """Say to Slurm where the node is, if it is known. Raises SliceRefused if Slurm refuses."""
        if vm.address:
            self.slurm.set_address(vm.node, vm.address)

    def give_back(self, node: str, why: str) -> None:
        if not self.dry_run:
            self.slurm.give_back(node)
        self.say(CloudAction(what="back", node=node, why=why))

    def lose(self, node: str) -> None:
        why = "its machine is gone"
        if not self.dry_run:
            self.slurm.lose(node, why)
        self.say(CloudAction(what="back", node=node, why=why))

    def cluster(self, cloud: Cloud) -> str:
        return cloud.cluster or self.slurm.cluster()
